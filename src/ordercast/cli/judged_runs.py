"""The runs of a folder, judged one by one: by the oracles in this process, or over columns on Spark.

A run that cannot be read gets an error instead of a verdict, and the others are judged all the same.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.cli.output import errors, progress_bar
from ordercast.cli.sweep import progress_shown
from ordercast.core import OrdercastError
from ordercast.judge import Damage, Holes, Judged, NodeHoles, Violation, verdict_on_files
from ordercast.scenario.stored_replay import stored_replay
from ordercast.trace import CARRYING, ORDERED, StoredRun
from ordercast.trace.survey import Folder, NamedRun, survey_folder

MANY_EVENTS = 3_000_000
_LATE = [kind for kind in CARRYING if kind not in ORDERED]


class JudgedRun(msgspec.Struct, kw_only=True):
    """What a judge found in one run."""

    name: str
    events: int = 0
    complete: bool = True
    serves: bool = False
    """Whether the run has a service."""
    violations: list[Violation] = []
    suppressed: int = 0
    holes: Holes | None = None
    uncounted: bool = False
    """Whether the protocol allows holes, but the run did not settle, so that they cannot be counted."""
    out_of_order: int | None = None
    """Deliveries tagged as out of order; no order is checked for them. None if they were not counted."""
    damage: tuple[Damage, ...] = ()
    unhashed: bool = False
    """Whether the run has a hash that was not compared with its events."""
    error: str = ""
    """Why the run cannot be read; empty if it can."""

    @property
    def verdict(self) -> Literal["kept", "violated", "damaged", "unreadable"]:
        """The verdict in a word. A violation in a damaged trace may be the fault of the damage."""
        if self.error:
            return "unreadable"
        if self.damage:
            return "damaged"
        return "violated" if self.violations else "kept"

    @property
    def judged(self) -> bool:
        """Whether the promises of the run were judged."""
        return not self.error and not any(damage.hides_rows for damage in self.damage)


def judge_by_oracles(folder: Path) -> list[JudgedRun]:
    """Judge all runs of a folder event by event."""
    found = survey_folder(folder)
    with progress_bar() as bar:
        return [*_unreadable(found), *map(_by_oracles, bar.track(found.runs, description="judging"))]


def _unreadable(found: Folder) -> Iterator[JudgedRun]:
    return (JudgedRun(name=name, error=reason) for name, reason in found.unreadable)


def _by_oracles(named: NamedRun) -> JudgedRun:
    name, run = named
    try:
        _warn_of_size(named)
        events, judged = _judge_files(run)
    except OrdercastError as error:
        return JudgedRun(name=name, error=str(error))
    verdict, table = judged
    late = 0
    if table is not None:
        late = pc.sum(pc.is_in(table["kind"].cast(pa.string()), pa.array(_LATE, pa.string()))).as_py() or 0
    return JudgedRun(
        name=name,
        events=events,
        complete=run.description.complete,
        serves=bool(run.description.service),
        violations=verdict.violations,
        suppressed=sum(verdict.suppressed.values()),
        holes=verdict.holes,
        uncounted=run.description.may_have_holes and verdict.holes is None,
        out_of_order=late,
        damage=verdict.damage,
    )


def _judge_files(run: StoredRun) -> tuple[int, Judged]:
    files = run.files()
    return sum(len(rows.table) for rows in files), verdict_on_files(
        run.description, files, stored_replay(run)
    )


def _warn_of_size(named: NamedRun) -> None:
    """Warn about a large run: the oracles keep it in memory, with 600 to 800 bytes per event."""
    if named.run.rows > MANY_EVENTS:
        note = f"note: {named.name} has {named.run.rows} events; --master judges large runs in parts"
        errors.print(note, markup=False, soft_wrap=True)


def judge_on_spark(folder: Path, master: str) -> list[JudgedRun]:
    """Judge all runs of a folder over columns, on Spark."""
    from ordercast.pipeline.session import check_master, running_spark
    from ordercast.pipeline.traces import traces_table
    from ordercast.pipeline.verify import judge_all

    check_master(master)
    found = survey_folder(folder.absolute())  # report errors in the folder before Spark starts
    if not found.runs:
        return list(_unreadable(found))
    with progress_shown() as report, running_spark(master, f"ordercast check {folder}") as spark:
        rows = judge_all(spark.createDataFrame(traces_table(found.runs)), report)
    runs = {str(named.run.folder): named.run for named in found.runs}
    return [*_unreadable(found), *(_of_row(row, runs[row["folder"]]) for row in rows)]


def _of_row(row: Any, run: StoredRun) -> JudgedRun:
    """What a row of VERDICTS says, which is a row of Spark."""
    if row["error"]:
        return JudgedRun(name=row["run"], error=row["error"])
    holes = None
    if row["holes"] is not None:
        holes = Holes(tuple(_converted(one, NodeHoles) for one in row["holes"]), row["nowhere"])
    return JudgedRun(
        name=row["run"],
        events=row["events"],
        complete=row["complete"],
        serves=bool(run.description.service),
        violations=[_converted(one, Violation) for one in row["findings"]],
        suppressed=sum(row["suppressed"].values()),
        holes=holes,
        uncounted=run.description.may_have_holes and holes is None,
        damage=tuple(_converted(one, Damage) for one in row["damage"]),
        unhashed=run.description.trace_hash is not None and not row["hashed"],
    )


def _converted(row: Any, kind: type[Any]) -> Any:
    return msgspec.convert(row.asDict(), kind)

"""`ordercast check`: judge traces on disk, from any source."""

from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import typer

from ordercast.cli.output import (
    console,
    errors,
    holes_object,
    print_holes,
    print_json,
    print_uncounted,
    print_verdict,
    progress_bar,
    uncounted_object,
    violation_object,
)
from ordercast.cli.properties import at_end_named, print_properties
from ordercast.cli.sweep import progress_shown
from ordercast.core import RemoteError
from ordercast.judge import Holes, NodeHoles, Violation, verdict
from ordercast.trace import CARRYING, ORDERED, StoredRun, events_of, find_runs, trace_hash

MANY_EVENTS = 3_000_000


class Judgement(msgspec.Struct):
    """What the judge found in a folder of runs."""

    runs: int = 0
    events: int = 0
    found: list[tuple[str, Violation]] = []
    suppressed: int = 0
    incomplete: list[str] = []
    holes: list[tuple[str, Holes]] = []
    """The holes of each settled run whose protocol promises agreement with a probability only."""
    uncounted: list[str] = []
    """The runs of such protocols that did not settle, so that their holes cannot be counted."""
    out_of_order: int | None = None
    """Deliveries tagged as out of order; no order is checked for them. None if they were not counted."""
    altered: list[str] | None = None
    """Runs whose events do not match the stored hash; None if hashes were not compared."""


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run, or a folder of runs.")],
    master: Annotated[
        str | None,
        typer.Option(help="Judge on Spark: local[*], or spark://host:port for a cluster.", metavar="M"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    properties: Annotated[
        bool,
        typer.Option(
            "--properties",
            is_eager=True,
            callback=print_properties,
            help="List the properties that runs are judged by, and exit.",
        ),
    ] = False,
) -> int:
    """Judge the traces in a folder by the promises of their protocols.

    The exit code is 1 if a run broke a promise. Each violation is printed with a counterexample.

    Without [bold]--master[/], oracles read one event after the other in this process. With it, Spark tasks
    judge the same properties over whole columns; this is for many runs or for large ones. The two judges were
    written independently; use both if much depends on the verdict. Only the oracles compare the events with
    the stored hash and count deliveries tagged as out of order. Spark takes seconds to start, so a few small
    runs are judged faster without it.

    [bold]Examples[/]

    ordercast simulate --protocol unordered --out traces && ordercast check traces

    ordercast check traces --master 'local[*]'
    """
    judged = _by_oracles(folder) if master is None else _on_spark(folder, master)
    if json:
        violations = [violation_object(violation, run=name) for name, violation in judged.found]
        counts: dict[str, object] = {"events": judged.events, "runs": judged.runs}
        counts |= {
            "out_of_order": judged.out_of_order,
            "violations": violations,
            "suppressed": judged.suppressed,
        }
        counted = [holes_object(holes, run=name) for name, holes in judged.holes]
        counts |= {"holes": counted + [uncounted_object(run=name) for name in judged.uncounted]}
        print_json(counts | {"altered": judged.altered, "incomplete": judged.incomplete})
        return 1 if judged.found else 0
    for name in judged.altered or ():
        note = f"note: the events of {name} do not match the hash stored with it; the trace was changed"
        errors.print(note, markup=False, soft_wrap=True)
    print_verdict(
        [(f"in {name}", violation) for name, violation in judged.found],
        judged.suppressed,
        [f"{at_end_named()} of {name}, because the run is not complete" for name in judged.incomplete],
        f": {judged.runs} run{'' if judged.runs == 1 else 's'}, {judged.events} events",
    )
    if judged.out_of_order:
        plural = "y" if judged.out_of_order == 1 else "ies"
        console.print(f"{judged.out_of_order} deliver{plural} tagged as out of order")
    if judged.holes:
        print_holes([(f"in {name}", holes) for name, holes in judged.holes])
    print_uncounted(judged.uncounted)
    return 1 if judged.found else 0


def _by_oracles(folder: Path) -> Judgement:
    runs = list(find_runs(folder))
    judged = Judgement(runs=len(runs), altered=[])
    late, late_kinds = 0, pa.array([kind for kind in CARRYING if kind not in ORDERED], pa.string())
    with progress_bar() as bar:
        for run in bar.track(runs, description="judging"):
            _warn_of_size(run)
            table = run.table()
            judged.events += len(table)
            late += pc.sum(pc.is_in(table["kind"].cast(pa.string()), late_kinds)).as_py() or 0
            name = run.description.run
            if not run.description.complete:
                judged.incomplete.append(name)
            if judged.altered is not None and run.description.trace_hash not in (None, trace_hash(table)):
                judged.altered.append(name)
            found = verdict(run.description, events_of(table))
            judged.found += [(name, violation) for violation in found.violations]
            judged.suppressed += sum(found.suppressed.values())
            if found.holes is not None:
                judged.holes.append((name, found.holes))
            elif run.description.may_have_holes:
                judged.uncounted.append(name)
    judged.out_of_order = late
    return judged


def _warn_of_size(run: StoredRun) -> None:
    """Warn about a large run: the oracles keep it in memory, with 600 to 800 bytes per event."""
    events = sum(segment.rows for segment in run.open_segments())
    if events > MANY_EVENTS:
        note = f"note: {run.description.run} has {events} events; --master judges large runs in parts"
        errors.print(note, markup=False, soft_wrap=True)


def _on_spark(folder: Path, master: str) -> Judgement:
    from ordercast.pipeline.session import running_spark
    from ordercast.pipeline.traces import list_traces, open_run
    from ordercast.pipeline.verify import judge_all

    traces = list_traces(folder)  # report errors in the folder before Spark starts
    with progress_shown() as report, running_spark(master, f"ordercast check {folder}") as spark:
        rows = judge_all(spark.createDataFrame(traces), report)
    for row in rows:
        if row["error"]:
            raise RemoteError(row["error"])
    judged = Judgement(runs=len(rows), events=sum(row["events"] for row in rows))
    for row in rows:
        if not row["complete"]:
            judged.incomplete.append(row["run"])
        judged.found += [(row["run"], msgspec.convert(one.asDict(), Violation)) for one in row["findings"]]
        judged.suppressed += sum(row["suppressed"].values())
        if row["holes"] is not None:
            nodes = tuple(msgspec.convert(one.asDict(), NodeHoles) for one in row["holes"])
            judged.holes.append((row["run"], Holes(nodes, row["nowhere"])))
        elif not row["complete"] and open_run(row["folder"]).description.may_have_holes:
            judged.uncounted.append(row["run"])
    return judged

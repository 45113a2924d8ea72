"""Makes the report of any folder of runs: judges the runs, measures them and draws figures.

The folder may come from a live cluster, from simulations or from a bench. It is only read. The tables and the
page go to a separate folder; its `report.json` says what they are, so that no reader takes the tables for
traces. If a run cannot be read, the report names it and shows the others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.core import LocalError
from ordercast.judge import Damage
from ordercast.pipeline.events import select_events
from ordercast.pipeline.job import write_verdicts
from ordercast.pipeline.measure import dealt, write_metrics, write_timelines
from ordercast.pipeline.progress import Report, silent, watched
from ordercast.pipeline.schemas import HAPPENINGS, RUNS
from ordercast.pipeline.tables import read_table, write_table
from ordercast.pipeline.traces import Survey
from ordercast.pipeline.verify import judge_all
from ordercast.report.build import report as build_report
from ordercast.trace import ANSWERING, CARRYING, RETURNING, SETTLING, Kind
from ordercast.trace.survey import UnreadableRun

REPORTED = "report.json"
UNKNOWN = "unknown"
"""The protocol of a run whose description cannot be read."""

_COUNTED = {
    Kind.SUBMIT: "submitted",
    **dict.fromkeys(CARRYING, "delivered"),
    **dict.fromkeys(SETTLING, "dropped"),
    **dict.fromkeys(ANSWERING, "answered"),
    **dict.fromkeys(RETURNING, "unknown"),
}
"""The column of RUNS in which each kind counts."""
_NOTHING = {"submitted": 0, "delivered": 0, "dropped": 0, "duration_ns": 0}


class ReportMark(msgspec.Struct, frozen=True):
    """What the folder of a report is about."""

    traces: str


def report_folder(
    spark: SparkSession, survey: Survey, root: Path, out: Path, report: Report = silent
) -> Path:
    """Judge and measure the runs of a folder into `out`; the path of the page."""
    root, out = root.absolute(), out.absolute()
    _sign(out, root)
    verdicts = judge_all(spark.createDataFrame(survey.traces), report)
    write_verdicts(spark, verdicts, root, out)
    unread = {row["run"] for row in verdicts if _error(row)}
    readable = pa.array([name not in unread for name in survey.traces["run"].to_pylist()], pa.bool_())
    whole = survey.traces.filter(readable)
    traces = dealt(spark.createDataFrame(whole))
    with watched(spark.sparkContext, "measuring", len(whole), report):
        rows = _run_rows(survey, verdicts, _counts(traces), root)
        table = pa.Table.from_pylist(rows, schema=to_arrow_schema(RUNS))
        write_table(spark.createDataFrame(table), out, "runs", ["place"])
        write_table(spark.createDataFrame(survey.nodes), out, "nodes", ["run", "node"])
        write_metrics(traces, read_table(spark, out, "runs", RUNS), out)
        write_timelines(traces, out)
    return build_report(out)


def _sign(out: Path, root: Path) -> None:
    """Make the folder, and write `report.json` into it."""
    target = out / REPORTED
    try:
        if out.exists() and not target.exists() and any(out.iterdir()):
            raise LocalError(f"{out}: this folder has other files; a report needs its own folder")
        out.mkdir(parents=True, exist_ok=True)
        partial = out / f".{REPORTED}"
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(ReportMark(str(root))), indent=2))
        partial.replace(target)
    except OSError as error:
        why = error.strerror or error
        raise LocalError(f"cannot write to {out}: {why}; choose another folder with --out") from error


def _counts(traces: DataFrame) -> dict[str, dict[str, int]]:
    """The columns of RUNS that count events and time, by run; runs without events have none."""
    events = select_events(traces, tuple(_COUNTED), HAPPENINGS)
    counted = events.groupBy("run", "kind").agg(F.count(F.lit(1)), F.max("time_ns"))
    found: dict[str, dict[str, int]] = {}
    for run, kind, count, last in counted.collect():
        counts = found.setdefault(run, dict(_NOTHING))
        counts[_COUNTED[Kind(kind)]] = counts.get(_COUNTED[Kind(kind)], 0) + count
        counts["duration_ns"] = max(counts["duration_ns"], last)
    return found


def _run_rows(
    survey: Survey, verdicts: Sequence[Row], counts: Mapping[str, dict[str, int]], root: Path
) -> list[dict[str, Any]]:
    judged = {row["run"]: row for row in verdicts}
    rows: list[dict[str, Any]] = []
    for trace in survey.traces.to_pylist():
        name, verdict = trace["run"], judged[trace["run"]]
        row = {"place": len(rows), **trace, "parameters": "{}", "status": _status(verdict)}
        row |= {"error": _error(verdict), "folder": str(Path(trace["folder"]).relative_to(root))}
        row |= {"start_ns": trace["start_ns"] or None}
        if not _error(verdict):
            row |= counts.get(name, _NOTHING)
        rows.append(row)
    return rows + [_unreadable_row(len(rows) + place, run) for place, run in enumerate(survey.unreadable)]


def _error(verdict: Row) -> str | None:
    """Why the run counts as failed; None if it was judged."""
    damage = [msgspec.convert(one.asDict(), Damage) for one in verdict["damage"]]
    return f"trace damaged: {damage[0]}" if damage else verdict["error"]


def _status(verdict: Row) -> str:
    if _error(verdict):
        return "failed"
    return "violated" if verdict["findings"] else "kept"


def _unreadable_row(place: int, run: UnreadableRun) -> dict[str, Any]:
    about = {"place": place, "run": run.name, "protocol": UNKNOWN, "parameters": "{}"}
    return about | {"status": "failed", "error": run.reason}

"""Verification at scale: the vectorised judge, applied by Spark tasks to one run or to thousands.

One task reads and judges a run of usual size. A run too large for that is cut into parts, and tasks summarise
the parts. One task then collects the summaries of a run and judges in depth what they leave open. Traces do
not pass through Spark: tasks read the files themselves.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ordercast.core import LocalError, OrdercastError
from ordercast.judge import Verdict, audit_files, damaged, judge_selected, may_be_parted
from ordercast.judge.columns import COLUMNS, STORED
from ordercast.judge.columns.blocks import files_in_order, select
from ordercast.judge.columns.parts import Place, Summary, summarize
from ordercast.judge.columns.record import damage_of
from ordercast.pipeline.free_memory import free_bytes
from ordercast.pipeline.progress import Report, silent, watched
from ordercast.pipeline.schemas import VERDICTS
from ordercast.pipeline.traces import open_run, table_seed
from ordercast.scenario.stored_replay import stored_replay
from ordercast.trace import CARRYING, SCHEMA, StoredRun

WHOLE_MAX = 4_000_000
"""The most events that one task reads at once."""
HASHED_MAX = 1_000_000
"""The most events of a run that are compared with its hash: for each event, the hash takes as long as the
verdict."""
WHOLE_BYTES = 450
"""The memory that a task takes for each event of a run that it judges whole; 424 were measured, of 3.4
million events of Hydra."""
PART_ROWS = 2_000_000
TASKS_A_CORE = 16
TASKS_MAX = 1 << 20

_PARTS = StructType(
    [
        StructField("run", StringType(), False),
        StructField("folder", StringType(), False),
        StructField("segment", IntegerType(), False),  # -1: the run cannot be cut
        StructField("first", IntegerType(), False),  # row groups of the segment, from this on
        StructField("groups", IntegerType(), False),
    ]
)
_SUMMARIES = StructType(
    [
        StructField("run", StringType(), False),
        StructField("folder", StringType(), False),
        StructField("events", LongType(), False),
        StructField("summary", BinaryType()),  # null: the run cannot be cut, or see `error`
        StructField("error", StringType()),
    ]
)


class RunVerdict(NamedTuple):
    """What a task found in a run."""

    verdict: Verdict
    deliveries: int = 0
    hashed: bool = False
    """Whether the events were compared with the stored hash."""


def verify(traces: DataFrame, whole_max: int = WHOLE_MAX, part_rows: int = PART_ROWS) -> DataFrame:
    """VERDICTS of TRACES: every run, judged by all its promises."""
    runs = traces.select("run", "folder", "events")
    is_large = F.col("events") > whole_max
    count, large = runs.select(F.count("*"), F.count(F.when(is_large, 1))).head()  # type: ignore[misc]
    small = _dealt(runs.where(~is_large), count - large).mapInArrow(_judge_runs, VERDICTS)
    if not large:
        return small
    cut = partial(_cut_runs, part_rows=part_rows)
    parts = runs.where(is_large).coalesce(1).mapInArrow(cut, _PARTS)
    sum_up = partial(_sum_up, key=secrets.randbits(64))
    summaries = _dealt(parts, TASKS_MAX).mapInArrow(sum_up, _SUMMARIES)

    def put_together(table: pa.Table) -> pa.Table:
        return _judge_summaries(table, part_rows)

    judged = summaries.groupBy("folder").applyInArrow(put_together, VERDICTS)
    return small.unionByName(judged) if count > large else judged


def judge_all(traces: DataFrame, report: Report = silent) -> list[Row]:
    """All rows of VERDICTS, in order of run; `report` gets the progress."""
    context = traces.sparkSession.sparkContext
    with watched(context, "judging", traces.count(), report):
        rows = verify(traces).collect()
    # Not sorted by Spark, which would judge twice: once to find out where to divide.
    return sorted(rows, key=lambda row: (row["run"], row["folder"]))


def _dealt(rows: DataFrame, count: int) -> DataFrame:
    """The rows evenly over enough tasks that no core idles long at the end."""
    cores = rows.sparkSession.sparkContext.defaultParallelism
    # From one partition, Spark deals rows out in turn; from several, at random.
    return rows.coalesce(1).repartition(max(1, min(count, TASKS_A_CORE * cores)))


def _judge_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does with runs of usual size."""
    pa.set_cpu_count(1)  # the other cores have tasks of their own
    for row in _rows(batches):
        run = open_run(row["folder"])
        yield _verdict_batch(run, row["run"], row["events"], partial(_judge_whole, run))


def _judge_whole(run: StoredRun) -> RunVerdict:
    description = run.description
    hashed = description.trace_hash is not None and run.rows <= HASHED_MAX
    if not hashed:
        description = msgspec.structs.replace(description, trace_hash=None)
    files = run.files(SCHEMA.names if hashed else STORED)
    verdict, table = audit_files(description, files, stored_replay(run))
    if table is None:
        return RunVerdict(verdict)
    return RunVerdict(verdict, _deliveries(table), hashed)


def _cut_runs(batches: Iterator[pa.RecordBatch], part_rows: int) -> Iterator[pa.RecordBatch]:
    """The parts of large runs, as many row groups each as make up about so many rows."""
    for row in _rows(batches):
        run = open_run(row["folder"])
        parts = [(-1, 0, 0)]
        if may_be_parted(run.description):
            parts = [
                (number, first, groups)
                for number, segment in enumerate(run.open_segments())
                for first, groups in _cuts(segment.group_rows, part_rows)
            ]
        content = [
            {"run": row["run"], "folder": row["folder"], "segment": s, "first": f, "groups": g}
            for s, f, g in parts
        ]
        yield pa.RecordBatch.from_pylist(content, schema=to_arrow_schema(_PARTS))


def _cuts(group_rows: list[int], part_rows: int) -> Iterator[tuple[int, int]]:
    """Row groups in a row, with about so many rows together: the first, and how many."""
    first, rows = 0, 0
    for group, more in enumerate(group_rows):
        rows += more
        if rows >= part_rows or group == len(group_rows) - 1:
            yield first, group + 1 - first
            first, rows = group + 1, 0


def _sum_up(batches: Iterator[pa.RecordBatch], key: int) -> Iterator[pa.RecordBatch]:
    """What a task does with the parts of large runs; `key` is that of their fingerprints."""
    pa.set_cpu_count(1)
    for row in _rows(batches):
        found: dict[str, object] = {"run": row["run"], "folder": row["folder"], "events": 0}
        if row["segment"] >= 0:
            try:
                run = open_run(row["folder"])
                segment = run.open_segments()[row["segment"]]
                table = segment.read(STORED, range(row["first"], row["first"] + row["groups"]))
                before = sum(segment.group_rows[: row["first"]])
                place = Place(segment.path.name, row["segment"], before, row["first"])
                summary = summarize(run.description, table, key, place)
                found |= {"summary": msgspec.msgpack.encode(summary), "events": len(table)}
            except OrdercastError as error:
                found |= {"error": str(error)}
        yield pa.RecordBatch.from_pylist([found], schema=to_arrow_schema(_SUMMARIES))


def _judge_summaries(table: pa.Table, part_rows: int) -> pa.Table:
    """The verdict on one large run, from the summaries of its parts."""
    rows = table.to_pylist()
    run = open_run(rows[0]["folder"])

    def judge() -> RunVerdict:
        error = next((row["error"] for row in rows if row["error"]), None)
        if error:
            raise OrdercastError(error)
        if rows[0]["summary"] is None:
            _check_memory(run, "what it promises cannot be judged in parts")
            return _judge_whole(run)
        parts = [msgspec.msgpack.decode(row["summary"], type=Summary) for row in rows]
        parts.sort(key=lambda part: (part.segment, part.first))
        damage = damage_of(run.description, [part.record for part in parts])
        if damage:
            return RunVerdict(damaged(damage))
        selection = select(run.description, parts)
        if not selection.nothing and not files_in_order(parts):
            # An excerpt of several files would not be in the order of its nodes.
            selection = selection._replace(doubt="its files are not in order")

        def read_whole() -> pa.Table:
            _check_memory(run, selection.doubt or "some of its messages cannot be judged without the others")
            return run.table(COLUMNS)

        verdict = judge_selected(run.description, selection, lambda: _read_parts(run, part_rows), read_whole)
        return RunVerdict(verdict, sum(part.deliveries for part in parts))

    return pa.Table.from_batches([_verdict_batch(run, rows[0]["run"], run.rows, judge)])


def _check_memory(run: StoredRun, why: str) -> None:
    """An error if this task has too little memory for all events of a run together."""
    needed, free = run.rows * WHOLE_BYTES, free_bytes()
    if free is not None and needed > free:
        raise LocalError(
            f"one task must judge all its {run.rows} events together, because {why}. That takes about"
            f" {needed / 1e9:.2g} GB of memory, and the task may take {free / 1e9:.2g} GB: give it a machine"
            " with more memory, or raise spark.executor.pyspark.memory if that is set"
        )


def _read_parts(run: StoredRun, part_rows: int) -> Iterator[pa.Table]:
    for segment in run.open_segments():
        for first, groups in _cuts(segment.group_rows, part_rows):
            yield segment.read([*COLUMNS, "step"], range(first, first + groups))


def _verdict_batch(run: StoredRun, name: str, events: int, judge: Callable[[], RunVerdict]) -> pa.RecordBatch:
    """A row of VERDICTS; `error` says why a run could not be judged."""
    description, error = run.description, None
    try:
        judged = judge()
    except OrdercastError as reason:
        judged, error = RunVerdict(Verdict([], {})), str(reason)
    verdict = judged.verdict
    row = {
        "run": name,
        "folder": str(run.folder),
        "protocol": description.protocol,
        "seed": table_seed(description),
        "complete": description.complete,
        "events": events,
        "deliveries": judged.deliveries,
        "findings": msgspec.to_builtins(verdict.violations),
        "suppressed": list(verdict.suppressed.items()),
        "holes": None if verdict.holes is None else msgspec.to_builtins(verdict.holes.nodes),
        "nowhere": None if verdict.holes is None else verdict.holes.nowhere,
        "damage": msgspec.to_builtins(verdict.damage),
        "hashed": judged.hashed,
        "error": error,
    }
    return pa.RecordBatch.from_pylist([row], schema=to_arrow_schema(VERDICTS))


def _deliveries(table: pa.Table) -> int:
    kinds = table["kind"].value_counts()
    return sum(entry["counts"].as_py() for entry in kinds if entry["values"].as_py() in CARRYING)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()

"""From trace folders to their events: some kinds, some columns, as rows that Spark can count.

Tasks read traces with the reader of `ordercast.trace`, and only the columns that are asked for. A trace that
cannot be read fails the job, with the reader's own words.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ordercast.pipeline.schemas import CHANGES, HAPPENINGS
from ordercast.pipeline.traces import open_run
from ordercast.trace import CARRYING, CONFIGURING, SETTLING, Kind, StoredRun

BATCH_ROWS = 65_536

Shape = Callable[[pa.Table], pa.Table]
"""What makes the columns of a schema, but for `run`, of the columns of a trace."""


def happenings(traces: DataFrame) -> DataFrame:
    """HAPPENINGS of TRACES: every submission, delivery and drop notification, at its node and its time."""
    return select_events(traces, (Kind.SUBMIT, *CARRYING, *SETTLING), HAPPENINGS)


def changes(traces: DataFrame) -> DataFrame:
    """CHANGES of TRACES: every view that took effect, every crash and every return of a node."""
    columns = ("groups", "config", "members", "stamp_issuer", "label")
    kinds = (*CONFIGURING, Kind.CRASH, Kind.RECOVER)
    return select_events(traces, kinds, CHANGES, columns, _change)


def _change(table: pa.Table) -> pa.Table:
    """A view has the one group that it is of; crashes and returns have none."""
    group = pc.list_element(table["groups"], 0)
    return table.append_column("group", group).rename_columns({"stamp_issuer": "issuer"})


def select_events(
    traces: DataFrame,
    kinds: Sequence[Kind],
    schema: StructType,
    columns: Sequence[str] = (),
    shape: Shape | None = None,
) -> DataFrame:
    """The events of these kinds in all runs, in the columns of a schema.

    Besides those of the schema, `columns` are read, for `shape` to make something of them. `time_ns` and
    `submitted_ns` count from the start of the run.
    """
    wanted = [str(kind) for kind in kinds]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _read(batches, wanted, schema, columns, shape)

    return traces.select("run", "folder", "start_ns").mapInArrow(read, schema)


def stored_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, StoredRun, int]]:
    """The runs of a batch of TRACES rows, each with the name it has in the table, and its start."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("run", "folder", "start_ns"))
        for name, folder, start in zip(*columns, strict=True):
            yield name, open_run(folder), start


def _read(
    batches: Iterator[pa.RecordBatch],
    kinds: list[str],
    schema: StructType,
    columns: Sequence[str],
    shape: Shape | None,
) -> Iterator[pa.RecordBatch]:
    target, wanted = to_arrow_schema(schema), pa.array(kinds)
    named = [*(columns or [name for name in target.names if name != "run"])]
    read = list(dict.fromkeys([*named, "node", "kind", "time_ns"]))
    for name, run, start in stored_runs(batches):
        # By row groups, for a run may be larger than memory, and metrics do not ask for an order.
        for segment in run.open_segments():
            for group in range(len(segment.group_rows)):
                table = segment.read(read, [group])
                found = table.filter(pc.is_in(table["kind"].cast(pa.string()), wanted))
                found = _since(start, shape(found) if shape else found)
                # The name in the table counts: a trace may have been copied, and then two say the same.
                names = pa.array([name] * len(found), pa.string())
                found = found.add_column(0, "run", names).select(target.names).cast(target)
                yield from found.to_batches(max_chunksize=BATCH_ROWS)


def _since(start: int, table: pa.Table) -> pa.Table:
    """The same events with times that count from the start of the run."""
    if not start:
        return table
    for place, name in enumerate(table.column_names):
        if name in ("time_ns", "submitted_ns"):
            table = table.set_column(place, name, pc.subtract(table[name], start))
    return table

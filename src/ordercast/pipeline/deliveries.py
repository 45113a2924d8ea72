"""From trace folders to deliveries: what every metric is computed from.

Tasks read traces with the reader of `ordercast.trace`, and only the columns that metrics need. A trace that
cannot be read fails the job, with the reader's own words.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.schemas import DELIVERIES
from ordercast.pipeline.traces import open_run
from ordercast.trace import CARRYING, Kind, StoredRun

BATCH_ROWS = 65_536


def deliveries(traces: DataFrame) -> DataFrame:
    """DELIVERIES of TRACES: every delivery of a submitted message, in and out of order."""
    read = partial(_read_folders, kinds=CARRYING)
    return traces.select("run", "folder").mapInArrow(read, DELIVERIES)


def completions(traces: DataFrame) -> DataFrame:
    """The same columns for the moments at which closed-loop clients had all answers (`complete`).

    `node` is the client, `position` is null. The latency of a completion is what a client of Hydra's
    section 7.1 measures: from sending a message until the last receiver's reply.
    """
    read = partial(_read_folders, kinds=(Kind.COMPLETE,))
    return traces.select("run", "folder").mapInArrow(read, DELIVERIES)


def stored_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, StoredRun]]:
    """The runs of a batch of TRACES rows, each with the name it has in the table."""
    for batch in batches:
        rows = zip(batch.column("run").to_pylist(), batch.column("folder").to_pylist(), strict=True)
        for name, folder in rows:
            yield name, open_run(folder)


def _read_folders(batches: Iterator[pa.RecordBatch], kinds: tuple[Kind, ...]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(DELIVERIES)
    columns = [*schema.names[1:], "kind"]
    wanted = pa.array([str(kind) for kind in kinds])
    for name, run in stored_runs(batches):
        # By row groups, for a run may be larger than memory, and metrics do not ask for an order.
        for segment in run.open_segments():
            for group in range(len(segment.group_rows)):
                table = segment.read(columns, [group])
                found = table.filter(pc.is_in(table["kind"].cast(pa.string()), wanted))
                # What a protocol made up carries no message, and was never submitted.
                found = found.filter(
                    pc.and_(pc.is_valid(found["message"]), pc.is_valid(found["submitted_ns"]))
                )
                # The name in the table counts: a trace may have been copied, and then two say the same.
                names = pa.array([name] * len(found), pa.string())
                found = found.add_column(0, "run", names).select(schema.names).cast(schema)
                yield from found.to_batches(max_chunksize=BATCH_ROWS)

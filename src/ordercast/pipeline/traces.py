"""From a folder to its traces: a row for each run that is there, simulated or live."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.schemas import TRACES
from ordercast.trace import StoredRun, find_runs


def traces(spark: SparkSession, root: Path) -> DataFrame:
    """TRACES of all runs at or below a folder."""
    return spark.createDataFrame(list_traces(root))


def list_traces(root: Path) -> pa.Table:
    """The same before Spark has started; an error if there is no trace, or one that cannot be read."""
    rows = [_row(run) for run in find_runs(root.absolute())]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(TRACES))


def _row(run: StoredRun) -> dict[str, object]:
    description = run.description
    return {
        "run": description.run,
        "folder": str(run.folder),
        "protocol": description.protocol,
        "seed": description.seed,
        "source": description.source,
        "complete": description.complete,
        "events": sum(segment.rows for segment in run.open_segments()),
    }


def open_run(folder: str) -> StoredRun:
    """The run in a folder that a row of TRACES names."""
    (run,) = find_runs(Path(folder))
    return run

"""Small tables and traces for the tests of the pipeline."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ordercast.pipeline.schemas import DELIVERIES, TRACES
from ordercast.sim import Run, Scenario, simulate


def deliveries_frame(spark: SparkSession, rows: Iterable[Sequence[object]]) -> DataFrame:
    """DELIVERIES from (run, node, position, message, time_ns, submitted_ns)."""
    return spark.createDataFrame([tuple(row) for row in rows], DELIVERIES)


def latencies_frame(spark: SparkSession, latencies: Mapping[str, Iterable[int]]) -> DataFrame:
    """DELIVERIES of messages that were all submitted at time 0."""
    rows = [
        (run, 0, place, place, int(value), 0)
        for run, values in latencies.items()
        for place, value in enumerate(values)
    ]
    return deliveries_frame(spark, rows)


def traces_frame(spark: SparkSession, folders: Iterable[Path]) -> DataFrame:
    """TRACES of run folders."""
    rows = [(folder.name, str(folder), "unordered", 1, "simulator", True, 1, 0) for folder in folders]
    return spark.createDataFrame(rows, TRACES)


def stored(scenarios: Iterable[Scenario], folder: Path) -> tuple[list[Run], list[Path]]:
    """Runs, and where their traces are."""
    runs = [simulate(scenario) for scenario in scenarios]
    return runs, [run.write(folder) for run in runs]


def types(schema: StructType) -> list[tuple[str, str]]:
    """Names and types of the columns, without nullability, which Spark widens as it computes."""
    return [(field.name, field.dataType.simpleString()) for field in schema]

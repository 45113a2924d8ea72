"""Holes as Spark counts them: like the oracles, whether a run is judged whole or in parts."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.judge import Holes, verdict
from ordercast.pipeline.traces import list_traces
from ordercast.pipeline.verify import verify
from ordercast.trace import events_of, find_runs
from tests.cli.conftest import Command, ordercast
from tests.cli.test_holes import holed, not_complete

__all__ = ["holed", "ordercast"]  # fixtures


@pytest.mark.parametrize(("whole_max", "part_rows"), [(1 << 30, 1), (0, 60)])
def test_spark_counts_what_the_oracles_count(
    spark: SparkSession, holed: Path, whole_max: int, part_rows: int
) -> None:
    (run,) = find_runs(holed)
    pq.write_table(run.table(), run.folder / "events.parquet", row_group_size=30)
    (run,) = find_runs(holed)
    told = verdict(run.description, events_of(run.table())).holes
    (row,) = verify(spark.createDataFrame(list_traces(holed)), whole_max, part_rows).collect()
    assert told is not None and told != Holes()
    assert row["error"] is None
    assert row["nowhere"] == told.nowhere
    assert [(one["node"], one["standing"], one["count"], tuple(one["messages"])) for one in row["holes"]] == [
        (one.node, one.standing, one.count, one.messages) for one in told.nodes
    ]


@pytest.mark.usefixtures("here")
def test_the_command_says_the_same_with_and_without_spark(ordercast: Command, holed: Path) -> None:
    alone, on_spark = (
        ordercast("check", holed, *words, "--json").json() for words in ((), ("--master", "local[2]"))
    )
    assert alone["holes"] == on_spark["holes"] != []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("settled", [False, True])
def test_so_it_does_of_a_run_that_was_not_complete(ordercast: Command, holed: Path, settled: bool) -> None:
    not_complete(holed, settled=settled)
    alone, on_spark = (
        ordercast("check", holed, *words, "--json").json() for words in ((), ("--master", "local[2]"))
    )
    assert alone["holes"] == on_spark["holes"]
    assert (alone["holes"][0]["count"] is None) is not settled

"""A sweep is measured into tables of the declared schemas, and its report shows them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ordercast.pipeline import schemas
from ordercast.pipeline.measure import measure, measure_clients, traces_of
from ordercast.pipeline.schemas import RUNS, TRACES
from ordercast.pipeline.sweep import run_sweep
from ordercast.pipeline.sweep_file import load_sweep
from ordercast.pipeline.tables import read_table, write_table
from ordercast.report.build import report
from tests.spark.frames import types

SWEEP = """
seeds = "0:2"

[scenario]
settle_ms = 100
workload = { kind = "closed", messages = 200, timeout_ms = 20 }

[[scenario.fault]]
kind = "crash"
at_ms = 5
host = 0

[[scenario.fault]]
kind = "restart"
at_ms = 60
host = 0

[grid]
protocol = ["unordered", "atomic_multicast"]
senders = [1, 3]
"""

TABLES = {
    "latency_histogram": schemas.HISTOGRAM,
    "latency": schemas.LATENCY,
    "point_histogram": schemas.POINT_HISTOGRAM,
    "point_latency": schemas.POINT_LATENCY,
    "point_distribution": schemas.POINT_DISTRIBUTION,
    "throughput": schemas.THROUGHPUT,
    "rates": schemas.RATES,
    "node_deliveries": schemas.NODE_DELIVERIES,
    "recoveries": schemas.RECOVERIES,
    "client_latency": schemas.LATENCY,
    "client_rates": schemas.RATES,
}


def test_from_a_sweep_to_its_report(spark: SparkSession, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    runs = run_sweep(spark, load_sweep(file), out).runs
    measure(spark, out)
    measure_clients(spark, out)
    tables = {name: read_table(spark, out, name, schema) for name, schema in TABLES.items()}
    delivered = {row["run"]: row["delivered"] for row in runs.collect()}
    assert {row["run"]: row["deliveries"] for row in tables["latency"].collect()} == delivered
    assert tables["point_latency"].count() == 4
    assert tables["point_latency"].agg(F.sum("deliveries")).collect()[0][0] == sum(delivered.values())
    per_node = tables["node_deliveries"].groupBy("run").sum("deliveries").collect()
    assert {row["run"]: row[1] for row in per_node} == delivered
    # Two faults and three receivers in each of eight runs.
    assert tables["recoveries"].count() == 8 * 2 * 3
    assert tables["client_rates"].count() == 8
    text = report(out).read_text()
    for words in ("Latency of unordered", "Throughput of atomic_multicast over time", "senders 3", "restart"):
        assert words in text
    assert text.count("<svg") == 4


SERVED = """
seeds = "0:2"

[scenario]
protocol = "unreplicated"
senders = 2
service = "kv"
history = true
[scenario.workload]
messages = 60
"""


def test_clients_of_a_service_are_measured(spark: SparkSession, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "sweep.toml"
    file.write_text(SERVED)
    for _ in range(2):  # the second time, finished runs are found, with their values
        runs = run_sweep(spark, load_sweep(file), out).runs.collect()
    assert [(row["answered"], row["unknown"], row["status"]) for row in runs] == [(60, 0, "kept")] * 2
    assert len(list(out.rglob("history/values.parquet"))) == 2
    measure(spark, out)
    latency = read_table(spark, out, "client_latency", schemas.LATENCY).collect()
    assert [row["deliveries"] for row in latency] == [60, 60]
    assert read_table(spark, out, "client_rates", schemas.RATES).count() == 2


def test_runs_that_failed_have_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    common = {"protocol": "p", "seed": 1, "parameters": "{}"}
    rows = [
        {
            "place": 0,
            "run": "a",
            "status": "kept",
            "source": "scale engine",
            "folder": "traces/a",
            "complete": True,
            "events": 3,
            **common,
        },
        {"place": 1, "run": "b", "status": "failed", "error": "out of memory", **common},
    ]
    traces = traces_of(spark.createDataFrame(rows, RUNS), tmp_path)
    assert types(traces.schema) == types(TRACES)
    assert [tuple(row) for row in traces.collect()] == [
        ("a", f"{tmp_path}/traces/a", "p", 1, "scale engine", True, 3, 0)
    ]
    assert traces.rdd.getNumPartitions() > 1


@pytest.mark.parametrize("make", [measure, measure_clients])
def test_a_sweep_without_any_run_can_be_measured(
    spark: SparkSession, tmp_path: Path, make: Callable[[SparkSession, Path], None]
) -> None:
    write_table(spark.createDataFrame([], RUNS), tmp_path, "runs", ["place"])
    make(spark, tmp_path)
    name = "latency" if make is measure else "client_latency"
    assert read_table(spark, tmp_path, name, schemas.LATENCY).count() == 0

"""Deliveries come out of traces as they are, and throughput counts every one of them once."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from ordercast.pipeline.deliveries import completions, deliveries
from ordercast.pipeline.histogram import RELATIVE_ERROR
from ordercast.pipeline.metrics import (
    deliveries_per_node,
    latency,
    latency_histogram,
    steady_rates,
    throughput,
)
from ordercast.pipeline.schemas import DELIVERIES, NODE_DELIVERIES, RATES, THROUGHPUT
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.trace import Kind
from tests.spark.frames import deliveries_frame, stored, traces_frame, types

JITTERY = NetworkSpec(latency=UniformSpec(50, 5_000), loss=0.05)
CLOSED = WorkloadSpec(kind="closed", messages=300, outstanding=2)


def scenarios() -> list[Scenario]:
    return [
        Scenario(protocol="unordered", seed=1, network=JITTERY, workload=WorkloadSpec(messages=400)),
        Scenario(protocol="atomic_multicast", seed=2, network=JITTERY, workload=CLOSED, senders=2),
    ]


def test_deliveries_are_those_of_the_traces(spark: SparkSession, tmp_path: Path) -> None:
    runs, folders = stored(scenarios(), tmp_path)
    frame = deliveries(traces_frame(spark, folders))
    assert types(frame.schema) == types(DELIVERIES)
    found = Counter(tuple(row) for row in frame.collect())
    expected: Counter[tuple[object, ...]] = Counter()
    for run in runs:
        positions: Counter[int] = Counter()
        for event in run.events():
            if event.kind is Kind.DELIVER:
                place = positions[event.node]
                positions[event.node] += 1
                row = (event.node, place, event.message, event.time_ns, event.submitted_ns)
                expected[(run.description.run, *row)] += 1
    assert found == expected
    assert sum(found.values()) > 1000


def test_latencies_agree_with_the_summary_of_the_run(spark: SparkSession, tmp_path: Path) -> None:
    runs, folders = stored(scenarios(), tmp_path)
    found = latency(latency_histogram(deliveries(traces_frame(spark, folders)))).collect()
    for run in runs:
        (row,) = (row for row in found if row["run"] == run.description.run)
        said = run.summary()
        assert row["deliveries"] == said.delivered
        assert row["max_ns"] == said.latency_ns["max"]
        assert row["p50_ns"] == pytest.approx(said.latency_ns["p50"], rel=0.02)
        exact = [
            event.time_ns - event.submitted_ns
            for event in run.events()
            if event.kind is Kind.DELIVER and event.submitted_ns is not None
        ]
        p99 = float(np.quantile(exact, 0.99, method="inverted_cdf"))
        assert row["p99_ns"] == pytest.approx(p99, rel=RELATIVE_ERROR)


def test_completions_are_what_clients_measured(spark: SparkSession, tmp_path: Path) -> None:
    runs, folders = stored(scenarios(), tmp_path)
    found = {tuple(row)[1:] for row in completions(traces_frame(spark, folders)).collect()}
    (_, closed) = runs
    expected = {
        (event.node, None, event.message, event.time_ns, event.submitted_ns)
        for event in closed.events()
        if event.kind is Kind.COMPLETE
    }
    assert found == expected
    assert len(expected) == 300 - closed.timed_out  # answers are lost too


def test_a_trace_that_is_gone_fails_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PythonException, match="absent: no such folder"):
        deliveries(traces_frame(spark, [tmp_path / "absent"])).count()


def test_windows_count_new_messages_and_all_deliveries(spark: SparkSession) -> None:
    rows = [
        ("a", 0, 0, 1, 5, 0),
        ("a", 1, 0, 1, 12, 0),  # the same message again, in the next window: not new
        ("a", 0, 1, 2, 19, 0),
        ("a", 0, 2, 3, 40, 0),  # two windows after: the one between is empty, and has a row
        ("b", 0, 0, 1, 9, 0),
    ]
    frame = throughput(deliveries_frame(spark, rows), 10)
    assert types(frame.schema) == types(THROUGHPUT)
    found = sorted(tuple(row) for row in frame.collect())
    assert found == [
        ("a", 0, 10, 1, 1),
        ("a", 10, 10, 1, 2),
        ("a", 20, 10, 0, 0),
        ("a", 30, 10, 0, 0),
        ("a", 40, 10, 1, 1),
        ("b", 0, 10, 1, 1),
    ]


@pytest.mark.parametrize("last", [0, 1, 127_999, 128_000, 128_001, 999_999_999, 86_400_000_000_000])
def test_a_run_has_64_to_128_windows_of_its_own(spark: SparkSession, last: int) -> None:
    found = throughput(deliveries_frame(spark, [("a", 0, 0, 1, last, 0)])).collect()
    window = found[0]["window_ns"]
    assert window % 1000 == 0
    assert (window // 1000).bit_count() == 1
    assert window == 1000 or 64 <= len(found) <= 128
    assert max(row["start_ns"] for row in found) <= last < max(row["start_ns"] for row in found) + window
    assert [row["messages"] for row in sorted(found, key=lambda row: row["start_ns"])][-1] == 1


def test_every_delivery_is_in_one_window(spark: SparkSession, tmp_path: Path) -> None:
    runs, folders = stored(scenarios(), tmp_path)
    frame = throughput(deliveries(traces_frame(spark, folders)))
    sums = {row["run"]: row for row in frame.groupBy("run").sum("messages", "deliveries").collect()}
    for run in runs:
        row = sums[run.description.run]
        assert row["sum(deliveries)"] == run.summary().delivered
        assert row["sum(messages)"] == len({m for node in range(3) for m in run.order(node)})


def test_the_steady_rate_leaves_out_both_ends(spark: SparkSession) -> None:
    # Ten windows of 1 us: nothing at first, then two messages a window, then a burst in the last.
    times = [window * 1000 + offset for window in range(2, 8) for offset in (1, 2)]
    times += [9_500 + n for n in range(300)]
    rows = [("a", 0, place, place, time, 0) for place, time in enumerate(times)]
    frame = steady_rates(throughput(deliveries_frame(spark, rows), 1000))
    assert types(frame.schema) == types(RATES)
    assert frame.collect()[0].asDict() == {"run": "a", "messages_per_s": 2e6, "deliveries_per_s": 2e6}


def test_deliveries_of_each_node(spark: SparkSession) -> None:
    rows = [("a", 0, 0, 1, 5, 0), ("a", 0, 1, 2, 9, 0), ("a", 1, 0, 1, 7, 0), ("b", 0, 0, 1, 3, 0)]
    frame = deliveries_per_node(deliveries_frame(spark, rows))
    assert types(frame.schema) == types(NODE_DELIVERIES)
    found = sorted(tuple(row) for row in frame.collect())
    assert found == [("a", 0, 2, 5, 9), ("a", 1, 1, 7, 7), ("b", 0, 1, 3, 3)]

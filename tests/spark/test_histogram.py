"""Buckets have a bounded relative width, and quantiles from them are within the stated error."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ordercast.pipeline.histogram import RELATIVE_ERROR, bucket_of, lower_of, middle_of, width_of
from ordercast.pipeline.metrics import (
    latency,
    latency_distribution,
    latency_histogram,
    point_distribution,
    point_histogram,
    point_latency,
)
from ordercast.pipeline.schemas import (
    DISTRIBUTION,
    HISTOGRAM,
    LATENCY,
    POINT_DISTRIBUTION,
    POINT_HISTOGRAM,
    POINT_LATENCY,
    RUNS,
)
from tests.spark.frames import latencies_frame, types

QUANTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999}
RNG = np.random.default_rng(7)
SAMPLES: dict[str, np.ndarray] = {
    "lognormal": RNG.lognormal(11, 1.5, 20_000).astype(np.int64),
    "uniform": RNG.integers(0, 5_000_000_000, 20_000),
    "two humps": np.concatenate((RNG.normal(5e4, 2e3, 19_950), RNG.normal(9e8, 1e7, 50))).astype(np.int64),
    "pareto": (1e4 * (1 + RNG.pareto(0.9, 20_000))).astype(np.int64),
    "constant": np.full(1_000, 123_457),
    "tiny": RNG.integers(0, 40, 999),
    "one": np.array([77_777]),
}


def test_buckets_hold_what_they_say(spark: SparkSession) -> None:
    powers = [1 << n for n in range(63)]
    values = sorted({0, (1 << 63) - 1, *powers, *(p - 1 for p in powers), *(p + 1 for p in powers[1:])})
    values += [int(value) for value in RNG.integers(0, 1 << 62, 2_000)]
    frame = spark.createDataFrame([(value,) for value in values], "value long")
    bucket = F.col("bucket")
    rows = (
        frame.withColumn("bucket", bucket_of(F.col("value")))
        .select("value", "bucket", lower_of(bucket), width_of(bucket), middle_of(bucket))
        .collect()
    )
    for value, _, lower, width, middle in rows:
        assert lower <= value < lower + width
        assert width == 1 or width * 128 <= lower
        assert abs(middle - value) <= RELATIVE_ERROR * value
    ordered = sorted((value, bucket) for value, bucket, *_ in rows)
    assert [bucket for _, bucket in ordered] == sorted(bucket for _, bucket in ordered)


def test_the_stated_error_is_below_one_percent() -> None:
    assert RELATIVE_ERROR <= 0.01


def test_quantiles_are_within_the_stated_error(spark: SparkSession) -> None:
    histograms = latency_histogram(latencies_frame(spark, SAMPLES))
    found = {row["run"]: row.asDict() for row in latency(histograms).collect()}
    assert set(found) == set(SAMPLES)
    for run, values in SAMPLES.items():
        row = found[run]
        assert row["deliveries"] == len(values)
        assert row["max_ns"] == values.max()
        assert row["mean_ns"] == pytest.approx(values.mean(), rel=RELATIVE_ERROR)
        for name, q in QUANTILES.items():
            exact = int(np.quantile(values, q, method="inverted_cdf"))
            assert abs(row[name] - exact) <= RELATIVE_ERROR * exact, (run, name)


def test_distributions_are_exact_where_they_have_points(spark: SparkSession) -> None:
    rows = latency_distribution(latency_histogram(latencies_frame(spark, SAMPLES))).collect()
    for run, values in SAMPLES.items():
        ordered = np.sort(values)
        for row in (row for row in rows if row["run"] == run):
            below = int(np.searchsorted(ordered, row["latency_ns"], side="right"))
            assert row["deliveries"] == below
            assert row["share"] == pytest.approx(below / len(values), rel=1e-12)
    assert max(row["share"] for row in rows if row["run"] == "uniform") == 1.0


def test_merging_seeds_loses_nothing(spark: SparkSession) -> None:
    whole = SAMPLES["pareto"]
    parts = {"a": whole[:100], "b": whole[100:15_000], "c": whole[15_000:], "else": SAMPLES["tiny"]}
    rows = [
        {"place": place, "run": run, "protocol": "p", "seed": place, "parameters": point, "status": "kept"}
        for place, (run, point) in enumerate({"a": "{}", "b": "{}", "c": "{}", "else": '{"x":1}'}.items())
    ]
    runs = spark.createDataFrame(rows, RUNS)
    merged = point_histogram(latency_histogram(latencies_frame(spark, parts)), runs)
    alone = latency(latency_histogram(latencies_frame(spark, {"whole": whole}))).collect()[0].asDict()
    points = {row["parameters"]: row.asDict() for row in point_latency(merged).collect()}
    for name in ("deliveries", *QUANTILES, "max_ns"):
        assert points["{}"][name] == alone[name]
    assert points['{"x":1}']["deliveries"] == 999
    shares = point_distribution(merged).where("parameters = '{}'").collect()
    assert max(row["deliveries"] for row in shares) == len(whole)


def test_a_negative_latency_counts_as_none(spark: SparkSession) -> None:
    row = latency(latency_histogram(latencies_frame(spark, {"live": [-5, -1, 10]}))).collect()[0]
    assert (row["p50_ns"], row["p90_ns"], row["max_ns"]) == (0, 10, 10)


def test_long_latencies_do_not_overflow(spark: SparkSession) -> None:
    huge = [(1 << 62) + n for n in range(10)]
    row = latency(latency_histogram(latencies_frame(spark, {"huge": huge}))).collect()[0]
    assert row["mean_ns"] == pytest.approx(2.0**62, rel=RELATIVE_ERROR)


def test_schemas_are_as_declared(spark: SparkSession) -> None:
    histograms = latency_histogram(latencies_frame(spark, {"r": [1, 2]}))
    merged = point_histogram(histograms, spark.createDataFrame([], RUNS))
    made = [
        histograms,
        latency(histograms),
        latency_distribution(histograms),
        merged,
        point_latency(merged),
        point_distribution(merged),
    ]
    declared = [HISTOGRAM, LATENCY, DISTRIBUTION, POINT_HISTOGRAM, POINT_LATENCY, POINT_DISTRIBUTION]
    assert [types(frame.schema) for frame in made] == [types(schema) for schema in declared]

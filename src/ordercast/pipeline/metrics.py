"""Computes measurements from deliveries: latencies, throughput over time, and deliveries per node.

Pure functions from table to table, aggregated by Spark itself. The schemas are in `schemas.py`; how
latencies are counted is in `histogram.py`, recoveries after faults are in `recoveries.py`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ordercast.core import MICROSECOND
from ordercast.pipeline import histogram
from ordercast.pipeline.schemas import (
    ACTIVITY,
    DISTRIBUTION,
    HISTOGRAM,
    LATENCY,
    NODE_DELIVERIES,
    NODE_LATENCY,
    POINT_DISTRIBUTION,
    POINT_HISTOGRAM,
    POINT_LATENCY,
    RATES,
    THROUGHPUT,
    WINDOW_LATENCY,
)

_RUN = ["run"]
POINT = ["protocol", "parameters"]
"""The columns that are equal in runs that differ only in their seeds."""

WINDOWS_MAX = 128
"""A run is cut into 64 to 128 windows, unless the caller gives their length."""
RAMP = 0.2
"""Share of the windows at each end of a run that does not count for its steady rate."""


def latency_histogram(deliveries: DataFrame) -> DataFrame:
    """HISTOGRAM of DELIVERIES: how many deliveries of each run took how long, from submission."""
    return _as(histogram.histogram(deliveries, _RUN, _taken()), HISTOGRAM)


def latency(histograms: DataFrame) -> DataFrame:
    """LATENCY of HISTOGRAM."""
    return _as(histogram.quantiles(histograms, _RUN), LATENCY)


def node_latency(deliveries: DataFrame) -> DataFrame:
    """NODE_LATENCY of DELIVERIES: the latency of what each node delivered."""
    keys = [*_RUN, "node"]
    return _as(histogram.quantiles(histogram.histogram(deliveries, keys, _taken()), keys), NODE_LATENCY)


def window_latency(deliveries: DataFrame) -> DataFrame:
    """WINDOW_LATENCY of DELIVERIES: the latency of what was delivered in each window, by all receivers."""
    spans = _spans(deliveries)
    timed = deliveries.join(F.broadcast(spans), "run")
    placed = timed.withColumn("start_ns", _index("time_ns") * F.col("window_ns"))
    keys = [*_RUN, "start_ns", "window_ns"]
    return _as(histogram.quantiles(histogram.histogram(placed, keys, _taken()), keys), WINDOW_LATENCY)


def activity(happenings: DataFrame) -> DataFrame:
    """ACTIVITY of HAPPENINGS: how much of each kind happened at each node, window by window."""
    timed = happenings.join(F.broadcast(_spans(happenings)), "run")
    start = (_index("time_ns") * F.col("window_ns")).alias("start_ns")
    counted = timed.groupBy("run", "node", "kind", start, "window_ns").agg(F.count(F.lit(1)).alias("events"))
    return _as(counted, ACTIVITY)


def latency_distribution(histograms: DataFrame) -> DataFrame:
    """DISTRIBUTION of HISTOGRAM: the cumulative distribution of each run."""
    return _as(histogram.distribution(histograms, _RUN), DISTRIBUTION)


def point_histogram(histograms: DataFrame, runs: DataFrame) -> DataFrame:
    """POINT_HISTOGRAM of HISTOGRAM and RUNS: the histograms of all seeds of a point, as one."""
    named = histograms.join(runs.select("run", *POINT), "run")
    return _as(histogram.merge(named, POINT), POINT_HISTOGRAM)


def point_latency(histograms: DataFrame) -> DataFrame:
    """POINT_LATENCY of POINT_HISTOGRAM."""
    return _as(histogram.quantiles(histograms, POINT), POINT_LATENCY)


def point_distribution(histograms: DataFrame) -> DataFrame:
    """POINT_DISTRIBUTION of POINT_HISTOGRAM: the cumulative distribution of each point."""
    return _as(histogram.distribution(histograms, POINT), POINT_DISTRIBUTION)


def throughput(deliveries: DataFrame, window_ns: int | None = None) -> DataFrame:
    """THROUGHPUT of DELIVERIES: window by window from time 0 to the last delivery of each run.

    Without a length given, each run has windows of its own, a power of two in microseconds long, so that
    windows of two runs are always of the same length or a multiple of it.
    """
    spans = _spans(deliveries, window_ns)
    windows = spans.select(
        "run", "window_ns", F.explode(F.sequence(F.lit(0).cast("bigint"), _index("_last"))).alias("_index")
    )
    # A message is new in the window of its first delivery: one row a message, with all that came of it.
    first = deliveries.groupBy("run", "message").agg(F.min("time_ns").alias("time_ns"))
    new = _count(first, spans, "messages")
    every = _count(deliveries, spans, "deliveries")
    counted = windows.join(new, ["run", "_index"], "left").join(every, ["run", "_index"], "left")
    return _as(
        counted.select(
            "run",
            (F.col("_index") * F.col("window_ns")).alias("start_ns"),
            "window_ns",
            F.coalesce("messages", F.lit(0)).alias("messages"),
            F.coalesce("deliveries", F.lit(0)).alias("deliveries"),
        ),
        THROUGHPUT,
    )


def steady_rates(throughput: DataFrame) -> DataFrame:
    """RATES of THROUGHPUT: what a run delivered by second while it was neither starting nor ending.

    The first and the last fifth of its windows do not count, if it has at least five.
    """
    index = F.col("start_ns") / F.col("window_ns")
    windows = throughput.groupBy("run").agg(F.count(F.lit(1)).alias("_windows"))
    skipped = F.floor(F.col("_windows") * RAMP)
    steady = throughput.join(windows, "run").where((index >= skipped) & (index < F.col("_windows") - skipped))
    seconds = F.sum("window_ns") / F.lit(1e9)
    rates = steady.groupBy("run").agg(
        (F.sum("messages") / seconds).alias("messages_per_s"),
        (F.sum("deliveries") / seconds).alias("deliveries_per_s"),
    )
    return _as(rates, RATES)


def deliveries_per_node(deliveries: DataFrame) -> DataFrame:
    """NODE_DELIVERIES of DELIVERIES: how much each node delivered, and when first and last."""
    counted = deliveries.groupBy("run", "node").agg(
        F.count(F.lit(1)).alias("deliveries"),
        F.min("time_ns").alias("first_ns"),
        F.max("time_ns").alias("last_ns"),
    )
    return _as(counted, NODE_DELIVERIES)


def _taken() -> Column:
    """From submission to delivery."""
    return F.col("time_ns") - F.col("submitted_ns")


def _spans(rows: DataFrame, window_ns: int | None = None) -> DataFrame:
    """For each run, its last time and how long its windows are."""
    last = rows.groupBy("run").agg(F.max("time_ns").alias("_last"))
    length = F.lit(window_ns).cast("bigint") if window_ns is not None else _window(F.col("_last"))
    return last.select("run", "_last", length.alias("window_ns"))


def _window(last: Column) -> Column:
    """The shortest power of two in microseconds of which `WINDOWS_MAX` reach to the last delivery."""
    ticks = F.ceil((last + 1) / (MICROSECOND * WINDOWS_MAX)).cast("bigint")
    # As many ones as `ticks - 1` has digits, plus one: the next power of two, without floating point.
    digits = F.when(ticks > 1, F.length(F.bin(ticks - 1))).otherwise(0)
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), digits) * MICROSECOND


def _index(time: str) -> Column:
    return F.call_function("div", F.col(time), F.col("window_ns"))


def _count(rows: DataFrame, spans: DataFrame, name: str) -> DataFrame:
    timed = rows.select("run", "time_ns").join(F.broadcast(spans.select("run", "window_ns")), "run")
    return timed.groupBy("run", _index("time_ns").alias("_index")).agg(F.count(F.lit(1)).alias(name))


def _as(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of a schema, in its order and its types."""
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in schema))

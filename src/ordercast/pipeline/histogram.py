"""Latency histograms with buckets of constant relative width, as Spark SQL expressions.

Values are integers in nanoseconds. Below 256 each has a bucket of its own; above, every power of two is cut
into 128 buckets of the same width, so that a bucket is at most 1/128 of its lower end wide and its middle is
within `RELATIVE_ERROR` = 1/256, 0.4%, of all values in it. It is all integer arithmetic: the same value is in
the same bucket everywhere, and histograms of runs, seeds or machines merge by adding the counts, which loses
nothing. That is why quantiles come from here and not from sketches: p99.9 of a merged histogram is as exact
as p50 of a single one.

A quantile q of n values is the value of rank ceil(q n), as NumPy's method `inverted_cdf` has it. A negative
latency, which only differing clocks of a live run can make, counts as 0.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_BITS = 7
_STEPS = 1 << _BITS
RELATIVE_ERROR = 1 / (2 * _STEPS)
_RANKS = {"p50_ns": 500, "p90_ns": 900, "p99_ns": 990, "p999_ns": 999}


def bucket_of(value: Column) -> Column:
    """The bucket of a value."""
    value = F.greatest(value, F.lit(0)).cast("bigint")
    # The logarithm may be rounded to the wrong side of a power of two. There both neighbours give the same
    # bucket: the last of one power and the first of the next are numbered without a gap.
    exponent = F.floor(F.log2(F.greatest(value, F.lit(1)).cast("double")))
    shift = F.greatest(exponent - _BITS, F.lit(0)).cast("int")
    return shift.cast("bigint") * _STEPS + F.call_function("shiftright", value, shift)


def lower_of(bucket: Column) -> Column:
    """The smallest value in a bucket."""
    return F.call_function("shiftleft", bucket - _shift(bucket).cast("bigint") * _STEPS, _shift(bucket))


def width_of(bucket: Column) -> Column:
    """How many values there are in a bucket."""
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), _shift(bucket))


def middle_of(bucket: Column) -> Column:
    """The value that stands for all in a bucket."""
    return lower_of(bucket) + F.call_function("shiftright", width_of(bucket) - 1, F.lit(1))


def _shift(bucket: Column) -> Column:
    return F.greatest(F.call_function("shiftright", bucket, F.lit(_BITS)) - 1, F.lit(0)).cast("int")


def histogram(values: DataFrame, keys: Sequence[str], value: Column) -> DataFrame:
    """Counts by bucket, for each combination of the keys: (keys, bucket, deliveries, max_ns)."""
    value = F.greatest(value, F.lit(0).cast("bigint"))
    return (
        values.select(*keys, value.alias("_value"))
        .groupBy(*keys, bucket_of(F.col("_value")).alias("bucket"))
        .agg(F.count(F.lit(1)).alias("deliveries"), F.max("_value").alias("max_ns"))
    )


def merge(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One histogram for each combination of fewer or other keys."""
    return histograms.groupBy(*keys, "bucket").agg(
        F.sum("deliveries").alias("deliveries"), F.max("max_ns").alias("max_ns")
    )


def quantiles(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """(keys, deliveries, mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns) of each histogram.

    The maximum is exact; the others are within `RELATIVE_ERROR` of the exact ones.
    """
    whole = Window.partitionBy(*keys)
    so_far = whole.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # Of the last bucket the longest value is known, so nothing is ever reported to be longer than it.
    stands_for = F.least(middle_of(F.col("bucket")), F.col("max_ns"))
    ranked = histograms.select(
        *keys,
        "deliveries",
        "max_ns",
        stands_for.alias("_value"),
        F.sum("deliveries").over(so_far).alias("_rank"),
        F.sum("deliveries").over(whole).alias("_all"),
    )
    at = {
        name: F.min(F.when(F.col("_rank") >= _rank(mille), F.col("_value"))) for name, mille in _RANKS.items()
    }
    weighted = F.col("_value").cast("double") * F.col("deliveries")
    return ranked.groupBy(*keys).agg(
        F.sum("deliveries").alias("deliveries"),
        (F.sum(weighted) / F.sum("deliveries")).alias("mean_ns"),
        *(quantile.alias(name) for name, quantile in at.items()),
        F.max("max_ns").alias("max_ns"),
    )


def _rank(mille: int) -> Column:
    """The rank of a quantile among all values, counted from 1, in whole numbers."""
    return F.call_function("div", F.col("_all") * mille + 999, F.lit(1000).cast("bigint"))


def distribution(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The whole distribution: (keys, latency_ns, deliveries, share), a row a bucket.

    `latency_ns` is the longest latency within the bucket, so that each row is exact: just this share took no
    longer than that.
    """
    whole = Window.partitionBy(*keys)
    so_far = whole.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    count = F.sum("deliveries").over(so_far)
    return histograms.select(
        *keys,
        F.col("max_ns").alias("latency_ns"),
        count.alias("deliveries"),
        (count / F.sum("deliveries").over(whole)).alias("share"),
    )

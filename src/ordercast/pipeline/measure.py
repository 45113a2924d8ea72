"""Measures runs: reads their traces and writes the tables of metrics."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.pipeline import metrics
from ordercast.pipeline.deliveries import completions, deliveries
from ordercast.pipeline.events import changes, happenings
from ordercast.pipeline.recoveries import recoveries
from ordercast.pipeline.schemas import RUNS, TRACES
from ordercast.pipeline.tables import read_table, write_table

_RUN = ["run"]
TASKS_A_CORE = 4


def measure(spark: SparkSession, out: Path) -> None:
    """Write the metrics of the sweep in a folder, from its table `runs` and the traces beside it."""
    runs = read_table(spark, out, "runs", RUNS)
    write_metrics(traces_of(runs, out), runs, out)


def write_metrics(traces: DataFrame, runs: DataFrame, out: Path) -> None:
    """Write the metrics of TRACES below a folder; RUNS say which of them are of the same point."""
    delivered = deliveries(traces).persist()
    histogram = metrics.latency_histogram(delivered).persist()
    points = metrics.point_histogram(histogram, runs).persist()
    windows = metrics.throughput(delivered).persist()
    try:
        write_table(histogram, out, "latency_histogram", [*_RUN, "bucket"])
        write_table(metrics.latency(histogram), out, "latency", _RUN)
        write_table(points, out, "point_histogram", [*metrics.POINT, "bucket"])
        write_table(metrics.point_latency(points), out, "point_latency", metrics.POINT)
        shares = metrics.point_distribution(points)
        write_table(shares, out, "point_distribution", [*metrics.POINT, "latency_ns"])
        write_table(windows, out, "throughput", [*_RUN, "start_ns"])
        write_table(metrics.steady_rates(windows), out, "rates", _RUN)
        write_table(metrics.deliveries_per_node(delivered), out, "node_deliveries", [*_RUN, "node"])
        write_table(recoveries(traces), out, "recoveries", [*_RUN, "fault", "node"])
    finally:
        for kept in (windows, points, histogram, delivered):
            kept.unpersist()
    if runs.where(F.col("answered") > 0).limit(1).count():
        _write_clients(traces, out)


def write_timelines(traces: DataFrame, out: Path) -> None:
    """Write the tables that show single runs: what happened when and at which node."""
    delivered, happened = deliveries(traces).persist(), happenings(traces).persist()
    try:
        node, start = [*_RUN, "node"], [*_RUN, "start_ns"]
        write_table(metrics.activity(happened), out, "activity", [*node, "kind", "start_ns"])
        write_table(metrics.window_latency(delivered), out, "window_latency", start)
        write_table(metrics.node_latency(delivered), out, "node_latency", node)
        shares = metrics.latency_distribution(metrics.latency_histogram(delivered))
        write_table(shares, out, "distribution", [*_RUN, "latency_ns"])
        write_table(changes(traces), out, "changes", [*_RUN, "time_ns", "node"])
    finally:
        for kept in (delivered, happened):
            kept.unpersist()


def measure_clients(spark: SparkSession, out: Path) -> None:
    """Write what clients saw: `client_latency` and `client_rates`, by run.

    The latency of closed-loop clients is from submission until the last receiver has answered, that of
    clients of a service until its answer. Their rate is what they completed by second.
    """
    _write_clients(traces_of(read_table(spark, out, "runs", RUNS), out), out)


def _write_clients(traces: DataFrame, out: Path) -> None:
    completed = completions(traces).persist()
    try:
        histogram = metrics.latency_histogram(completed)
        write_table(metrics.latency(histogram), out, "client_latency", _RUN)
        write_table(metrics.steady_rates(metrics.throughput(completed)), out, "client_rates", _RUN)
    finally:
        completed.unpersist()


def traces_of(runs: DataFrame, out: Path) -> DataFrame:
    """TRACES of RUNS, without those that failed and left none, dealt out evenly to tasks."""
    folder = F.concat_ws("/", F.lit(str(out.absolute())), F.col("folder"))
    start = F.coalesce("start_ns", F.lit(0).cast("bigint"))
    traces = (
        runs.where(F.col("folder").isNotNull())
        .withColumn("folder", folder)
        .withColumn("start_ns", start)
        .select(*TRACES.names)
    )
    return dealt(traces)


def dealt(traces: DataFrame) -> DataFrame:
    """TRACES, dealt out evenly to tasks."""
    cores = traces.sparkSession.sparkContext.defaultParallelism
    # From one partition, Spark deals rows out in turn; from several, at random.
    return traces.coalesce(1).repartition(TASKS_A_CORE * cores)

"""All steps of a sweep: scenarios, traces, verdicts, metrics, report.

Every step reads the files of the step before it, so that a stopped job can continue, and each table can be
made again separately.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.measure import measure, traces_of
from ordercast.pipeline.progress import Report, silent
from ordercast.pipeline.schemas import RUNS, VERDICTS
from ordercast.pipeline.sweep import run_sweep
from ordercast.pipeline.sweep_file import Sweep
from ordercast.pipeline.tables import read_table, write_table
from ordercast.pipeline.verify import judge_all
from ordercast.report.build import report as build_report


def run_job(spark: SparkSession, sweep: Sweep, out: Path, report: Report = silent) -> Path:
    """Run, judge and measure a sweep into its folder; the path of its report."""
    run_sweep(spark, sweep, out, report)
    verify_sweep(spark, out, report)
    measure(spark, out)
    return build_report(out)


def verify_sweep(spark: SparkSession, out: Path, report: Report = silent) -> None:
    """Judge the traces of a sweep once more, by columns, into its table `verdicts`."""
    found = judge_all(traces_of(read_table(spark, out, "runs", RUNS), out), report)
    write_verdicts(spark, found, out.absolute(), out)


def write_verdicts(spark: SparkSession, found: Sequence[Row], root: Path, out: Path) -> None:
    """Write rows of VERDICTS below `out`, about traces below `root`."""
    rows = [row.asDict(recursive=True) for row in found]
    for row in rows:
        # Relative, as in `runs`: the tables of a folder that was moved are still right.
        row["folder"] = str(Path(row["folder"]).relative_to(root))
        row["suppressed"] = list(row["suppressed"].items())
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(VERDICTS))
    write_table(spark.createDataFrame(table), out, "verdicts", ["run"])

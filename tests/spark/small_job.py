"""A job that touches what Spark needs Java and Python for; also run alone, as a program."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from ordercast.pipeline.session import spark_session

ROWS = 1_000


def squares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        number = batch.column("id")
        yield pa.RecordBatch.from_arrays([number, pc.multiply(number, number)], names=["id", "square"])


def sum_of_squares(spark: SparkSession, folder: Path) -> int:
    """Write numbers to Parquet, read them, square them in Python, add them up in Spark."""
    spark.range(ROWS).write.parquet(str(folder))
    squared = spark.read.parquet(str(folder)).mapInArrow(squares, "id long, square long")
    return int(squared.groupBy().sum("square").collect()[0][0])


def main(folder: str) -> None:
    found = shutil.which("java")
    spark = spark_session("local[2]", quick=True)
    jvm = spark._jvm
    assert jvm is not None
    home = jvm.java.lang.System.getProperty("java.home")
    total = sum_of_squares(spark, Path(folder))
    print(json.dumps({"java_on_path": found, "java_home": home, "total": total}))


if __name__ == "__main__":
    main(sys.argv[1])

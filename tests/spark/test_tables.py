"""Tables appear whole or not at all, and the same rows give the same bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from ordercast.core import LocalError
from ordercast.pipeline.schemas import SCENARIOS, VERDICTS
from ordercast.pipeline.tables import read_table, write_table
from ordercast.report.stored_tables import table_folder

NUMBERS = StructType([StructField("number", LongType()), StructField("name", StringType())])


def numbers(spark: SparkSession, count: int, partitions: int = 1) -> DataFrame:
    frame = spark.range(0, count, 1, partitions)
    return frame.select(f.col("id").alias("number"), f.concat(f.lit("n"), f.col("id") % 3).alias("name"))


def content(spark: SparkSession, out: Path) -> list[int]:
    return [row["number"] for row in read_table(spark, out, "numbers", NUMBERS).collect()]


def test_a_table_is_one_sorted_file_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    write_table(numbers(spark, 20, 4), tmp_path, "numbers", ["name", "number"])
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["tables", "numbers", "part-00000.parquet"]
    rows = pq.read_table(table_folder(tmp_path, "numbers")).to_pylist()
    assert len(rows) == 20
    assert rows == sorted(rows, key=lambda row: (row["name"], row["number"]))


def test_how_rows_were_spread_leaves_no_mark_in_the_bytes(spark: SparkSession, tmp_path: Path) -> None:
    for out, frame in (
        ("one", numbers(spark, 300)),
        ("two", numbers(spark, 300, 7).orderBy(f.desc("number"))),
    ):
        # Many rows have the same name: what is not in the order must not decide.
        write_table(frame, tmp_path / out, "numbers", ["name"])
    one, two = (table_folder(tmp_path / out, "numbers") / "part-00000.parquet" for out in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_columns_without_an_order_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    row: tuple[object, ...] = (
        "r", "/f", "p", 1, True, 0, 0, [], {"integrity": 3}, None, None, [], False, None,
    )  # fmt: skip
    write_table(spark.createDataFrame([row], VERDICTS), tmp_path, "verdicts", ["run"])
    (found,) = read_table(spark, tmp_path, "verdicts", VERDICTS).collect()
    assert tuple(found) == row


def test_a_new_table_replaces_the_old_one_whole(spark: SparkSession, tmp_path: Path) -> None:
    write_table(numbers(spark, 50), tmp_path, "numbers", ["number"], files=3)
    assert len(list(table_folder(tmp_path, "numbers").iterdir())) == 3
    write_table(numbers(spark, 5), tmp_path, "numbers", ["number"])
    assert content(spark, tmp_path) == [0, 1, 2, 3, 4]
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["numbers"]


def test_a_job_that_fails_leaves_the_old_table_and_its_scraps_are_swept_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = numbers(spark, 50).withColumn("number", f.expr("1 div (number - 30)"))
    with pytest.raises(PySparkException):
        write_table(bad, tmp_path, "numbers", ["number"])
    with pytest.raises(LocalError, match="no table 'numbers'"):
        read_table(spark, tmp_path, "numbers", NUMBERS)
    write_table(numbers(spark, 3), tmp_path, "numbers", ["number"])
    with pytest.raises(PySparkException):
        write_table(bad, tmp_path, "numbers", ["number"])
    assert content(spark, tmp_path) == [0, 1, 2]
    scraps = [path for path in (tmp_path / "tables").iterdir() if path.name.startswith(".")]
    assert scraps, "the failed job should have left something for this test to be about"
    write_table(numbers(spark, 4), tmp_path, "numbers", ["number"])
    assert content(spark, tmp_path) == [0, 1, 2, 3]
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["numbers"]


def test_what_a_killed_writer_left_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    write_table(numbers(spark, 3), tmp_path, "other", ["number"])
    hidden = tmp_path / "tables" / ".numbers.abc" / "ready"
    hidden.parent.mkdir()
    (tmp_path / "tables" / "other").rename(hidden)
    with pytest.raises(LocalError, match="no table 'numbers'"):
        read_table(spark, tmp_path, "numbers", NUMBERS)


def test_a_folder_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LocalError) as caught:
        read_table(spark, tmp_path / "nowhere", "runs", SCENARIOS)
    assert str(caught.value) == f"{tmp_path / 'nowhere'}: no table 'runs', because the folder does not exist"


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (StructType([StructField("colour", StringType())]), "the column 'colour' is missing"),
        (
            StructType([StructField("number", StringType())]),
            "the column 'number' is bigint, but should be string",
        ),
    ],
)
def test_columns_are_held_to_the_schema(
    spark: SparkSession, tmp_path: Path, schema: StructType, complaint: str
) -> None:
    write_table(numbers(spark, 3), tmp_path, "numbers", ["number"])
    with pytest.raises(LocalError) as caught:
        read_table(spark, tmp_path, "numbers", schema)
    assert str(caught.value) == f"{table_folder(tmp_path, 'numbers')}: {complaint}"


def test_a_file_that_is_not_parquet_is_told_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    folder = table_folder(tmp_path, "numbers")
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(LocalError, match="cannot read the table") as caught:
        read_table(spark, tmp_path, "numbers", NUMBERS)
    assert "\n" not in str(caught.value)


def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "a [1], {b} * 50% of c#d?"
    write_table(numbers(spark, 3), out, "numbers", ["number"])
    assert content(spark, out) == [0, 1, 2]


def test_a_place_that_cannot_be_written_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("in the way")
    with pytest.raises(LocalError, match="cannot write the table"):
        write_table(numbers(spark, 3), tmp_path, "numbers", ["number"])


def test_other_columns_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    folder = table_folder(tmp_path, "numbers")
    folder.mkdir(parents=True)
    pq.write_table(
        pa.table({"more": [1.5], "name": ["n"], "number": pa.array([1], pa.int64())}),
        folder / "part-00000.parquet",
    )
    assert read_table(spark, tmp_path, "numbers", NUMBERS).columns == ["number", "name"]

"""Tables on disk: `<out>/tables/<name>/part-*.parquet`, always complete.

Spark writes into a hidden folder, which is renamed when the table is complete. A job that is killed leaves
only such a hidden folder, which readers ignore and the next writer removes. A table is sorted by all its
columns, so that the same rows give the same bytes, whichever task made them.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from ordercast.core import LocalError
from ordercast.report.stored_tables import TABLES, table_folder

ROWS_A_GROUP = 1 << 17


def write_table(frame: DataFrame, out: Path, name: str, order: Sequence[str], *, files: int = 1) -> None:
    """Write a table sorted by the columns of `order`, in place of an older one of this name.

    It becomes one file. A table of many millions of rows may ask for more `files`, of about equal size: then
    where one ends and the next begins may differ from time to time.
    """
    target = table_folder(out, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f".{name}.*"):
            shutil.rmtree(stale)
        hidden = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=target.parent))
        _spread(frame, order, files).write.parquet(str(hidden / "written"))
        ready = hidden / "ready"
        ready.mkdir()
        # Spark puts an identifier into the names that is new each time, and marks and check sums beside them.
        for index, part in enumerate(sorted((hidden / "written").glob("part-*.parquet"))):
            place = ready / f"part-{index:05d}.parquet"
            _copy(part, place) if files == 1 else part.rename(place)
        if target.exists():
            target.rename(hidden / "old")
        ready.rename(target)
        shutil.rmtree(hidden)
    except OSError as error:
        raise LocalError(f"cannot write the table {target}: {error.strerror or error}") from error


def read_table(spark: SparkSession, out: Path, name: str, schema: StructType) -> DataFrame:
    """A table with the columns of this schema; an error says what is missing."""
    folder = table_folder(out, name)
    parts = sorted(folder.glob("part-*.parquet"))
    if not parts:
        raise LocalError(f"{out}: no table '{name}'" + _finished(out))
    try:
        # Asked here and not of Spark, which would start a job for it.
        found = {field.name: field.dataType for field in from_arrow_schema(pq.read_schema(parts[0]))}
    except (OSError, pa.ArrowException, PySparkException) as error:
        raise LocalError(f"{parts[0]}: cannot read the table: {str(error).splitlines()[0]}") from error
    for field in schema:
        if field.name not in found:
            raise LocalError(f"{folder}: the column '{field.name}' is missing")
        # In words, because what Parquet says of nulls is not what the schema says.
        has, wants = found[field.name].simpleString(), field.dataType.simpleString()
        if has != wants:
            raise LocalError(f"{folder}: the column '{field.name}' is {has}, but should be {wants}")
    # The path is taken literally, even if it has brackets or stars.
    return spark.read.schema(schema).option("__globPaths__", "false").parquet(str(folder))


def _copy(part: Path, target: Path) -> None:
    """Write the rows of a file again with Arrow: in what Spark writes, some bytes differ from JVM to JVM."""
    source = pq.ParquetFile(part)
    with pq.ParquetWriter(target, source.schema_arrow, compression="zstd") as writer:
        for batch in source.iter_batches(ROWS_A_GROUP):
            writer.write_batch(batch)


def _spread(frame: DataFrame, order: Sequence[str], files: int) -> DataFrame:
    """The rows in their order: by the columns given, then by all others, so that no two can change places."""
    rest = [f.name for f in frame.schema if f.name not in order and _has_order(f.dataType)]
    spread = frame.repartition(1) if files == 1 else frame.repartitionByRange(files, *order)
    return spread.sortWithinPartitions(*order, *rest)


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_has_order(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _has_order(kind.elementType)
    return not isinstance(kind, MapType)


def _finished(out: Path) -> str:
    if not out.is_dir():
        return ", because the folder does not exist"
    return (
        "" if (out / TABLES).is_dir() else "; the folder has no tables, perhaps because its sweep was stopped"
    )

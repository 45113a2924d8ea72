"""The tables of a folder, read without Spark: they are small once everything is aggregated."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.core import LocalError, RemoteError

TABLES = "tables"

Row = dict[str, Any]


def table_folder(out: Path, name: str) -> Path:
    """Where a table is, or would be."""
    return out / TABLES / name


class StoredTables:
    """Reads a table when it is asked for; one that is not there has no rows."""

    def __init__(self, out: Path) -> None:
        if not out.is_dir():
            raise LocalError(f"{out}: {'not a folder' if out.exists() else 'no such folder'}")
        self._out = out

    def has(self, name: str) -> bool:
        """Whether there is such a table."""
        return any(table_folder(self._out, name).glob("part-*.parquet"))

    def rows(self, name: str) -> list[Row]:
        """All rows of a table, in the order in which it was written."""
        rows: list[Row] = self.table(name).to_pylist() if self.has(name) else []
        return rows

    def table(self, name: str) -> pa.Table:
        """A table that is there, as Arrow columns."""
        parts = sorted(table_folder(self._out, name).glob("part-*.parquet"))
        try:
            return pa.concat_tables([pq.ParquetFile(part).read() for part in parts])
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = (str(error).splitlines() or ["it is empty"])[0]
            raise RemoteError(f"{table_folder(self._out, name)}: not a readable table: {reason}") from error

"""Traces on disk: one folder per run, with Parquet segments and `run.json`.

The events are written first and `run.json` last. Each file is written under a temporary name and then
renamed. So a folder without `run.json` is a run that was cut off, and no reader takes it for a whole run.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.core import LocalError, RemoteError
from ordercast.trace.description import FORMAT, RunDescription
from ordercast.trace.event import Kind
from ordercast.trace.table import SCHEMA, conform
from ordercast.trace.values import is_values

DESCRIPTION = "run.json"
EVENTS = "events.parquet"
_TABLES, _JOBS = "tables", ("sweep.json", "report.json")
"""The folder in which a pipeline job keeps its tables, and the files that name the job."""


class FileRows(NamedTuple):
    """The rows of one file of a run, in the order of the file."""

    name: str
    table: pa.Table


class StoredRun(NamedTuple):
    """A run found on disk; its events are read on demand."""

    folder: Path
    description: RunDescription

    def segments(self) -> list[Path]:
        """The Parquet files of this run, in order of their names."""
        return sorted(self.folder.glob("*.parquet"))

    def table(self, columns: Iterable[str] = SCHEMA.names) -> pa.Table:
        """All events of the run in order of time; the events of each node stay in their order.

        The table has at least the requested columns.
        """
        files = self.files(columns)
        runs = pc.unique(pa.chunked_array([pc.unique(rows.table["run"].cast(pa.string())) for rows in files]))
        if len(runs) > 1:
            raise RemoteError(f"{self.folder}: has events of several runs: {runs[0]}, {runs[1]}")
        return merged(files)

    def files(self, columns: Iterable[str] = SCHEMA.names) -> list[FileRows]:
        """The rows of each file as they are; they have at least the requested columns."""
        wanted = {*columns, "run", "step", "time_ns", "node", "kind"}
        named = [name for name in SCHEMA.names if name in wanted]
        return [FileRows(segment.path.name, segment.read(named)) for segment in self.open_segments()]

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(segment.rows for segment in self.open_segments())

    def open_segments(self) -> list["Segment"]:
        """The Parquet files of this run, ready to be read; at least one."""
        segments = [Segment(path) for path in self.segments()]
        if not segments:
            raise RemoteError(f"{self.folder}: has {DESCRIPTION}, but no Parquet file")
        return segments


class Segment:
    """A Parquet file of a run, read whole or in parts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _require_file(path)
        try:
            self._file = pq.ParquetFile(path)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._unreadable(error) from error
        conform(self._file.schema_arrow.empty_table(), str(path))  # shows missing columns before it is read
        self.rows: int = self._file.metadata.num_rows
        self.group_rows: list[int] = [
            self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups)
        ]
        """The number of rows of each row group."""

    def read(self, columns: Sequence[str] = SCHEMA.names, groups: Sequence[int] | None = None) -> pa.Table:
        """Some columns of all row groups or of some, in the types of the schema."""
        groups = range(len(self.group_rows)) if groups is None else groups
        ours = self._file.schema_arrow.equals(SCHEMA)
        try:
            # One file at a time: a dataset would read the folder's name as a column.
            table = self._file.read_row_groups(list(groups), columns=list(columns) if ours else None)
            table.validate(full=True)  # flipped bits within a column are found here and not later
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._unreadable(error) from error
        table = table if ours else conform(table, str(self.path)).select(list(columns))
        for name in table.column_names:
            kind = table.schema.field(name).type
            # No real value is this small, and code that works on arrays uses it for null.
            if pa.types.is_integer(kind) and pc.min(table[name]).as_py() == -(1 << (kind.bit_width - 1)):
                raise RemoteError(
                    f"{self.path}: column {name} has the smallest number of its type, which is reserved"
                )
        return table

    def first_ns(self) -> int | None:
        """The earliest time in the file, by its statistics if it has any; None if the file is empty."""
        found = [_least_time(self._file.metadata.row_group(group)) for group in range(len(self.group_rows))]
        if None in found:
            found = [pc.min(self.read(["time_ns"])["time_ns"]).as_py()]
        return min((time for time in found if time is not None), default=None)

    def _unreadable(self, error: Exception) -> RemoteError:
        return RemoteError(f"{self.path}: not a readable Parquet file: {str(error).splitlines()[0]}")


def _least_time(group: pq.RowGroupMetaData) -> int | None:
    """The earliest time of a row group by its statistics; None if it has no statistics."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == "time_ns" and column.is_stats_set and column.statistics.has_min_max:
            least: int = column.statistics.min
            return least
    return None


def merged(files: Sequence[FileRows]) -> pa.Table:
    """All rows of a run in order of time; the rows of each node stay in their order."""
    table = files[0].table if len(files) == 1 else pa.concat_tables([rows.table for rows in files])
    return _in_order_of_time(table, several=len(files) > 1)


def _in_order_of_time(table: pa.Table, several: bool) -> pa.Table:
    """Merge the rows of all nodes by time; the rows of each node stay in their order.

    The rows of a node are in the order of the file, or of their steps if there are several files. A row whose
    time is earlier than that of its node's rows before it counts with the latest of them; the judge reports
    such times. At the same instant, rows of senders come first: a message that a host delivers at once was
    submitted before.
    """
    times, nodes = table["time_ns"].to_numpy(), table["node"].to_numpy()
    if not several and (times[1:] >= times[:-1]).all():
        return table
    steps = table["step"].to_numpy() if several else np.arange(len(table))
    by_node = np.lexsort((steps, nodes))
    latest = np.empty_like(times)
    starts = np.flatnonzero(np.r_[True, nodes[by_node][1:] != nodes[by_node][:-1]])
    for first, last in zip(starts, [*starts[1:], len(table)], strict=True):
        rows = by_node[first:last]
        latest[rows] = np.maximum.accumulate(times[rows])
    senders = pc.unique(table["node"].filter(pc.equal(table["kind"].cast(pa.string()), Kind.SUBMIT)))
    receives_only = ~np.isin(nodes, senders.to_numpy())
    return table.take(np.lexsort((steps, nodes, receives_only, latest)))


def write_run(folder: Path, description: RunDescription, table: pa.Table) -> None:
    """Write one whole run into its folder; files with the same names are replaced."""
    description = msgspec.structs.replace(description, files={EVENTS: len(table)})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DESCRIPTION).unlink(missing_ok=True)
        partial = folder / f".{EVENTS}.{os.getpid()}"
        pq.write_table(table, partial, compression="zstd")
        partial.replace(folder / EVENTS)
        partial = folder / f".{DESCRIPTION}.{os.getpid()}"
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(description), indent=2))
        partial.replace(folder / DESCRIPTION)
    except OSError as error:
        raise LocalError(f"cannot write the trace to {folder}: {error.strerror or error}") from error


def find_runs(root: Path) -> Iterator[StoredRun]:
    """Every run in or below a folder, in order of path; an error if one of them is not whole."""
    for folder in run_folders(root):
        yield read_run(folder)


def run_folders(root: Path) -> list[Path]:
    """The folders in or below `root` that hold a run, whole or cut off, in order of path; at least one."""
    _existing(root)
    described = {path.parent for path in root.rglob(DESCRIPTION) if not _aside(path, root)}
    orphans = {path.parent for path in root.rglob("*.parquet") if not _aside(path, root)} - described
    if not described and not orphans:
        raise LocalError(f"{root}: no trace there (no {DESCRIPTION} in it or below)")
    # Runs that were cut off come first, so that a reader that needs all runs fails early.
    return [*sorted(orphans), *sorted(described)]


def read_run(folder: Path) -> StoredRun:
    """The run in a folder, or `RemoteError` if it was cut off or its description is not readable."""
    path = _existing(folder) / DESCRIPTION
    if not path.exists():
        raise RemoteError(
            f"{folder}: has events, but no {DESCRIPTION}: the run was cut off, or is still going on"
        )
    return StoredRun(folder, _read_description(path))


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise LocalError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    return folder


def _aside(path: Path, root: Path) -> bool:
    """Whether a file is not part of a trace: it has values, or is in a hidden folder or a job's tables."""
    if is_values(path):
        return True
    folders = path.relative_to(root).parts[:-1]
    if any(folder.startswith(".") for folder in folders):
        return True
    owners = [root.joinpath(*folders[:place]) for place, name in enumerate(folders) if name == _TABLES]
    return any((owner / job).exists() for owner in owners for job in _JOBS)


def _require_file(path: Path) -> None:
    """Refuse what is not a regular file: to read a named pipe would wait for ever."""
    if path.exists() and not path.is_file():
        raise RemoteError(f"{path}: not a regular file")


def _read_description(path: Path) -> RunDescription:
    _require_file(path)
    try:
        description = msgspec.json.decode(path.read_bytes(), type=RunDescription)
    except (OSError, msgspec.MsgspecError) as error:
        raise RemoteError(f"{path}: not a description of a run: {error}") from error
    except RecursionError as error:
        raise RemoteError(f"{path}: not a description of a run: it is nested too deeply") from error
    if description.format != FORMAT:
        raise RemoteError(f"{path}: has format {description.format}, but this version reads format {FORMAT}")
    return description

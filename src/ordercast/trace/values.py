"""The values of a run with a service: what its clients called, and what they were answered, as bytes.

A trace has no values, only their sizes and digests. A run that keeps them has a folder `history` with one
Parquet file beside its events.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.core import LocalError, MessageId, RemoteError

HISTORY = "history"
VALUES = "values.parquet"

SCHEMA = pa.schema(
    [
        pa.field("message", pa.int64(), nullable=False),
        pa.field("operation", pa.binary(), nullable=False),
        pa.field("result", pa.binary()),
    ]
)


class Values(NamedTuple):
    """The operations of a run and their results, by the identities of the operations."""

    operations: Mapping[MessageId, bytes]
    results: Mapping[MessageId, bytes]
    """The first result that a client got for an operation; there is none for some."""


def write_values(folder: Path, values: Values) -> None:
    """Write the values of a run into its folder."""
    messages = list(values.operations)
    columns = [messages, list(values.operations.values()), [values.results.get(one) for one in messages]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    target = folder / HISTORY / VALUES
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{VALUES}.{os.getpid()}")
        pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), partial, compression="zstd")
        partial.replace(target)
    except OSError as error:
        raise LocalError(f"cannot write the values to {target}: {error.strerror or error}") from error


def read_values(folder: Path) -> Values | None:
    """The values in the folder of a run; None if it has none, `RemoteError` if they cannot be read."""
    path = folder / HISTORY / VALUES
    if not path.exists():
        return None
    if not path.is_file():
        raise RemoteError(f"{path}: not a regular file")
    try:
        table = pq.ParquetFile(path).read(columns=SCHEMA.names)
        table.validate(full=True)
        messages, operations, results = (table[field.name].cast(field.type).to_pylist() for field in SCHEMA)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise RemoteError(f"{path}: not a file of values: {str(error).splitlines()[0]}") from error
    if None in messages or None in operations:
        raise RemoteError(f"{path}: a row has no message or no operation")
    answered = {one: result for one, result in zip(messages, results, strict=True) if result is not None}
    return Values(dict(zip(messages, operations, strict=True)), answered)


def is_values(path: Path) -> bool:
    """Whether a file is the values of a run, and not its events."""
    return path.name == VALUES and path.parent.name == HISTORY

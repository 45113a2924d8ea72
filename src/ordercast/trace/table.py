"""Traces as Arrow tables: the schema, conversion from rows and back, and the hash of a trace."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ordercast.core import RemoteError
from ordercast.trace.deliveries import ORDERED
from ordercast.trace.event import Event, Kind

_WORD = pa.dictionary(pa.int8(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("run", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("position", pa.int64()),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("clock_ns", pa.int64(), nullable=False),
        pa.field("node", pa.int32(), nullable=False),
        pa.field("kind", _WORD, nullable=False),
        pa.field("message", pa.int64()),
        pa.field("groups", pa.list_(pa.int32())),
        pa.field("numbers", pa.list_(pa.int64())),
        pa.field("submitted_ns", pa.int64()),
        pa.field("stamp_clock", pa.int64()),
        pa.field("stamp_issuer", pa.int64()),
        pa.field("config", pa.int64()),
        pa.field("members", pa.list_(pa.int32())),
        pa.field("peer", pa.int32()),
        pa.field("size", pa.int32()),
        pa.field("digest", pa.int64()),
        pa.field("label", pa.dictionary(pa.int32(), pa.string())),
    ]
)
_KINDS = [str(kind) for kind in Kind]
"""A list, not an array: for its first array Arrow imports pandas if installed, which takes a second."""
_KIND_CODES = {kind: code for code, kind in enumerate(Kind)}
_IS_ORDERED = np.array([kind in ORDERED for kind in Kind])


def build_table(run: str, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """The Arrow table of a run's rows, each with the fields of `Event` in order."""
    columns = dict(zip(Event._fields, zip(*rows, strict=True), strict=True)) if rows else {}
    arrays: dict[str, pa.Array] = {}
    for name in Event._fields:
        values = columns.get(name, ())
        if name == "kind":
            codes = pa.array([_KIND_CODES[kind] for kind in values], pa.int8())
            arrays[name] = pa.DictionaryArray.from_arrays(codes, pa.array(_KINDS, pa.string()))
        elif name == "label":
            arrays[name] = pa.array(values, pa.string()).dictionary_encode()
        else:
            arrays[name] = pa.array(values, SCHEMA.field(name).type)
    nodes = arrays["node"].to_numpy()
    arrays["step"] = pa.array(count_within(nodes), pa.int64())
    arrays["position"] = _positions(nodes, arrays["kind"])
    arrays["run"] = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(len(rows), np.int32)), pa.array([run], pa.string())
    )
    return pa.Table.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def count_within(keys: np.ndarray) -> np.ndarray:
    """For each element, the number of equal elements before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else order
    lengths = np.diff(np.r_[starts, len(keys)])
    counts = np.empty(len(keys), np.int64)
    counts[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return counts


def is_ordered(codes: np.ndarray) -> np.ndarray:
    """For each code of a kind, whether rows of this kind have a place in the order."""
    flags: np.ndarray = _IS_ORDERED[codes]
    return flags


def _positions(nodes: np.ndarray, kinds: pa.DictionaryArray) -> pa.Array:
    """The place of each delivered message among those of its node; null for other events."""
    delivered = is_ordered(kinds.indices.to_numpy())
    positions = np.zeros(len(nodes), np.int64)
    positions[delivered] = count_within(nodes[delivered])
    return pa.array(positions, pa.int64(), mask=~delivered)


def conform(table: pa.Table, origin: str) -> pa.Table:
    """Convert a table that another tool wrote to our schema; `RemoteError` says what is wrong with it."""
    counts = Counter(table.column_names)
    missing = [name for name in SCHEMA.names if not counts[name]]
    if missing:
        raise RemoteError(f"{origin}: no column {', '.join(missing)}")
    several = [name for name in SCHEMA.names if counts[name] > 1]
    if several:
        raise RemoteError(f"{origin}: has the column {', '.join(several)} more than once")
    columns = []
    for field in SCHEMA:
        try:
            columns.append(table[field.name].cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise RemoteError(f"{origin}: column {field.name} has the wrong type: {error}") from error
        if columns[-1].null_count and not field.nullable:
            raise RemoteError(f"{origin}: column {field.name} has the wrong type: it has nulls")
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def events_of(table: pa.Table) -> Iterator[Event]:
    """The rows of a table as events, in the order of the table; `RemoteError` if a kind is unknown."""
    for batch in table.to_batches(max_chunksize=65_536):
        columns = [_values(batch.column(name), name) for name in Event._fields]
        yield from map(Event._make, zip(*columns, strict=True))


_LISTS = ("groups", "numbers", "members")


def _values(column: pa.Array, name: str) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if name in _LISTS:
        return [None if value is None else tuple(value) for value in values]
    if name == "kind":
        try:
            return [Kind(value) for value in values]
        except ValueError as error:
            raise RemoteError(f"the trace has an unknown kind of event: {error}") from error
    return values


def trace_hash(table: pa.Table) -> str:
    """SHA-256 of all columns except the run's name, independent of chunks and encodings."""
    digest = hashlib.sha256()
    for name in SCHEMA.names:
        if name == "run":
            continue
        column = table.column(name).combine_chunks()
        digest.update(f"{name}:{len(column)};".encode())
        _update(digest, column)
    return digest.hexdigest()


def _update(digest: "hashlib._Hash", column: pa.Array) -> None:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    digest.update(np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes())
    if pa.types.is_list(column.type):
        lengths = column.value_lengths().fill_null(0)
        _update_numbers(digest, lengths.to_numpy(zero_copy_only=False))
        _update(digest, column.flatten())
    elif pa.types.is_string(column.type):
        words = column.fill_null("")
        offsets = np.frombuffer(words.buffers()[1], np.int32)[words.offset : words.offset + len(words) + 1]
        _update_numbers(digest, np.diff(offsets))
        if len(words):
            digest.update(words.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]))
    else:
        _update_numbers(digest, column.fill_null(0).to_numpy(zero_copy_only=False))


def _update_numbers(digest: "hashlib._Hash", numbers: np.ndarray) -> None:
    digest.update(np.ascontiguousarray(numbers, "<i8").data)

"""Columns of a trace as NumPy arrays, and the few operations on them that all properties need.

The smallest number of a type stands for null. No operation sorts where it can count, so that the cost of a
verdict is proportional to the length of the trace.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import RemoteError
from ordercast.trace import Kind

Ints = np.ndarray
"""A one-dimensional array of integers."""
Flags = np.ndarray
"""A one-dimensional array of truth values."""

KINDS = tuple(Kind)
CODE = {kind: code for code, kind in enumerate(KINDS)}
TABLE_MAX = 1 << 22
"""The largest size of a table of counts, unless the data are larger."""


def null_of(values: Ints) -> int:
    """The number that stands for null in an array."""
    return int(np.iinfo(values.dtype).min)


def filled(column: pa.ChunkedArray) -> Ints:
    """A column of integers, each null as the smallest number of the type."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    if column.null_count == len(column):
        return np.full(len(column), np.iinfo(dtype).min, dtype)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(int(np.iinfo(dtype).min), column.type))
    values: Ints = column.to_numpy()
    return values


def kinds_of(column: pa.ChunkedArray) -> Ints:
    """For each row, the place of its kind in `KINDS`."""
    parts = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        unknown = [word for word in words if word not in CODE]
        if unknown and pc.any(pc.equal(chunk.cast(pa.string()), unknown[0])).as_py():
            raise RemoteError(f"the trace has an unknown kind of event: '{unknown[0]}' is not a valid Kind")
        parts.append(_translated(chunk.indices.to_numpy(), [CODE.get(word, -1) for word in words]))
    return np.concatenate(parts) if parts else np.empty(0, np.int8)


def _translated(places: Ints, codes: list[int]) -> Ints:
    """The code at each place. To compare bytes with each code is many times faster than to look them up."""
    found = np.full(len(places), -1, np.int8)
    for place, code in enumerate(codes):
        np.copyto(found, np.int8(code), where=places == place)
    return found


def is_kind(codes: Ints, *kinds: Kind) -> Flags:
    """For each row's code, whether it is of one of these kinds."""
    flags = np.zeros(len(codes), bool)
    for kind in kinds:  # comparing bytes several times is faster than looking each up once
        flags |= codes == CODE[kind]
    return flags


def words_at(column: pa.ChunkedArray, rows: Ints) -> list[str | None]:
    """The words of a dictionary column in some rows."""
    words: list[str | None] = column.take(pa.array(rows)).cast(pa.string()).to_pylist()
    return words


def factorize(keys: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and for each element the place of its key among them."""
    if not len(keys):
        return keys, np.empty(0, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low >= max(TABLE_MAX, 2 * len(keys)):
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, places
    present = np.zeros(high - low + 1, bool)
    shifted = keys - low if low else keys
    present[shifted] = True
    distinct = np.flatnonzero(present) + low
    if len(distinct) == 1:
        return distinct, np.zeros(len(keys), np.int64)
    if len(distinct) == len(present):
        return distinct, shifted
    place = np.cumsum(present) - 1
    return distinct, place[shifted]


SMALL = 1 << 12


def places_of(keys: Ints) -> tuple[Ints, Ints]:
    """Keys, and for each element the place of its key among them, as a small number if that is possible.

    If all keys lie close together, the keys are all numbers between them, whether they occur or not: nothing
    is searched. Otherwise they are those that occur.
    """
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, -1)
    if high - low >= SMALL:
        return factorize(keys)
    return np.arange(low, high + 1), (keys - low).astype(np.uint16)


def by_key(keys: Ints, count: int) -> tuple[Ints, Ints]:
    """Rows sorted by key (0 to `count` - 1), stable; and where each key begins."""
    small = keys.astype(np.uint16) if count <= 1 << 16 else keys  # NumPy sorts 16 bits by counting
    order = np.argsort(small, kind="stable")
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
    return order, starts


class Lists:
    """A column of short lists, encoded as one code per row; -1 for null."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.tuples: list[tuple[int, ...]] = []
        """The different lists: what each code stands for."""
        self._codes: dict[tuple[int, ...], int] = {}
        parts = [self._encode(chunk) for chunk in column.chunks]
        self.codes: Ints = np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _encode(self, chunk: pa.ListArray) -> Ints:
        lengths, values = flat_lists(chunk)
        local = np.zeros(len(chunk), np.int64)
        columns = [positioned(lengths, values, k) for k in range(int(lengths.max(initial=0)))]
        if len(chunk) and all(column.min() == column.max() for column in (lengths, *columns)):
            content = tuple(int(column[0]) for column in columns)  # all lists are the same
            return np.full(len(chunk), -1 if lengths[0] < 0 else self._code(content), np.int32)
        for column in [lengths, *columns]:
            _, places = factorize(column)
            width = int(places.max(initial=0)) + 1
            if width > 1:
                _, local = factorize(local * width + places)
        count = int(local.max(initial=-1)) + 1
        first = np.zeros(count, np.int64)
        first[local[::-1]] = np.arange(len(chunk))[::-1]
        known = np.empty(count, np.int32)
        for code, row in enumerate(first.tolist()):
            length = int(lengths[row])
            content = tuple(int(column[row]) for column in columns[: max(0, length)])
            known[code] = -1 if length < 0 else self._code(content)
        return known[local] if count else np.empty(0, np.int32)

    def _code(self, content: tuple[int, ...]) -> int:
        code = self._codes.setdefault(content, len(self.tuples))
        if code == len(self.tuples):
            self.tuples.append(content)
        return code


def flat_lists(chunk: pa.ListArray) -> tuple[Ints, Ints]:
    """The length of each list, -1 for null, and all their elements in a row."""
    offsets = chunk.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(offsets)
    values = filled(pa.chunked_array([chunk.values.slice(offsets[0], offsets[-1] - offsets[0])]))
    if chunk.null_count:
        valid = chunk.is_valid().to_numpy(zero_copy_only=False)
        if lengths[~valid].any():  # hide the values of nulls
            values = values[np.repeat(valid, lengths)]
        lengths = np.where(valid, lengths, -1)
    return lengths, values


def positioned(lengths: Ints, values: Ints, place: int) -> Ints:
    """The element at one place of each list; -1 where the list is shorter."""
    if place == 0 and len(values) == len(lengths) and (lengths == 1).all():
        return values
    held = np.maximum(lengths, 0)
    starts = np.cumsum(held) - held
    there = lengths > place
    found = np.full(len(lengths), -1, values.dtype)
    found[there] = values[starts[there] + place]
    return found


def list_columns(column: pa.ChunkedArray) -> list[Ints]:
    """A column of lists as columns of numbers: the lengths, then the elements at each place."""
    flats = [flat_lists(chunk) for chunk in column.chunks]
    width = max((int(lengths.max(initial=0)) for lengths, _ in flats), default=0)
    lengths = [lengths for lengths, _ in flats]
    places = [[positioned(ls, vs, k) for ls, vs in flats] for k in range(width)]
    return [np.concatenate(part) if part else np.empty(0, np.int64) for part in (lengths, *places)]

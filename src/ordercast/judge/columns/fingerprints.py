"""Fingerprints of rows: 64 bits of some columns, and no change of two columns cancels itself.

Each column is mixed into the bits of those before it by shifts and by two multiplications with numbers that
are drawn from a key. Whoever writes a trace does not know the key: each verification of a run has a new one.
So nobody can choose two wrong values that have together the fingerprint of the right ones.

The arrays are worked through in chunks that fit into a CPU's cache; this is twice as fast.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ordercast.judge.columns.columns import Ints

CHUNK = 1 << 14
_MASK = (1 << 64) - 1
_HALF, _LESS = np.uint64(32), np.uint64(29)


def factors(key: int) -> Iterator[np.uint64]:
    """Odd numbers of 64 bits without end, drawn from a key (SplitMix64)."""
    state = key
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        yield np.uint64((mixed ^ (mixed >> 31)) | 1)


def folded(columns: Sequence[Ints], key: int) -> Ints:
    """A column of lists as one number a row, by factors drawn from a key.

    The first column has the lengths, the others the elements at each place, -1 where a list is shorter. So
    the number of columns, which is that of the longest list, makes no difference.
    """
    found = np.zeros(len(columns[0]), np.uint64)
    for column, factor in zip(columns, factors(~key & _MASK), strict=False):
        found += (column + 1).view(np.uint64) * factor
    return found.view(np.int64)


class Mixer:
    """Mixes columns into fingerprints, chunk by chunk."""

    def __init__(self, key: int, columns: int) -> None:
        """`columns` is the largest number of columns that are mixed into one fingerprint."""
        drawn = factors(key)
        self._factors = [(next(drawn), next(drawn)) for _ in range(columns)]
        self._shifted = np.empty(CHUNK, np.uint64)

    def mix(self, bits: Ints, place: int, values: Ints) -> None:
        """Mix the values of the column at this place into the bits of a chunk."""
        one, other = self._factors[place]
        shifted = self._shifted[: len(bits)]
        np.bitwise_xor(bits, values.astype(np.int64, copy=False).view(np.uint64), out=bits)
        for shift, factor in ((_HALF, one), (_LESS, other)):
            np.right_shift(bits, shift, out=shifted)
            np.bitwise_xor(bits, shifted, out=bits)
            np.multiply(bits, factor, out=bits)

    def finish(self, bits: Ints) -> Ints:
        """The fingerprints of a chunk; the bits can be mixed further."""
        finished: Ints = bits ^ (bits >> _HALF)
        return finished


def chunks(count: int) -> Iterator[slice]:
    """The places of so many rows, in chunks."""
    return (slice(start, min(count, start + CHUNK)) for start in range(0, count, CHUNK))

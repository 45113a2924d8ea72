"""A histogram of durations with buckets of constant relative width, like HDR histograms.

A power of two is cut into 64 buckets, so a bucket is at most 1/64 of its values wide and its middle is within
0.8 % of each of them. Values below 128 have a bucket each. A record is one shift and one addition.
"""

from collections.abc import Iterator, Mapping
from typing import Self

from ordercast.core import LocalError, Nanos

_SUB_BITS = 6
_EXACT = 2 << _SUB_BITS
"""Below this each value has its own bucket."""

VALUE_MAX = (1 << 42) - 1
"""Longer durations (73 minutes) count as this long."""


def _index(value: int) -> int:
    shift = value.bit_length() - _SUB_BITS - 1
    return (shift << _SUB_BITS) + (value >> shift) if shift > 0 else value


def _bounds(index: int) -> tuple[int, int]:
    """The lowest and the highest value of a bucket."""
    if index < _EXACT:
        return index, index
    shift = (index >> _SUB_BITS) - 1
    low = (index - (shift << _SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


_BUCKETS = _index(VALUE_MAX) + 1


class Histogram:
    """How often each duration occurred, within 0.8 %; count, sum and maximum are exact."""

    __slots__ = ("_counts", "count", "maximum", "total")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.total = 0
        self.maximum = 0

    def record(self, duration: Nanos, count: int = 1) -> None:
        """Count a duration; a negative one, from clocks that differ, counts as 0."""
        if duration < _EXACT:
            if duration < 0:
                duration = 0
            self._counts[duration] += count
        else:
            if duration > VALUE_MAX:
                duration = VALUE_MAX
            shift = duration.bit_length() - 7
            self._counts[(shift << 6) + (duration >> shift)] += count
        self.count += count
        self.total += duration * count
        if duration > self.maximum:
            self.maximum = duration

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        self._counts = [mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)]
        self.count += other.count
        self.total += other.total
        self.maximum = max(self.maximum, other.maximum)

    def since(self, earlier: "Histogram") -> "Histogram":
        """The durations counted since an earlier state of this histogram; the maximum is that of a bucket."""
        later = Histogram()
        later._counts = [max(0, now - then) for now, then in zip(self._counts, earlier._counts, strict=True)]
        later.count = sum(later._counts)
        later.total = max(0, self.total - earlier.total)
        filled = [index for index, count in enumerate(later._counts) if count]
        later.maximum = min(self.maximum, _bounds(filled[-1])[1]) if filled else 0
        return later

    def percentile(self, percent: float) -> Nanos | None:
        """The duration that this percentage of all do not exceed; None if nothing was counted."""
        if not 0 <= percent <= 100:
            raise LocalError(f"a percentile must be between 0 and 100, not {percent}")
        if not self.count:
            return None
        wanted = max(1.0, self.count * percent / 100)
        seen = 0
        for index, count in self._filled():
            seen += count
            if seen >= wanted:
                low, high = _bounds(index)
                return min((low + high) // 2, self.maximum)
        return self.maximum

    def at_most(self, duration: Nanos) -> int:
        """The number of durations up to this one, counted by whole buckets."""
        return sum(count for index, count in self._filled() if _bounds(index)[1] <= duration)

    def _filled(self) -> Iterator[tuple[int, int]]:
        return ((index, count) for index, count in enumerate(self._counts) if count)

    def to_dict(self) -> dict[str, object]:
        """The histogram for JSON, with only the buckets that are not empty."""
        return {
            "buckets": [[index, count] for index, count in self._filled()],
            "total_ns": self.total,
            "max_ns": self.maximum,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, object]) -> Self:
        """The histogram that `to_dict` made; `LocalError` if the content is invalid."""
        made = cls()
        try:
            buckets, total, maximum = (content[name] for name in ("buckets", "total_ns", "max_ns"))
            if not (isinstance(buckets, list) and isinstance(total, int) and isinstance(maximum, int)):
                raise TypeError("a field has the wrong type")
            for index, count in buckets:
                if not (isinstance(index, int) and isinstance(count, int)):
                    raise TypeError("a bucket is not a pair of integers")
                if not 0 <= index < _BUCKETS or count < 0:
                    raise ValueError(f"bucket {index} cannot have the count {count}")
                made._counts[index] += count
        except (KeyError, TypeError, ValueError) as error:
            raise LocalError(f"not a histogram: {error}") from error
        made.count = sum(made._counts)
        made.total, made.maximum = total, maximum
        return made

"""How often a state is written as a whole.

Whoever writes the whole state after every so many calls spends more and more on it as the state grows: with
100 MB the replicas of a service would do little else. So a large state is written when the calls since have a
part of its size, and rarely otherwise. Replicas that begin alike and carry out the same calls agree on when.
"""

SMALL_BYTES = 1 << 20
"""A state up to this size is written as often as it may be."""
SHARE = 8
"""A larger one when the calls since have one part in so many of its size."""


class CheckpointPace:
    """What has come since the last checkpoint."""

    __slots__ = ("_came", "_size")

    def __init__(self) -> None:
        self._came = 0
        self._size = 0

    def count(self, size: int) -> None:
        """A call of so many bytes was carried out."""
        self._came += size

    def taken(self, size: int) -> None:
        """The state has so many bytes, and is written, or taken over."""
        self._came, self._size = 0, size

    @property
    def is_worthwhile(self) -> bool:
        """Whether the next checkpoint costs little compared with what has come."""
        return self._size <= SMALL_BYTES or SHARE * self._came >= self._size

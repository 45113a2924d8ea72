"""A tally: which messages of a group an application has, as a count and a sum.

The applications of simulated runs and of trials have a tally of each group as their state. The sum does not
depend on the order of the messages, because not every protocol promises one. Both judges make the same tally
from the rows of a trace, so that they know which state a node must have.
"""

import struct

from ordercast.core import MessageId, RemoteError

_MASK = (1 << 64) - 1
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_FORM = struct.Struct("<QQ")
_COPIES = 61
"""Tallies of different sizes are repeated up to so often, so that some states need several packets."""


def spread(message: MessageId) -> int:
    """The number of a message in a sum: it depends on all bits of the message (splitmix64)."""
    value = ((message ^ (message >> 30)) * _MULTIPLIERS[0]) & _MASK
    value = ((value ^ (value >> 27)) * _MULTIPLIERS[1]) & _MASK
    return value ^ (value >> 31)


class Tally:
    """The messages of one group at one node."""

    __slots__ = ("count", "total")

    def __init__(self, count: int = 0, total: int = 0) -> None:
        self.count = count
        self.total = total

    def add(self, message: MessageId) -> None:
        """One more message."""
        self.count += 1
        self.total = (self.total + spread(message)) & _MASK

    def pack(self) -> bytes:
        """The tally as a state."""
        return _FORM.pack(self.count, self.total) * (1 + self.count % _COPIES)


def unpack_tally(data: bytes) -> Tally:
    """The tally of a state; an empty state has no messages."""
    if not data:
        return Tally()
    if len(data) < _FORM.size:
        raise RemoteError(f"a tally has at least {_FORM.size} bytes, not {len(data)}")
    return Tally(*_FORM.unpack_from(data))

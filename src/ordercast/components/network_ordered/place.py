"""Places in the order of a group, and the entries of a log.

A slot is named by (sequencer, number): sequencers number without gaps, and no number of a sequencer is used
twice. A lost message has no place in the order, so slots are never counted: replicas that lost it at
different places would name later slots differently.
"""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Payload, Stamp

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Slot: TypeAlias = tuple[Natural, Natural]
"""A sequencer, and its number."""
Rank: TypeAlias = tuple[int, int]
"""A place in the order: clock and sequencer."""


class LogPlace(msgspec.Struct, frozen=True, array_like=True):
    """A place in the order of a group: the last message before it, and how far each sequencer is there."""

    clock: Natural = 0
    sequencer: Natural = 0
    numbers: tuple[Slot, ...] = ()
    """By sequencer, in ascending order: the last number that is delivered or given up."""

    @property
    def rank(self) -> Rank:
        """The place of the last message."""
        return self.clock, self.sequencer


class LogEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call of a client, as the network stamped it."""

    clock: Natural
    sequencer: Natural
    number: Natural
    client: Natural
    payload: Payload
    groups: tuple[Natural, ...] = ()
    """All groups that it went to, if there are several."""
    numbers: tuple[Natural, ...] = ()
    """Its numbers in them."""

    @property
    def slot(self) -> Slot:
        """Its name."""
        return self.sequencer, self.number

    @property
    def rank(self) -> Rank:
        """Its place in the order."""
        return self.clock, self.sequencer

    @property
    def stamp(self) -> Stamp:
        """The same, as traces have it."""
        return Stamp(self.clock, self.sequencer, self.numbers or (self.number,))

    def is_within(self, last: Sequence[int]) -> bool:
        """Whether none of its numbers is above the last one of its group, of several groups."""
        return all(number <= last[group] for group, number in zip(self.groups, self.numbers, strict=True))

"""The two ways to stamp events (Algorithms 3 and 4): by a global clock, or by a logical one.

Both keep a promise that the paper's global clock keeps by being right: a stamp is above all that this peer
has stamped and delivered before. So a peer always delivers its own events (validity), however wrong its clock
is.
"""

from abc import ABC, abstractmethod
from typing import Literal

from ordercast.core import SECOND, Nanos

Clock = Literal["logical", "global"]

JUMP_MAX = 1 << 40
"""A logical time further ahead than this is made up: so many events are not missed. One that was believed
would leave no numbers for those to come."""


LOGICAL_MAX = 1 << 53
"""No logical clock counts so many events."""
GLOBAL_AHEAD_MAX = 366 * 86_400 * SECOND
"""Global clocks are wrong, but not by more than a year."""


class StampClock(ABC):
    """Where timestamps come from."""

    @abstractmethod
    def stamp(self, now: Nanos, floor: int) -> int:
        """The timestamp of an event broadcast now; above `floor`, all stamped and delivered so far."""

    @abstractmethod
    def hear(self, ts: int) -> None:
        """An event with this timestamp arrived."""

    @abstractmethod
    def believes(self, ts: int, now: Nanos) -> bool:
        """Whether a timestamp can be true."""

    @abstractmethod
    def is_absurd(self, ts: int, now: Nanos) -> bool:
        """Whether no correct peer tells this timestamp, however far behind this one is."""

    @abstractmethod
    def read(self, now: Nanos) -> int:
        """The time, without changing it."""


class GlobalClock(StampClock):
    """Algorithm 3: the node's own clock, taken for that of all."""

    def __init__(self, ahead_ns: Nanos) -> None:
        self._ahead = ahead_ns

    def stamp(self, now: Nanos, floor: int) -> int:
        """The time, unless this clock is late."""
        return max(now, floor + 1)

    def hear(self, ts: int) -> None:
        """Others' clocks change nothing."""

    def believes(self, ts: int, now: Nanos) -> bool:
        """An event from far in the future would end the delivery of all others until then."""
        return ts <= now + self._ahead

    def is_absurd(self, ts: int, now: Nanos) -> bool:
        """Clocks may be wrong; what is not believed may come from a correct peer whose clock is ahead."""
        return ts > now + max(self._ahead, GLOBAL_AHEAD_MAX)

    def read(self, now: Nanos) -> int:
        """The node's own clock."""
        return now


class LogicalClock(StampClock):
    """Algorithm 4: a counter that follows what is heard (Lamport)."""

    def __init__(self) -> None:
        self._clock = 0

    def stamp(self, now: Nanos, floor: int) -> int:
        """One more than all that was heard."""
        self._clock = max(self._clock, floor) + 1
        return self._clock

    def hear(self, ts: int) -> None:
        """Catch up."""
        if ts > self._clock:
            self._clock = ts

    def believes(self, ts: int, now: Nanos) -> bool:
        """Any number may be true that is not absurdly far ahead."""
        return ts <= self._clock + JUMP_MAX

    def is_absurd(self, ts: int, now: Nanos) -> bool:
        """More events than there can have been."""
        return ts > LOGICAL_MAX

    def read(self, now: Nanos) -> int:
        """The counter."""
        return self._clock

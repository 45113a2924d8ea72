"""From where to where shards hold locks for transactions, as rows of their replicas say."""

from typing import NamedTuple

from ordercast.core import MessageId
from ordercast.judge.online.case import Handler
from ordercast.judge.online.stamp_place import StampPlace, place_of
from ordercast.trace import COMMITTED, Event, Kind


class Held(NamedTuple):
    """A transaction held locks from one place on, up to another one if it was ended."""

    start: StampPlace
    end: StampPlace | None
    committed: bool = False


class LockSpans:
    """The locks that some replicas had for transactions."""

    def __init__(self) -> None:
        self._locked: dict[MessageId, dict[StampPlace, Event]] = {}
        self._released: dict[MessageId, dict[StampPlace, Event]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """The rows about locks."""
        return {Kind.LOCKED: self.on_locked, Kind.RELEASED: self.on_released}

    def on_locked(self, event: Event) -> None:
        """A shard holds locks for a transaction."""
        place = place_of(event)
        if event.message is not None and place is not None:
            self._locked.setdefault(event.message, {}).setdefault(place, event)

    def on_released(self, event: Event) -> None:
        """A shard ended a transaction."""
        place = place_of(event)
        if event.message is not None and place is not None:
            self._released.setdefault(event.message, {}).setdefault(place, event)

    def messages(self) -> list[MessageId]:
        """The transactions that held locks."""
        return list(self._locked)

    def of(self, message: MessageId) -> list[Held]:
        """When a transaction held locks; it may have tried several times."""
        rows = [(place, 0, False) for place in self._locked.get(message, ())]
        ends = self._released.get(message, {})
        rows += [(place, 1, event.label == COMMITTED) for place, event in ends.items()]
        starts: list[StampPlace] = []
        found: list[Held] = []
        for place, ends_here, committed in sorted(rows):
            if not ends_here:
                starts.append(place)
            elif starts:
                found.append(Held(starts.pop(0), place, committed))
        return [*found, *(Held(start, None) for start in starts)]

    def last(self, message: MessageId) -> Event | None:
        """The row of the last end of a transaction."""
        ends = self._released.get(message)
        return None if not ends else ends[max(ends)]

    def ended(self) -> list[MessageId]:
        """The transactions that were ended, whether they had held locks or not."""
        return list(self._released)

    def open_since(self, message: MessageId) -> Event | None:
        """The row since which a transaction holds locks that it was never rid of."""
        start = next((held.start for held in self.of(message) if held.end is None), None)
        return None if start is None else self._locked[message][start]

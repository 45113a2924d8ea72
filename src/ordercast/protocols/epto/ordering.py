"""The ordering component (Algorithm 2), with events compared by all of their key.

As printed, line 9 admits an event whose timestamp equals the last delivered one, and line 23 holds back only
what has a larger timestamp than an event that is not stable yet. So of two events with one timestamp, heard
of a round apart, one process delivers the first and then the second, another the second and then the first.
Compared by (timestamp, source, number) in both places there are no equal events, and the algorithm becomes:
known events in a heap; while the smallest is stable, deliver it.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from ordercast.protocols.epto.messages import Event, Key

START: Key = (-1, -1, -1)
"""Before every event."""


class Ordering:
    """Known and undelivered events, and how old each is in rounds."""

    __slots__ = ("_born", "_events", "_heap", "_heard", "_ttl", "last", "payload_bytes")

    def __init__(self, ttl: int, last: Key = START) -> None:
        self._ttl = ttl
        self._heap: list[Key] = []
        self._events: dict[Key, Event] = {}
        self._born: dict[Key, int] = {}
        """The round in which an event's age was 0, or would have been: ages grow without being touched."""
        self._heard: dict[Key, int] = {}
        """The round in which an event came here."""
        self.last = last
        """The key of the last delivered event."""
        self.payload_bytes = 0
        """Of all events here."""

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, key: Key) -> bool:
        return key in self._born

    def resize(self, ttl: int) -> None:
        """Events live so many rounds from now on."""
        self._ttl = ttl

    def admit(self, key: Key, event: Event, ttl: int, round_number: int) -> bool:
        """Take an event of a ball (lines 8 to 14); False if its place has passed."""
        if key <= self.last:
            return False
        born = round_number - ttl
        known = self._born.get(key)
        if known is None:
            self._born[key] = born
            self._events[key] = event
            self._heard[key] = round_number
            self.payload_bytes += len(event.payload)
            heappush(self._heap, key)
        elif born < known:
            self._born[key] = born
        return True

    def stable(self, round_number: int) -> Iterator[tuple[Key, Event]]:
        """Remove and give the events that can be delivered now, in order (lines 15 to 30)."""
        heap, born, ttl = self._heap, self._born, self._ttl
        while heap and round_number - born[heap[0]] > ttl:
            key = heappop(heap)
            del born[key], self._heard[key]
            self.last = key
            event = self._events.pop(key)
            self.payload_bytes -= len(event.payload)
            yield key, event

    def rounds_here(self, key: Key, round_number: int) -> int:
        """For how many rounds an event has been known here; its age counts the relays before that too."""
        return round_number - self._heard.get(key, round_number)

    def waiting(self, round_number: int) -> Iterable[tuple[Key, Event, int]]:
        """Every known event with its age, in order."""
        return [(key, self._events[key], round_number - self._born[key]) for key in sorted(self._heap)]

"""The dissemination component (Algorithm 1): what was heard since the last round is relayed in the next."""

from collections.abc import Iterator

from ordercast.protocols.epto.messages import BALL_BYTES, EVENT_OVERHEAD_BYTES, EVENTS_MAX, Ball, Event, Key


class NextBall:
    """The events to relay, each with the largest number of relays heard of (lines 5 to 18)."""

    __slots__ = ("events", "fresh", "ttls")

    def __init__(self) -> None:
        self.events: dict[Key, Event] = {}
        self.ttls: dict[Key, int] = {}
        self.fresh = 0
        """How many of them the ordering component does not keep as well; these alone take room."""

    def __len__(self) -> int:
        return len(self.ttls)

    def __contains__(self, key: Key) -> bool:
        return key in self.ttls

    def put(self, key: Key, event: Event, ttl: int) -> None:
        """Add an event, or make it as old as the oldest copy."""
        known = self.ttls.get(key)
        if known is None:
            self.events[key] = event
            self.ttls[key] = ttl
        elif known < ttl:
            self.ttls[key] = ttl

    def age(self) -> None:
        """One more relay (lines 21 and 22)."""
        for key in self.ttls:
            self.ttls[key] += 1

    def balls(self) -> Iterator[Ball]:
        """All of it as messages: one, unless it is too large."""
        ttls: list[int] = []
        events: list[Event] = []
        room = BALL_BYTES
        for key, ttl in self.ttls.items():
            event = self.events[key]
            size = len(event.payload) + EVENT_OVERHEAD_BYTES
            if events and (size > room or len(events) == EVENTS_MAX):
                yield Ball(tuple(ttls), tuple(events))
                ttls, events, room = [], [], BALL_BYTES
            ttls.append(ttl)
            events.append(event)
            room -= size
        if events:
            yield Ball(tuple(ttls), tuple(events))

"""Receipts: deliveries and announced drops at receivers, each counted once."""

from ordercast.trace import CARRYING, SETTLING, Event


class Receipts:
    """Counts different deliveries and announced drops; a repeated one counts once."""

    def __init__(self) -> None:
        self._seen: set[tuple[object, ...]] = set()

    def note(self, event: Event) -> None:
        """Take note of an event; most kinds of events are not receipts."""
        if event.kind in CARRYING:
            self._seen.add((event.node, event.message))
        elif event.kind in SETTLING:
            self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))

    def __len__(self) -> int:
        """The number of different receipts."""
        return len(self._seen)

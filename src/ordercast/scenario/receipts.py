"""What has come to receivers, each thing counted once."""

from ordercast.trace import CARRYING, SETTLING, Event


class Receipts:
    """Counts deliveries and announced drops, however often a node makes one of them."""

    def __init__(self) -> None:
        self._seen: set[tuple[object, ...]] = set()

    def note(self, event: Event) -> None:
        """Take note of an event; most kinds are no receipts."""
        if event.kind in CARRYING:
            self._seen.add((event.node, event.message))
        elif event.kind in SETTLING:
            self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))

    def __len__(self) -> int:
        """How many different ones there are."""
        return len(self._seen)

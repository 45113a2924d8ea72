"""What has come to receivers, each thing counted once."""

from ordercast.trace import Event, Kind


class Receipts:
    """Counts deliveries and announced drops, however often a node makes one of them."""

    def __init__(self) -> None:
        self._seen: set[tuple[object, ...]] = set()

    def note(self, event: Event) -> None:
        """Take note of an event; most kinds are no receipts."""
        if event.kind is Kind.DROP:
            self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))
        elif event.kind in (Kind.DELIVER, Kind.OUT_OF_ORDER):
            self._seen.add((event.node, event.message))

    def __len__(self) -> int:
        """How many different ones there are."""
        return len(self._seen)

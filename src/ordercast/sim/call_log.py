"""What the clients of a service called, and what they were answered, in a simulated world."""

from collections.abc import Callable

from ordercast.core import MessageId, NodeId, Replied
from ordercast.core.bundle import unpack
from ordercast.scenario.receipts import receipts_wanted


class CallLog:
    """The operations and the results of all clients; empty if the plan has no service."""

    def __init__(self, *, serves: bool) -> None:
        self._serves = serves
        self.operations: dict[MessageId, bytes] = {}
        self.results: dict[MessageId, bytes] = {}
        """The first result that a client got for each operation."""
        self.answered = 0
        """How many results clients got, repeated ones included."""
        self.observers: list[Callable[[NodeId, MessageId], None]] = []
        """Called for each result that a client gets."""

    def on_submit(self, message: MessageId, payload: bytes, receivers: int, label: str | None) -> int:
        """Note a submission; return how many deliveries and answers it will have."""
        if self._serves:
            self.operations[message] = payload
        return receipts_wanted(receivers, label, serves=self._serves)

    def on_replied(self, client: NodeId, replied: Replied) -> None:
        """A client got results."""
        for message, _, result in unpack(replied.payload):
            self.answered += 1
            self.results.setdefault(message, result)
            for observer in self.observers:
                observer(client, message)

"""First in, first out, for each sender.

If a sender submits m before m', no receiver delivers m after m' (*FIFO order*, Hadzilacos and
Toueg, "A modular approach to fault-tolerant broadcasts"). A receiver may miss m altogether: agreement,
validity and drop detection judge gaps. Where causal order is promised, `causal`
covers this.
"""

from ordercast.core import MessageId, Nanos, NodeId
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import LOST, ORDERED, Event, Kind


class Fifo(Oracle):
    """A receiver delivers the messages of one sender in the order of their submission."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._places: dict[MessageId, tuple[NodeId, int]] = {}
        self._newest: dict[NodeId, dict[NodeId, tuple[int, MessageId, Nanos]]] = {
            node.id: {} for node in case.description.nodes
        }

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, deliveries in order, and recoveries without state, which make a new receiver."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.RECOVER: self._on_recover,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None:
            self._places[event.message] = (event.node, len(self._places))

    def _on_deliver(self, event: Event) -> None:
        message = event.message
        if message is None or message not in self._places:
            return
        sender, place = self._places[message]
        newest = self._newest[event.node]
        last = newest.get(sender)
        if last is None or last[0] < place:
            newest[sender] = (place, message, event.time_ns)
            return
        _, later, later_ns = last
        self.report(
            (event.node, sender),
            (message, later),
            (later_ns, event.time_ns),
            f"node {event.node} delivered {message_at(message, event.time_ns)} after"
            f" {message_at(later, later_ns)}, which node {sender} submitted later",
        )

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._newest[event.node].clear()

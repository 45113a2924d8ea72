"""Who asks to come in. A request is forgotten if it is not repeated."""

from typing import TypeAlias

from ordercast.components.membership.limits import check_claim
from ordercast.components.membership.messages import Join
from ordercast.components.membership.record import ViewRecord
from ordercast.core import Groups, Nanos, NodeId

Newcomers: TypeAlias = dict[NodeId, tuple[int, Groups]]
"""Who comes in: the incarnation of each, and what it receives."""


class Candidates:
    """The requests to come in that are fresh."""

    __slots__ = ("_patience", "_requests")

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._requests: dict[NodeId, tuple[int, Groups, int]] = {}
        """For each node: its incarnation, what it wants to receive, and the heartbeats since it asked."""

    def on_join(self, source: NodeId, message: Join, record: ViewRecord, now: Nanos) -> None:
        """A node asks to come in. It counts if it knows the newest view and does not sit in it yet."""
        check_claim(source, message, record, now)
        seat, known = record.seat_of(source), self._requests.get(source)
        sits = seat is not None and seat.incarnation >= message.incarnation
        outdated = known is not None and known[0] > message.incarnation
        if message.view == record.number and not sits and not outdated:
            self._requests[source] = (message.incarnation, message.groups, 0)

    def tick(self) -> None:
        """One more heartbeat: forget those that have not asked for long."""
        self._requests = {
            node: (incarnation, groups, age + 1)
            for node, (incarnation, groups, age) in self._requests.items()
            if age < self._patience
        }

    def settle(self, node: NodeId, incarnation: int) -> None:
        """A node sits in a view: forget what it asked for up to then."""
        known = self._requests.get(node)
        if known is not None and known[0] <= incarnation:
            del self._requests[node]

    def newcomers(self) -> Newcomers:
        """Who asks to come in."""
        return {node: (incarnation, groups) for node, (incarnation, groups, _) in self._requests.items()}

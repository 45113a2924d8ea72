"""Order of stamps: receivers deliver in the order of stamps, and tag what they deliver later.

A stamp is a message's place in its protocol's own order (`core/delivery.py`). In each life of a receiver, the
stamps (clock, issuer) of its deliveries in order never decrease; the messages of one bundle have the same
stamp. A delivery that is tagged as out of order has a reason: the receiver had delivered in order, before, a
message whose stamp is not lower.

A tag is judged only at receivers that have been in every group from the start. At others, the place may have
been passed by a message that they do not receive: EpTO's peers order the messages of all groups.

If an order is promised only for groups that overlap, stamps are places within one group. So the stamps of
each group are compared, and no tags: a message of another group may have passed the place.
"""

from ordercast.core import GroupId, NodeId, Order
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, LEAVING, LOST, ORDERED, Event, Kind


class StampOrder(Oracle):
    """The stamps of a receiver's deliveries grow; tagged ones come after a later stamp."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._latest: dict[NodeId, dict[GroupId | None, Event]] = {n.id: {} for n in case.description.nodes}
        """The delivery in order with the highest stamp of each receiver, or of each receiver and group."""
        groups = case.description.groups.values()
        nodes = [node.id for node in case.description.nodes]
        self._in_all = {node for node in nodes if all(node in members for members in groups)}
        self._by_group = case.description.guarantees.order is Order.OVERLAPS and len(groups) > 1

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries, and recoveries without state, which make a new receiver."""
        return {
            **dict.fromkeys(CARRYING, self._on_tagged),
            **dict.fromkeys(ORDERED, self._on_deliver),
            **dict.fromkeys(LEAVING, self._on_left),
            Kind.RECOVER: self._on_recover,
        }

    def _on_deliver(self, event: Event) -> None:
        clock, issuer = event.stamp_clock, event.stamp_issuer
        if clock is None or issuer is None:
            return
        known = self._latest[event.node]
        for place in event.groups or () if self._by_group else (None,):
            latest = known.get(place)
            if latest is None or clock > latest.stamp_clock or _stamp(event) >= _stamp(latest):  # type: ignore[operator]
                known[place] = event
            else:
                self._tell(event, latest, "after")
                break

    def _on_tagged(self, event: Event) -> None:
        clock, issuer = event.stamp_clock, event.stamp_issuer
        if clock is None or issuer is None or event.node not in self._in_all or self._by_group:
            return
        latest = self._latest[event.node].get(None)
        if latest is None or _stamp(latest) < (clock, issuer):
            self._tell(event, latest, "tagged as out of order, but the last in order was")

    def _tell(self, event: Event, latest: Event | None, how: str) -> None:
        message = event.message or 0
        others = [] if latest is None else [latest]
        last = "none" if latest is None else self._named(latest)
        self.report(
            (event.node,),
            (message, *(other.message or 0 for other in others)),
            (*(other.time_ns for other in others), event.time_ns),
            f"node {event.node} delivered {self._named(event)} {how} {last}",
        )

    @staticmethod
    def _named(event: Event) -> str:
        stamp = f"stamp ({event.stamp_clock}, {event.stamp_issuer})"
        return f"{message_at(event.message or 0, event.time_ns)} with {stamp}"

    def _on_left(self, event: Event) -> None:
        self._in_all.discard(event.node)

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._latest[event.node].clear()


def _stamp(event: Event) -> tuple[int, int]:
    return event.stamp_clock or 0, event.stamp_issuer or 0

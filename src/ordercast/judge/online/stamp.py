"""Stamps: a message has one place in its protocol's order, the same at every receiver.

If two receivers deliver m, both do so with the same stamp (clock, issuer and numbers), or both without one.
If stamps differ, the orders differ, even if the deliveries happen to agree. Deliveries that are tagged as out
of order have lost their place, and are not compared.

Where each group has an order of its own, a message to several groups has a stamp in each. Then the receivers
of one group are compared.
"""

from collections.abc import Sequence

from ordercast.core import GroupId, MessageId, Order, format_ns
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import ORDERED, Event, Kind


class Stamps(Oracle):
    """Each message has one stamp."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._first: dict[tuple[MessageId, GroupId | None], Event] = {}
        self._separate = case.description.guarantees.order is Order.GROUP
        self._members = case.description.groups

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries in order."""
        return dict.fromkeys(ORDERED, self._on_deliver)

    def _on_deliver(self, event: Event) -> None:
        message: MessageId = event.message  # type: ignore[assignment]  # integrity saw to it
        for group in self._orders(event):
            self._compare(message, self._first.setdefault((message, group), event), event)

    def _orders(self, event: Event) -> Sequence[GroupId | None]:
        """The groups in whose orders a delivery has its stamp; None stands for one order of all."""
        if not self._separate or len(event.groups or ()) < 2:
            return (None,)
        return [group for group in event.groups or () if event.node in self._members[group]]

    def _compare(self, message: MessageId, first: Event, event: Event) -> None:
        if (
            event.stamp_clock == first.stamp_clock
            and event.stamp_issuer == first.stamp_issuer
            and event.numbers == first.numbers
        ):
            return
        self.report(
            (first.node, event.node),
            (message,),
            (first.time_ns, event.time_ns),
            f"node {first.node} delivered {message_at(message, first.time_ns)} {_stamp(first)},"
            f" node {event.node} at {format_ns(event.time_ns)} {_stamp(event)}",
        )


def _stamp(event: Event) -> str:
    if event.stamp_clock is None and event.stamp_issuer is None and event.numbers is None:
        return "without a stamp"
    numbers = "" if event.numbers is None else f" and numbers {', '.join(map(str, event.numbers))}"
    return f"with stamp ({event.stamp_clock}, {event.stamp_issuer}){numbers}"

"""Owners of stamps: a stamp belongs to one bundle, and so does each number of an issuer for a group.

Two messages have the same stamp, or the same number of an issuer for a group, only if they are of one bundle:
consecutive messages of one sender to the same groups, which every receiver delivers one after the other. So a
stamp that is used twice is named at once, whatever comes of it.

A bundle is named by its first message, its *head*. Two bundles of one sender may have the same stamp only if
the sender recovered in between: a peer of EpTO stamps its own events, and a new life of it does not know the
stamps that were under way. Deliveries tagged as out of order have lost their place, and are not compared.
"""

from collections.abc import Iterator

from ordercast.core import MessageId, NodeId, message_sender
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import LOST, ORDERED, Event, Kind

Place = tuple[int, ...]
"""A clock and an issuer; or an issuer, a group and a number."""


class StampOwners(Oracle):
    """Each stamp and each number has one owner."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._owners: dict[Place, tuple[MessageId, Event]] = {}
        """The first bundle with each stamp and number: its head, and a delivery of it."""
        self._later: dict[tuple[Place, int], MessageId] = {}
        """The same for other lives of the same sender."""
        self._judged: dict[MessageId, tuple[MessageId, Event]] = {}
        """The head and a delivery of each message: others like it need not be judged again."""
        self._last: dict[NodeId, Event] = {}
        """The last delivery of each receiver."""
        self._head: dict[NodeId, MessageId] = {}
        """The head of the bundle that a receiver has delivered more than one message of."""
        self._recoveries: dict[NodeId, int] = {}
        self._life: dict[MessageId, int] = {}
        """The life of its sender in which a message was submitted."""

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries in order; submissions and recoveries, for the lives of senders."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.RECOVER: self._on_recover,
        }

    def _on_submit(self, event: Event) -> None:
        self._life[event.message or 0] = self._recoveries.get(event.node, 0)

    def _on_recover(self, event: Event) -> None:
        self._recoveries[event.node] = self._recoveries.get(event.node, 0) + 1
        if event.label == LOST:
            self._last.pop(event.node, None)
            self._head.pop(event.node, None)

    def _on_deliver(self, event: Event) -> None:
        message: MessageId = event.message  # type: ignore[assignment]  # integrity saw to it
        head, judged = self._head_of(event, message), self._judged.get(message)
        if judged is None:
            self._judged[message] = (head, event)
        elif judged[0] == head and _same_stamp(judged[1], event):
            return
        self._judge(event, head)

    def _head_of(self, event: Event, message: MessageId) -> MessageId:
        node = event.node
        last = self._last.get(node)
        self._last[node] = event
        if last is None or last.message != message - 1 or not _together(last, event):
            if self._head:
                self._head.pop(node, None)
            return message
        return self._head.setdefault(node, message - 1)

    def _judge(self, event: Event, head: MessageId) -> None:
        for place in _places(event):
            owner = self._owners.get(place)
            if owner is None:
                self._owners[place] = (head, event)
            elif owner[0] != head and not self._excused(place, owner[0], head):
                self._tell(event, head, *owner)
                return

    def _excused(self, place: Place, owner: MessageId, head: MessageId) -> bool:
        """Whether two bundles are of different lives of one sender, and no third one is of the same life."""
        life = self._life.get(head, -1)
        if message_sender(owner) != message_sender(head) or life == self._life.get(owner, -1):
            return False
        return self._later.setdefault((place, life), head) == head

    def _tell(self, event: Event, head: MessageId, owner: MessageId, first: Event) -> None:
        stamps = " and ".join(_stamp(one) for one in (first, event))
        self.report(
            (first.node, event.node),
            (owner, head),
            (first.time_ns, event.time_ns),
            f"{message_at(owner, first.time_ns)} and {message_at(head, event.time_ns)} share a stamp or a"
            f" number: node {first.node} delivered the one, node {event.node} the other, with {stamps}",
        )


def _together(last: Event, event: Event) -> bool:
    """Whether a delivery of the next message belongs to the bundle of the one before it."""
    return last.groups == event.groups and _same_stamp(last, event)


def _same_stamp(one: Event, other: Event) -> bool:
    return (
        one.stamp_clock == other.stamp_clock
        and one.stamp_issuer == other.stamp_issuer
        and one.numbers == other.numbers
    )


def _places(event: Event) -> Iterator[Place]:
    """The stamp and the numbers of a delivery, as far as it has them."""
    issuer = event.stamp_issuer
    if issuer is None:
        return
    if event.stamp_clock is not None:
        yield (event.stamp_clock, issuer)
    if event.numbers:
        for group, number in event.slots():
            if number is not None:
                yield (issuer, group, number)


def _stamp(event: Event) -> str:
    numbers = "" if not event.numbers else f" and numbers {', '.join(map(str, event.numbers))}"
    return f"stamp ({event.stamp_clock}, {event.stamp_issuer}){numbers}"

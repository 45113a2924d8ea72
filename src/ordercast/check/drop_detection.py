"""Drop detection at each receiver (Hydra sections 4.1 and 4.3.2, Appendix B).

For each receiver, group and issuer: each number comes at most once, as a message or as a
notification; and when the message with number n is delivered, every smaller number has come before.
Notifications may come early: they have no place in the order of messages. Messages of one bundle
share a number: they follow each other at the receiver, with one sender, one destination and one
stamp. A delivery without numbers, or without their issuer, says nothing of what it follows, and breaks
the promise.

Where the numbers begin: at 1. Two exceptions, in which the first number that comes is taken as the
first: a receiver that recovered without its state, and an issuer that a receiver hears of only
after it installed a second view of the group (a sequencer that joined: section 4.4 gives it a start
that the trace does not carry).
"""

from bisect import bisect_right
from heapq import heappop, heappush

from ordercast.check.oracle import Handler, Oracle
from ordercast.check.violation import messages_named
from ordercast.core import GroupId, MessageId, NodeId, format_ns, message_sender
from ordercast.trace import LOST, Event, Kind, RunDescription

FIRST_NUMBER = 1


class _Lane:
    """The numbers of one issuer, for one group, at one receiver."""

    __slots__ = ("_early", "_heap", "_skipped_from", "_skipped_to", "low", "notified")

    def __init__(self, low: int) -> None:
        self.low = low
        """Every number up to here has come, or its lack has been told; the next one has not."""
        self.notified: set[int] = set()
        self._early: set[int] = set()
        self._heap: list[int] = []
        """The same numbers as in `_early`, smallest first."""
        self._skipped_from: list[int] = []
        self._skipped_to: list[int] = []

    def came(self, number: int) -> bool:
        return number <= self.low or number in self._early

    def add(self, number: int) -> None:
        """A number came before others below it."""
        self._early.add(number)
        heappush(self._heap, number)
        self.advance(self.low)

    def advance(self, number: int) -> None:
        """All up to `number` is settled, and what follows it without a hole."""
        self.low = max(self.low, number)
        while self._heap and self._heap[0] <= self.low + 1:
            number = heappop(self._heap)
            self._early.discard(number)
            self.low = max(self.low, number)

    def skip(self, number: int) -> tuple[int, int] | None:
        """Settle all below `number`: its lack has been told. The first hole, from and to, if any."""
        first = None
        while self.low + 1 < number:
            stop = min(self._heap[0], number) if self._heap else number
            hole = (self.low + 1, stop - 1)
            first = first or hole
            self._skipped_from.append(hole[0])
            self._skipped_to.append(hole[1])
            self.advance(hole[1])
        return first

    def skipped(self, number: int) -> bool:
        """Whether the lack of this number has been told; what comes for it is then not told again."""
        place = bisect_right(self._skipped_from, number) - 1
        return place >= 0 and number <= self._skipped_to[place]


class DropDetection(Oracle):
    """Each number once, as a message or a notification, and none passed over in silence."""

    name = "drop-detection"
    statement = (
        "a receiver gets each number of an issuer once, as message or notification,"
        " and none later than a message with a higher number"
    )

    def __init__(self, description: RunDescription) -> None:
        super().__init__(description)
        self._groups = {group: frozenset(nodes) for group, nodes in description.groups.items()}
        self._views: dict[tuple[NodeId, GroupId], int] = {}
        self._fresh: set[NodeId] = set()
        self._lanes: dict[NodeId, dict[tuple[GroupId, int], _Lane]] = {
            node.id: {} for node in description.nodes
        }
        self._previous: dict[NodeId, Event] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries, notifications, and what moves the beginning of the numbers."""
        return {
            Kind.DELIVER: self._on_deliver,
            Kind.OUT_OF_ORDER: self._on_deliver,
            Kind.DROP: self._on_drop,
            Kind.VIEW: self._on_view,
            Kind.RECOVER: self._on_recover,
        }

    def _on_deliver(self, event: Event) -> None:
        message, node, numbers = event.message, event.node, event.numbers
        if message is None:
            return
        if not numbers or event.stamp_issuer is None or None in numbers:
            self._previous.pop(node, None)
            self._tell(event, f"delivered {messages_named((message,))} without numbers or their issuer")
            return
        previous = self._previous.get(node)
        self._previous[node] = event
        if previous is not None and numbers == previous.numbers and _bundled(previous, event):
            return
        groups = event.groups or ()
        if len(numbers) != len(groups):
            counts = f"{len(numbers)} numbers for {len(groups)} groups"
            self._tell(event, f"delivered {messages_named((message,))} with {counts}")
        for group, number in zip(groups, numbers, strict=False):
            if node in self._groups[group]:
                self._deliver(event, group, number)

    def _deliver(self, event: Event, group: GroupId, number: int) -> None:
        lane = self._lane(event, group, number)
        if number == lane.low + 1:  # the common case
            lane.advance(number)
            return
        what = f"delivered {messages_named((event.message or 0,))}, {_slot(event, group, number)},"
        if not lane.came(number):
            hole = lane.skip(number)
            if hole is not None:
                self._tell(event, f"{what} but neither message nor notification for {_run(*hole)}")
            lane.advance(number)
        elif number in lane.notified:
            self._tell(event, f"{what} after the notification that it was dropped")
        elif not lane.skipped(number):
            self._tell(event, f"{what} after another message with that number")

    def _on_drop(self, event: Event) -> None:
        for group, number in event.slots():
            if event.node not in self._groups[group]:
                continue
            lane = self._lane(event, group, number)
            what = f"was notified of the drop of {_slot(event, group, number)},"
            if not lane.came(number):
                lane.add(number)
            elif number in lane.notified:
                self._tell(event, f"{what} twice")
            elif not lane.skipped(number):
                self._tell(event, f"{what} after it delivered the message: a delivery called lost")
            lane.notified.add(number)

    def _on_view(self, event: Event) -> None:
        for group in event.groups or ():
            key = (event.node, group)
            self._views[key] = self._views.get(key, 0) + 1

    def _on_recover(self, event: Event) -> None:
        self._previous.pop(event.node, None)
        if event.label == LOST:
            self._lanes[event.node].clear()
            self._fresh.add(event.node)

    def _lane(self, event: Event, group: GroupId, number: int) -> _Lane:
        key = (group, event.stamp_issuer or 0)
        lane = self._lanes[event.node].get(key)
        if lane is None:
            late = event.node in self._fresh or self._views.get((event.node, group), 0) > 1
            lane = _Lane(number - 1 if late else FIRST_NUMBER - 1)
            self._lanes[event.node][key] = lane
        return lane

    def _tell(self, event: Event, what: str) -> None:
        messages: tuple[MessageId, ...] = () if event.message is None else (event.message,)
        detail = f"node {event.node} {what} at {format_ns(event.time_ns)}"
        self.report((event.node,), messages, (event.time_ns,), detail.replace(", at", " at"))


def _bundled(event: Event, other: Event) -> bool:
    """Whether two deliveries in a row, of messages with the same numbers, are of one bundle."""
    if event.message is None or other.message is None:
        return False
    return (
        message_sender(event.message) == message_sender(other.message)
        and event.groups == other.groups
        and event.stamp_clock == other.stamp_clock
        and event.stamp_issuer == other.stamp_issuer
    )


def _slot(event: Event, group: GroupId, number: int) -> str:
    return f"number {number} of issuer {event.stamp_issuer} in group {group}"


def _run(first: int, last: int) -> str:
    return f"number {first}" if first == last else f"numbers {first} to {last}"

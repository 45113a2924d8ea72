"""Drop detection at each receiver (Hydra sections 4.1 and 4.3.2, Appendix B).

For each receiver, group and issuer: each number comes at most once, as a message or as a
notification; and when the message with number n is delivered, every smaller number has come before.
Notifications may come early: they have no place in the order of messages. Messages of one bundle
share a number: they follow each other at the receiver, with one sender, one destination and one
stamp.

Where the numbers begin: at 1. Two exceptions, in which the first number that comes is taken as the
first: a receiver that recovered without its state, and an issuer that a receiver hears of only
after it installed a second view of the group (a sequencer that joined: section 4.4 gives it a start
that the trace does not carry).
"""

from ordercast.check.oracle import Handler, Oracle
from ordercast.check.population import LOST
from ordercast.check.violation import messages_named
from ordercast.core import GroupId, MessageId, NodeId, format_ns, message_sender
from ordercast.trace import Event, Kind, RunDescription

FIRST_NUMBER = 1


class _Lane:
    """The numbers of one issuer, for one group, at one receiver."""

    __slots__ = ("early", "low", "notified", "skipped")

    def __init__(self, low: int) -> None:
        self.low = low
        """Every number up to here has come, or its lack has been told."""
        self.early: set[int] = set()
        self.notified: set[int] = set()
        self.skipped: list[range] = []

    def came(self, number: int) -> bool:
        return number <= self.low or number in self.early

    def missing(self, number: int) -> range | None:
        """The first run of numbers below this one that has not come."""
        start = self.low + 1
        while start in self.early:
            start += 1
        if start >= number:
            return None
        stop = min((n for n in self.early if start < n < number), default=number)
        return range(start, stop)

    def advance(self, number: int) -> None:
        """All up to `number` is settled."""
        self.low = max(self.low, number)
        if self.early:
            self.early = {n for n in self.early if n > self.low}
            while self.low + 1 in self.early:
                self.low += 1
                self.early.discard(self.low)


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
        message, node = event.message, event.node
        if message is None or not event.numbers or event.stamp_issuer is None:
            return
        previous = self._previous.get(node)
        self._previous[node] = event
        if previous is not None and event.numbers == previous.numbers and _bundled(previous, event):
            return
        if len(event.numbers) != len(event.groups or ()):
            counts = f"{len(event.numbers)} numbers for {len(event.groups or ())} groups"
            self._tell(event, f"delivered {messages_named((message,))} with {counts}")
        for group, number in event.slots():
            if node in self._groups[group]:
                self._deliver(event, group, number)

    def _deliver(self, event: Event, group: GroupId, number: int) -> None:
        lane = self._lane(event, group, number)
        if number == lane.low + 1:  # the common case
            if lane.early:
                lane.advance(number)
            else:
                lane.low = number
            return
        what = f"delivered {messages_named((event.message or 0,))}, {_slot(event, group, number)},"
        if lane.came(number):
            if number in lane.notified:
                self._tell(event, f"{what} after the notification that it was dropped")
            elif not _take(lane.skipped, number):
                self._tell(event, f"{what} after another message with that number")
        else:
            gap = lane.missing(number)
            if gap is not None:
                self._tell(event, f"{what} but neither message nor notification for {_run(gap)}")
                self._skip(lane, number)
            lane.advance(number)

    @staticmethod
    def _skip(lane: _Lane, number: int) -> None:
        """Remember each hole below `number`: it has been told, whatever comes for it later."""
        gap = lane.missing(number)
        while gap is not None:
            lane.skipped.append(gap)
            lane.advance(gap.stop - 1)
            gap = lane.missing(number)

    def _on_drop(self, event: Event) -> None:
        for group, number in event.slots():
            if event.node not in self._groups[group]:
                continue
            lane = self._lane(event, group, number)
            what = f"was notified of the drop of {_slot(event, group, number)},"
            if not lane.came(number):
                lane.early.add(number)
                lane.advance(lane.low)
            elif number in lane.notified:
                self._tell(event, f"{what} twice")
            elif not _take(lane.skipped, number):
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


def _run(numbers: range) -> str:
    if len(numbers) == 1:
        return f"number {numbers.start}"
    return f"numbers {numbers.start} to {numbers.stop - 1}"


def _take(skipped: list[range], number: int) -> bool:
    """Whether the lack of this number has been told; it is then not told again."""
    return any(number in numbers for numbers in skipped)

"""Drop detection at each receiver (Hydra sections 4.1, 4.3.2 and 4.4, Appendix B).

For each receiver, group and issuer: each number comes at most once, as a message or as a notification; and
when the message with number n is delivered, every smaller number has come before. Notifications may come
early: they have no place in the order of messages. Messages of one bundle share a number: they follow each
other at the receiver, with one sender, one destination and one stamp. A delivery without numbers, or without
their issuer, does not say what it follows, and breaks the promise.

Numbers begin at 1. If a view of the receiver adds the issuer after number n, they begin at n + 1, and nothing
of the issuer comes before that view. If a view removes it with last number n, every number up to n has come
by then, and nothing of it comes afterwards; more may have come before, because the last number is what a
quorum agreed on. All receivers must agree on what a configuration of a group says about its issuer. For a
receiver that recovered without its state, or that began the run with state from an earlier run, the numbers
begin with the first one that comes, unless a view says otherwise.
"""

from ordercast.core import GroupId, MessageId, NodeId, format_ns, message_sender
from ordercast.judge.finding import messages_named
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.changes import Change, changes_of
from ordercast.judge.online.lane import Lane
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import ADDED, CARRYING, LOST, Event, Kind

FIRST_NUMBER = 1


class DropDetection(Oracle):
    """Each number comes once, as a message or a notification, and none is skipped silently."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._groups = {group: frozenset(nodes) for group, nodes in case.description.groups.items()}
        self._changes: dict[tuple[GroupId, int], tuple[NodeId, Change]] = {}
        """For each configuration of a group, the first node that installed it, and its change."""
        self._fresh: set[NodeId] = set(case.description.resumed)
        self._lanes: dict[NodeId, dict[tuple[GroupId, int], Lane]] = {
            node.id: {} for node in case.description.nodes
        }
        self._previous: dict[NodeId, Event] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries, notifications, and the rows that change where numbers begin and end."""
        return {
            **dict.fromkeys(CARRYING, self._on_deliver),
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
            self._tell(
                event, f"delivered {messages_named((message,))} without numbers or without their issuer"
            )
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
        if number == lane.low + 1 and lane.closed is None:  # the common case
            lane.advance(number)
            return
        what = f"delivered {messages_named((event.message or 0,))}, {_slot(event, group, number)},"
        if self._outside(event, lane, number, what):
            return
        if not lane.came(number):
            hole = lane.skip(number)
            if hole is not None:
                self._tell(event, f"{what} but got neither message nor notification for {_run(*hole)}")
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
            if self._outside(event, lane, number, what):
                continue
            if not lane.came(number):
                lane.add(number)
            elif number in lane.notified:
                self._tell(event, f"{what} twice")
            elif not lane.skipped(number):
                self._tell(event, f"{what} after it had delivered that message")
            lane.notified.add(number)

    def _outside(self, event: Event, lane: Lane, number: int, what: str) -> bool:
        """Whether a number is outside of what the lane may have; if so, report it."""
        if lane.closed is not None:
            self._tell(event, f"{what} after view {lane.closed}, which removed the issuer,")
            return True
        if number <= lane.start:
            self._tell(event, f"{what} which is below the first number, {lane.start + 1},")
            return True
        return False

    def _on_view(self, event: Event) -> None:
        for group, change in changes_of(event):
            self._previous.pop(event.node, None)  # a bundle does not continue after a view
            self._compare(event, group, change)
            if event.node in self._groups[group]:
                self._apply(event, group, change)

    def _compare(self, event: Event, group: GroupId, change: Change) -> None:
        """A configuration is the same at all nodes."""
        first, other = self._changes.setdefault((group, event.config or 0), (event.node, change))
        if other != change:
            detail = (
                f"node {event.node} installed view {event.config} of group {group} at"
                f" {format_ns(event.time_ns)}, which {change}; at node {first} it {other}"
            )
            self.report((event.node, first), (), (event.time_ns,), detail)

    def _apply(self, event: Event, group: GroupId, change: Change) -> None:
        """The numbers of an issuer begin or end here."""
        lanes, key = self._lanes[event.node], (group, change.issuer)
        lane = lanes.get(key)
        what = f"installed view {event.config}, which {change} in group {group},"
        if change.what == ADDED:
            if lane is None or (lane.empty and lane.closed is None):
                lanes[key] = Lane(change.number)
            else:
                self._tell(event, f"{what} after it had heard of that issuer,")
            return
        if lane is None:
            unknown = event.node in self._fresh
            lane = lanes[key] = Lane(change.number if unknown else FIRST_NUMBER - 1)
        hole = lane.skip(change.number + 1)
        if hole is not None:
            self._tell(event, f"{what} but got neither message nor notification for {_run(*hole)},")
        lane.closed = event.config or 0

    def _on_recover(self, event: Event) -> None:
        self._previous.pop(event.node, None)
        if event.label == LOST:
            self._lanes[event.node].clear()
            self._fresh.add(event.node)

    def _lane(self, event: Event, group: GroupId, number: int) -> Lane:
        key = (group, event.stamp_issuer or 0)
        lane = self._lanes[event.node].get(key)
        if lane is None:
            lane = Lane(number - 1 if event.node in self._fresh else FIRST_NUMBER - 1)
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

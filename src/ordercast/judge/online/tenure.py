"""Tenure: a receiver delivers of a group only what is ordered between its `joined` and its `left`.

Both come in turn, and a node joins only if it has asked to, or was a member at the start. A node that has
recovered, or whose protocol has views, may join anew without having left: it was left out meanwhile. That
nothing is delivered before the `joined` row and after the `left` row is a matter of integrity, which knows
the receivers at each row. This oracle compares places: messages before the place of `joined`, and messages
after the place of `left`, are not delivered either.
"""

from ordercast.core import GroupId, NodeId, format_ns
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.members import NOWHERE, Place, Span
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, ENTERING, LEAVING, LOST, Event, Kind


class Tenure(Oracle):
    """Receivers deliver within their spans."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._members = case.members
        self._views = case.description.guarantees.views
        self._asked: set[tuple[NodeId, GroupId]] = set()
        self._inside: dict[tuple[NodeId, GroupId], bool] = {}
        """Who has joined or left; the others are where they began."""
        self._recovered: set[tuple[NodeId, GroupId]] = set()
        """Who has recovered since it joined."""
        self._before: dict[NodeId, list[Event]] = {node.id: [] for node in case.description.nodes}
        """What each node has delivered that has neither joined nor left a group yet: most never do."""
        self._highest: dict[tuple[NodeId, GroupId], tuple[Event, Event]] = {}
        """Of what a node in a group has delivered since it joined, because of this group alone: the message
        with the highest stamp, and the one with the highest configuration."""

    def handlers(self) -> dict[Kind, Handler]:
        """Requests, what became of them, deliveries and recoveries."""
        return {
            **dict.fromkeys(CARRYING, self._on_deliver),
            **dict.fromkeys(ENTERING, self._on_joined),
            **dict.fromkeys(LEAVING, self._on_left),
            Kind.JOIN: self._on_join,
            Kind.RECOVER: self._on_recover,
        }

    def _on_join(self, event: Event) -> None:
        self._asked |= {(event.node, group) for group in event.groups or ()}

    def _on_joined(self, event: Event) -> None:
        self._look_back(event.node)
        for group in event.groups or ():
            key = (event.node, group)
            founder = event.node in self.description.groups[group]
            if self._inside.get(key, founder) and key not in self._recovered and not self._views:
                self._tell(event, f"joined group {group}, although it was in it")
            elif not founder and key not in self._asked:
                self._tell(event, f"joined group {group}, although it had not asked for it")
            self._inside[key] = True
            self._recovered.discard(key)
            self._highest.pop(key, None)

    def _on_left(self, event: Event) -> None:
        self._look_back(event.node)
        for group in event.groups or ():
            key = (event.node, group)
            if not self._inside.get(key, event.node in self.description.groups[group]):
                self._tell(event, f"left group {group}, although it was not in it")
            self._inside[key] = False
            span = Span(left=Place.of(event))
            beyond = [one for one in self._highest.pop(key, ()) if not span.holds(Place.of(one))]
            if beyond and span.left != NOWHERE:
                what = f"left group {group}, but it had delivered {_named(beyond[0])} after that place"
                self._tell(event, what, beyond[0])

    def _on_deliver(self, event: Event) -> None:
        before = self._before.get(event.node)
        if before is not None:
            before.append(event)
            return
        spans = {group: self._members.span(event.node, group) for group in event.groups or ()}
        mine = {group: span for group, span in spans.items() if span is not None}
        place = Place.of(event)
        within = [g for g, span in mine.items() if span.joined == NOWHERE or span.begun_by(place)]
        if not within and mine:
            group = min(mine)
            self._tell(event, f"delivered {_named(event)}, which comes before it joined group {group}", event)
        elif len(mine) == 1:
            self._note(event, within[0])

    def _look_back(self, node: NodeId) -> None:
        """Note what a node has delivered before it joined or left a group for the first time."""
        members = self.description.groups
        for event in self._before.pop(node, ()):
            mine = [group for group in event.groups or () if node in members[group]]
            if len(mine) == 1:
                self._note(event, mine[0])

    def _note(self, event: Event, group: GroupId) -> None:
        key = (event.node, group)
        by_stamp, by_config = self._highest.get(key, (event, event))
        self._highest[key] = (max(event, by_stamp, key=_stamp), max(event, by_config, key=_config))

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST and event.node in self._before:
            self._before[event.node].clear()
        for group in self.description.groups:
            self._recovered.add((event.node, group))
            if event.label == LOST:
                self._inside.pop((event.node, group), None)
                self._highest.pop((event.node, group), None)

    def _tell(self, event: Event, what: str, about: Event | None = None) -> None:
        messages = () if about is None or about.message is None else (about.message,)
        detail = f"node {event.node} {what} (at {format_ns(event.time_ns)})"
        self.report((event.node,), messages, (event.time_ns,), detail)


def _named(event: Event) -> str:
    return message_at(event.message or 0, event.time_ns)


def _stamp(event: Event) -> tuple[int, int]:
    return Place.of(event).stamp or (-1, -1)


def _config(event: Event) -> int:
    return event.config or 0

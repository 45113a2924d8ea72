"""Members: who receives which group, and between which places of its order.

A member from the start has joined at the start. `joined` and `left` rows of a node begin and end its later
*spans* in a group. A receiver owes the messages of a group that are ordered within its spans, and no others.
All oracles that need the receivers of a group ask here. The gate feeds it, before the other oracles.

The *place* of a message is the stamp and the configuration with which it was delivered first. If nobody
delivered it, it has none; then those owe it who had joined before it was submitted and have not left. Times
of different nodes are compared only in a simulated run; in any other, only members from the start owe it.

A node that loses its state is where it began: in the groups that the description lists for it.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ordercast.core import GroupId, Groups, Membership, Nanos, NodeId
from ordercast.trace import LOST, Event, RunDescription

ALWAYS: Nanos = -1 << 63
"""Before every time of a run."""


class Place(NamedTuple):
    """A place in the order of a group."""

    stamp: tuple[int, int] | None
    config: int | None

    @classmethod
    def of(cls, event: Event) -> "Place":
        """The place that a row names."""
        clock, issuer = event.stamp_clock, event.stamp_issuer
        return cls(None if clock is None or issuer is None else (clock, issuer), event.config)


class Span(NamedTuple):
    """A node's time in a group, from one place to another; None where there is no bound."""

    joined: Place | None = None
    left: Place | None = None
    joined_ns: Nanos = ALWAYS
    left_ns: Nanos | None = None

    def begun_by(self, place: Place) -> bool:
        """Whether a place comes after the begin of the span."""
        if self.joined is None:
            return True
        if self.joined.stamp is not None:
            return place.stamp is not None and place.stamp > self.joined.stamp
        return self.joined.config is not None and (place.config or 0) >= self.joined.config

    def holds(self, place: Place) -> bool:
        """Whether a place is not after the end of the span."""
        if self.left is None:
            return True
        if self.left.stamp is not None:
            return place.stamp is not None and place.stamp <= self.left.stamp
        return self.left.config is not None and (place.config or 0) < self.left.config


FROM_THE_START = Span()
NOWHERE = Place(None, None)
"""The place of a notice that names none."""


class Members:
    """The receivers of all groups, as they change."""

    def __init__(self, description: RunDescription) -> None:
        self.changing = description.guarantees.membership is not Membership.FIXED
        """Whether receivers may join and leave."""
        self._simulated = description.source == "simulator"
        self._founders = {group: frozenset(nodes) for group, nodes in description.groups.items()}
        self._ever = {group: dict.fromkeys(nodes) for group, nodes in description.groups.items()}
        self._spans: dict[tuple[NodeId, GroupId], list[Span]] = {}
        """The spans of nodes that have joined or left; the others have one, if they are founders."""
        self._moved: set[NodeId] = set()
        """All nodes that ever joined or left a group."""
        self._addressed: dict[Groups, set[NodeId]] = {}
        self._receivers: dict[Groups, tuple[NodeId, ...]] = {}

    # What changes

    def on_joined(self, event: Event) -> None:
        """A node receives a group from a place on. If it did already, it begins again there."""
        self._moved.add(event.node)
        for group in event.groups or ():
            spans = self._of(event.node, group)
            if spans and spans[-1].left_ns is None:
                spans.pop()
            spans.append(Span(Place.of(event), None, event.time_ns))
            self._ever[group][event.node] = None
            self._change(event.node, group)

    def on_left(self, event: Event) -> None:
        """A node receives a group no longer."""
        self._moved.add(event.node)
        for group in event.groups or ():
            spans = self._of(event.node, group)
            if spans and spans[-1].left_ns is None:
                spans[-1] = spans[-1]._replace(left=Place.of(event), left_ns=event.time_ns)
                self._change(event.node, group)

    def on_recover(self, event: Event) -> None:
        """A node came back; without its state, it is where it began."""
        if event.label != LOST or not self.changing:
            return
        for group in self._founders:
            if self._spans.pop((event.node, group), None) is not None:
                self._change(event.node, group)

    def _of(self, node: NodeId, group: GroupId) -> list[Span]:
        spans = self._spans.get((node, group))
        if spans is None:
            begun = [FROM_THE_START] if node in self._founders[group] else []
            spans = self._spans[node, group] = begun
        return spans

    def _change(self, node: NodeId, group: GroupId) -> None:
        self._receivers.clear()
        for groups, addressed in self._addressed.items():
            if group in groups:
                if any(self.is_in(node, one) for one in groups):
                    addressed.add(node)
                else:
                    addressed.discard(node)

    # Who is in

    def span(self, node: NodeId, group: GroupId) -> Span | None:
        """The span that a node is in now."""
        spans = self._spans.get((node, group))
        if spans is None:
            return FROM_THE_START if node in self._founders[group] else None
        return spans[-1] if spans and spans[-1].left_ns is None else None

    def is_in(self, node: NodeId, group: GroupId) -> bool:
        """Whether a node receives a group now."""
        return self.span(node, group) is not None

    def addressed(self, groups: Groups) -> set[NodeId]:
        """The nodes that receive one of these groups now. The set changes with the members."""
        found = self._addressed.get(groups)
        if found is None:
            found = {node for group in groups for node in self._ever[group] if self.is_in(node, group)}
            self._addressed[groups] = found
        return found

    def receivers(self, groups: Groups) -> tuple[NodeId, ...]:
        """The nodes that receive one of these groups or have ever received one, in ascending order."""
        found = self._receivers.get(groups)
        if found is None:
            found = tuple(sorted({node for group in groups for node in self.of(group)}))
            self._receivers[groups] = found
        return found

    def of(self, group: GroupId) -> Collection[NodeId]:
        """The nodes that receive a group or have ever received it."""
        return self._ever.get(group, {}).keys()

    def steady(self, groups: Groups) -> set[NodeId]:
        """The members of these groups from the start that never joined or left any group."""
        founders = {node for group in groups for node in self._founders.get(group, ())}
        return founders - self._moved

    def was_in(self, node: NodeId, group: GroupId, begin: Nanos, end: Nanos) -> bool:
        """Whether a node received a group from one time to another."""
        spans: Iterable[Span] = self._spans.get((node, group), self._from_the_start(node, group))
        return any(one.joined_ns < begin and (one.left_ns is None or one.left_ns > end) for one in spans)

    # Who owes what

    def owes(self, node: NodeId, groups: Groups, place: Place | None, submitted: Nanos) -> bool:
        """Whether a receiver owes a message to these groups, which was delivered at a place or nowhere."""
        return any(
            self._within(span, place, submitted)
            for group in groups
            for span in self._spans.get((node, group), self._from_the_start(node, group))
        )

    def _from_the_start(self, node: NodeId, group: GroupId) -> tuple[Span, ...]:
        return (FROM_THE_START,) if node in self._founders.get(group, ()) else ()

    def _within(self, span: Span, place: Place | None, submitted: Nanos) -> bool:
        if place is None or span.joined == NOWHERE:
            before = span.joined is None or (self._simulated and span.joined_ns < submitted)
            return before and span.left_ns is None
        return span.begun_by(place) and span.holds(place)

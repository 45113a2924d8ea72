"""Members: who receives which group, in which rows, and between which places of its order.

A *span* is a node's time in a group. Founders, who are in a group at the start, have a span from the start
on. `joined` and `left` rows begin and end spans; there are few, so they are processed one by one. Only nodes
that have such rows are *changed*. A receiver owes the messages that are ordered within its spans.

The *place* of a message is the stamp and the configuration of its first delivery. A message that nobody
delivered has none. Those owe it who had joined before it was submitted, by the common time of a simulated
run, and have not left.

A node that loses its state is where it began. Its spans before that are *void*: nothing is owed for them. So
is the span of a node that joins anew without having left.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ordercast.core import GroupId, Groups, Membership, Nanos, NodeId
from ordercast.judge.columns.columns import Flags, Ints, is_kind, null_of
from ordercast.trace import CHANGING, ENTERING

if TYPE_CHECKING:
    from ordercast.judge.columns.trace import Trace

ALWAYS: Nanos = -1 << 63
"""Before every time of a run."""


class OrderPlaces(NamedTuple):
    """OrderPlaces in the order, in columns; null where a place has no stamp or no configuration."""

    clock: Ints
    issuer: Ints
    config: Ints

    @property
    def stamped(self) -> Flags:
        """Which of them have a stamp."""
        flags: Flags = (self.clock != null_of(self.clock)) & (self.issuer != null_of(self.issuer))
        return flags

    def of(self, which: Ints) -> "OrderPlaces":
        """Some of them."""
        return OrderPlaces(*(column[which] for column in self))

    def above(self, clock: int, issuer: int) -> Flags:
        """Which of them have a higher stamp."""
        equal = (self.clock == clock) & (self.issuer > issuer)
        flags: Flags = ((self.clock > clock) | equal) & self.stamped
        return flags

    def from_config(self, config: int) -> Flags:
        """Which of them are in a configuration or a later one; null is the first configuration."""
        flags: Flags = np.where(self.config == null_of(self.config), 0, self.config) >= config
        return flags


class Boundary(NamedTuple):
    """The row of a notice that a node joined or left, and the place that it names, if any."""

    row: int
    time_ns: Nanos
    stamp: tuple[int, int] | None
    config: int | None

    @property
    def nowhere(self) -> bool:
        """Whether it names no place."""
        return self.stamp is None and self.config is None

    def passed(self, places: OrderPlaces) -> Flags:
        """Which places come after the boundary."""
        if self.stamp is not None:
            return places.above(*self.stamp)
        return places.from_config(self.config or 0)


class Span(NamedTuple):
    """A node's time in a group: the rows between two boundaries; None where there is none."""

    node: NodeId
    group: GroupId
    joined: Boundary | None
    left: Boundary | None
    first: int
    """Its rows come after this one."""
    last: int
    """And before this one."""
    void: bool = False

    def begun(self, places: OrderPlaces) -> Flags:
        """Which places come after its begin."""
        if self.joined is None or self.joined.nowhere:
            return np.ones(len(places.clock), bool)
        return self.joined.passed(places)

    def held(self, places: OrderPlaces) -> Flags:
        """Which places do not come after its end."""
        if self.left is None or self.left.nowhere:
            return np.ones(len(places.clock), bool)
        passed = self.left.passed(places)
        return ~passed & places.stamped if self.left.stamp is not None else ~passed

    def covers(self, rows: Ints) -> Flags:
        """Which of the node's rows are in it."""
        flags: Flags = (rows > self.first) & (rows < self.last)
        return flags


class Members:
    """The receivers of all groups of a run."""

    def __init__(self, trace: "Trace") -> None:
        self._trace = trace
        self._founders = trace.description.groups
        self.changing = trace.description.guarantees.membership is not Membership.FIXED
        """Whether receivers may join and leave."""
        self.spans: dict[tuple[NodeId, GroupId], list[Span]] = {}
        """The spans of nodes in groups that they have joined or left."""
        self.turns = self._find_turns()
        """For each node and group that changes, the rows with which it joins, leaves or loses its state."""
        for key, turns in self.turns.items():
            self.spans[key] = list(self._walk(key, turns))

    def _find_turns(self) -> dict[tuple[NodeId, GroupId], list[tuple[int, str]]]:
        trace, found = self._trace, dict[tuple[NodeId, GroupId], list[tuple[int, str]]]()
        rows = trace.rows(*CHANGING) if self.changing else np.empty(0, np.int64)
        for row, groups in zip(rows.tolist(), trace.table["groups"].take(rows).to_pylist(), strict=True):
            entering = bool(is_kind(trace.kind[row : row + 1], *ENTERING)[0])
            for group in groups or ():
                if tuple(groups) == trace.known(tuple(groups)):
                    key = (int(trace.node[row]), group)
                    found.setdefault(key, []).append((row, "joined" if entering else "left"))
        for (node, _), turns in found.items():
            turns += [(row, "lost") for row in trace.lost.get(node, np.empty(0, np.int64)).tolist()]
            turns.sort()
        return found

    def _walk(self, key: tuple[NodeId, GroupId], turns: list[tuple[int, str]]) -> Iterator[Span]:
        node, group = key
        end, closed = len(self._trace.kind), list[Span]()
        begun = Span(node, group, None, None, -1, end)
        current = begun if node in self._founders[group] else None
        for row, what in turns:
            if what == "lost":
                closed = [one._replace(void=True) for one in closed]
            if current is not None:
                left = self._boundary(row) if what == "left" else None
                closed.append(current._replace(left=left, last=row, void=current.void or what != "left"))
            if what == "joined":
                current = Span(node, group, self._boundary(row), None, row, end)
            else:
                founder = what == "lost" and node in self._founders[group]
                current = begun._replace(first=row) if founder else None
        yield from (*closed, *([] if current is None else [current]))

    def _boundary(self, row: int) -> Boundary:
        trace = self._trace
        names = ("stamp_clock", "stamp_issuer", "config")
        clock, issuer, config = (trace.table[name][row].as_py() for name in names)
        stamp = None if clock is None or issuer is None else (clock, issuer)
        return Boundary(row, int(trace.time[row]), stamp, config)

    @cached_property
    def changed(self) -> list[NodeId]:
        """The nodes that have joined or left a group."""
        return sorted({node for node, _ in self.spans})

    @cached_property
    def ever(self) -> dict[GroupId, tuple[NodeId, ...]]:
        """For each group, all nodes that ever received it."""
        found = {group: dict.fromkeys(nodes) for group, nodes in self._founders.items()}
        for (node, group), spans in self.spans.items():
            if spans:
                found[group][node] = None
        return {group: tuple(nodes) for group, nodes in found.items()}

    def inside(self, node: NodeId, group: GroupId, rows: Ints) -> Flags:
        """For each of a node's rows, whether it received a group then."""
        spans = self.spans.get((node, group))
        if spans is None:
            return np.full(len(rows), node in self._founders[group])
        flags = np.zeros(len(rows), bool)
        for span in spans:
            flags |= span.covers(rows)
        return flags

    def at_end(self, groups: Groups) -> set[NodeId]:
        """The nodes that receive one of these groups at the end."""
        keys = ((node, group) for group in groups for node in self.ever[group])
        return {node for node, group in keys if self._is_open(node, group)}

    def _is_open(self, node: NodeId, group: GroupId) -> bool:
        """Whether a node that ever received a group receives it at the end."""
        spans = self.spans.get((node, group))
        return spans is None or (bool(spans) and spans[-1].last == len(self._trace.kind))

    def steady(self, groups: Groups) -> set[NodeId]:
        """The members of these groups from the start that never joined or left any group."""
        return {node for group in groups for node in self._founders[group]}.difference(self.changed)

    def was_in(self, node: NodeId, group: GroupId, begin: Ints, end: Ints) -> Flags:
        """For each pair of times, whether a node received a group from one to the other."""
        spans = self.spans.get((node, group))
        if spans is None:
            return np.ones(len(begin), bool)
        flags = np.zeros(len(begin), bool)
        for one in (span for span in spans if not span.void):
            joined = ALWAYS if one.joined is None else one.joined.time_ns
            left = np.iinfo(np.int64).max if one.left is None else one.left.time_ns
            flags |= (joined < begin) & (left > end)
        return flags

    def owes(self, span: Span, places: OrderPlaces, known: Flags, submitted: Ints) -> Flags:
        """Which messages are ordered within a span; those that nobody delivered are not `known`."""
        simulated = self._trace.description.source == "simulator"
        if span.joined is None:
            before = np.ones(len(known), bool)
        else:
            before = (submitted > span.joined.time_ns) & simulated
        unplaced: Flags = before & (span.left is None)
        if span.joined is not None and span.joined.nowhere:
            return unplaced
        return np.where(known, span.begun(places) & self._held(span, places), unplaced)

    @staticmethod
    def _held(span: Span, places: OrderPlaces) -> Flags:
        if span.left is not None and span.left.nowhere:
            return np.zeros(len(places.clock), bool)
        return span.held(places)

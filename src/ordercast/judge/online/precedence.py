"""A precedence relation kept acyclic while it grows: an online topological order.

Vertices are in a list, each with a label that grows along the list, and every edge points forward. An edge
that agrees with the list costs one look-up. One that points backward starts two searches, forward from its
head and backward from its tail, in turn, each confined to the labels between the two (Pearce and Kelly's
affected region). If they meet, the edge would close a cycle: it is refused, and the path found is the proof.
Otherwise the first search that runs dry has found all that must move, and those vertices are put on the other
side of the edge. Moving the smaller side only, by labels with gaps rather than by dense positions, is what
makes a receiver that lags far behind the others cheap: with dense positions each edge that it adds would
shift everything the others delivered meanwhile.
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ordercast.core import MessageId, Nanos, NodeId

LABEL_GAP = 1 << 40


class Edge(NamedTuple):
    """`node` delivered `before` at `before_ns` and, later, `after` at `after_ns`."""

    before: MessageId
    after: MessageId
    node: NodeId
    before_ns: Nanos
    after_ns: Nanos


_Link: TypeAlias = tuple[MessageId, NodeId, Nanos, Nanos]
"""An edge without its tail."""


class Precedence:
    """A directed graph without cycles, and an order of its vertices that all edges follow."""

    __slots__ = (
        "_after",
        "_before",
        "_first",
        "_label",
        "_last",
        "_more_after",
        "_more_before",
        "_next",
        "_previous",
    )

    def __init__(self) -> None:
        self._label: dict[MessageId, int] = {}
        # Where all receivers agree, a vertex has one edge each way. It is kept flat, without a
        # container per vertex: garbage collection of the containers would cost more than the edges.
        self._after: dict[MessageId, _Link] = {}
        self._before: dict[MessageId, MessageId] = {}
        self._more_after: dict[MessageId, dict[MessageId, _Link]] = {}
        self._more_before: dict[MessageId, list[MessageId]] = {}
        self._next: dict[MessageId, MessageId | None] = {}
        self._previous: dict[MessageId, MessageId | None] = {}
        self._first: MessageId | None = None
        self._last: MessageId | None = None

    def __len__(self) -> int:
        return len(self._label)

    def __iter__(self) -> Iterator[MessageId]:
        """The vertices in their present order."""
        vertex = self._first
        while vertex is not None:
            yield vertex
            vertex = self._next[vertex]

    def add_vertex(self, vertex: MessageId) -> None:
        """A vertex, at the end of the order if it is new."""
        if vertex not in self._label:
            last = self._last
            self._label[vertex] = LABEL_GAP if last is None else self._label[last] + LABEL_GAP
            self._join(last, vertex)
            self._join(vertex, None)

    def in_order(self, before: MessageId, after: MessageId) -> bool:
        """Whether `before` comes before `after` in the present order."""
        return self._label[before] < self._label[after]

    def add(
        self,
        before: MessageId,
        after: MessageId,
        node: NodeId,
        before_ns: Nanos,
        after_ns: Nanos,
    ) -> list[Edge] | None:
        """Add an edge; if it closes a cycle, refuse it and return the path `after` to `before`."""
        link = self._after.get(before)
        if link is not None:
            if link[0] == after:
                return None
            if before in self._more_after and after in self._more_after[before]:
                return None
        self.add_vertex(before)
        self.add_vertex(after)
        if self._label[before] >= self._label[after]:
            path = self._make_room(before, after)
            if path is not None:
                return path
        if link is None:
            self._after[before] = (after, node, before_ns, after_ns)
        else:
            more = self._more_after.setdefault(before, {})
            more[after] = (after, node, before_ns, after_ns)
        if after not in self._before:
            self._before[after] = before
        else:
            self._more_before.setdefault(after, []).append(before)
        return None

    def edges_from(self, vertex: MessageId) -> list[Edge]:
        """The edges that leave a vertex, oldest first."""
        if vertex not in self._after:
            return []
        links = [self._after[vertex], *self._more_after.get(vertex, {}).values()]
        return [Edge(vertex, *link) for link in links]

    def _followers(self, vertex: MessageId) -> list[MessageId]:
        if vertex not in self._after:
            return []
        return [self._after[vertex][0], *self._more_after.get(vertex, ())]

    def _leaders(self, vertex: MessageId) -> list[MessageId]:
        if vertex not in self._before:
            return []
        return [self._before[vertex], *self._more_before.get(vertex, ())]

    def _make_room(self, tail: MessageId, head: MessageId) -> list[Edge] | None:
        """Reorder so that `tail` comes before `head`, or return the path that forbids it."""
        if tail == head:
            return []
        label = self._label
        lower, upper = label[head], label[tail]
        ahead: dict[MessageId, MessageId] = {head: head}  # each vertex and where we came from
        behind: dict[MessageId, MessageId] = {tail: tail}
        forward, backward = deque([head]), deque([tail])
        while forward and backward:
            here = forward.popleft()
            for there in self._followers(here):
                if there in behind:
                    return self._path(ahead, behind, here, there)
                if there not in ahead and label[there] < upper:
                    ahead[there] = here
                    forward.append(there)
            here = backward.popleft()
            for there in self._leaders(here):
                if there in ahead:
                    return self._path(ahead, behind, there, here)
                if there not in behind and label[there] > lower:
                    behind[there] = here
                    backward.append(there)
        if not backward:
            moved = sorted(behind, key=label.__getitem__)
            self._remove(moved)
            self._insert(moved, self._previous[head], head)
        else:
            moved = sorted(ahead, key=label.__getitem__)
            self._remove(moved)
            self._insert(moved, tail, self._next[tail])
        return None

    def _path(
        self,
        ahead: dict[MessageId, MessageId],
        behind: dict[MessageId, MessageId],
        left: MessageId,
        right: MessageId,
    ) -> list[Edge]:
        """The path through the edge `left` to `right` at which the two searches met."""
        vertices = [left]
        while ahead[vertices[-1]] != vertices[-1]:
            vertices.append(ahead[vertices[-1]])
        vertices.reverse()
        vertices.append(right)
        while behind[vertices[-1]] != vertices[-1]:
            vertices.append(behind[vertices[-1]])
        return [next(edge for edge in self.edges_from(a) if edge.after == b) for a, b in pairwise(vertices)]

    def _remove(self, vertices: list[MessageId]) -> None:
        for vertex in vertices:
            self._join(self._previous[vertex], self._next[vertex])

    def _insert(self, vertices: list[MessageId], left: MessageId | None, right: MessageId | None) -> None:
        """Put vertices, in this order, between two neighbours."""
        if right is None:
            step = LABEL_GAP
            start = self._label[left] if left is not None else 0
        elif left is None:
            step = LABEL_GAP
            start = self._label[right] - LABEL_GAP * (len(vertices) + 1)
        else:
            start = self._label[left]
            step = (self._label[right] - start) // (len(vertices) + 1)
        for vertex in vertices:
            start += step
            self._label[vertex] = start
            self._join(left, vertex)
            left = vertex
        self._join(left, right)
        if step == 0:  # the gap is used up
            for place, vertex in enumerate(self):
                self._label[vertex] = place * LABEL_GAP

    def _join(self, left: MessageId | None, right: MessageId | None) -> None:
        if left is None:
            self._first = right
        else:
            self._next[left] = right
        if right is None:
            self._last = left
        else:
            self._previous[right] = left

"""Calls on timelines, and the cycles that several timelines have together.

On a timeline, a call has a span: a shard holds locks for it from one place to another, or executes it at one
place; a client waits for it from one time to another. A call comes before those whose spans begin after its
span has ended. There may be quadratically many such pairs, so they go over the *ends*: a vertex for each end
of a span, in a chain, and each call comes behind the last end before its beginning.

If the pairs of all timelines have no cycle, all calls have one order. The search takes away whatever has
nothing before it (Kahn, 1962). What is left has a cycle.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

Moment: TypeAlias = Any
"""A place or a time. Those of one timeline can be compared."""
Vertices: TypeAlias = Mapping[int, int]
"""Some vertices, each with how many of them are right before it."""
STARTS_MAX = 64
"""From how many calls of a cycle a shorter one is searched."""


class Timeline(NamedTuple):
    """The order of a shard, of all whose clock is one, or of a client."""

    kind: str
    number: int


class Extent(NamedTuple):
    """From when to when a call is on a timeline; without an end, nothing comes after it there."""

    call: int
    start: Moment
    end: Moment | None


class Pair(NamedTuple):
    """A call comes before another one on a timeline."""

    before: int
    after: int
    timeline: Timeline


class _Edge(NamedTuple):
    head: int
    timeline: Timeline


class Timelines:
    """So many calls on timelines."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._spans: dict[Timeline, list[Extent]] = {}

    def add(self, timeline: Timeline, span: Extent) -> None:
        """A call is on a timeline."""
        self._spans.setdefault(timeline, []).append(span)

    def cycles(self) -> Iterator[list[Pair]]:
        """Cycles that have no call in common, each of few pairs."""
        after = self._edges()
        left = _without_sources(after, range(len(after)))
        while left:
            cycle = self._short(after, left)
            yield cycle
            gone = {pair.before for pair in cycle}
            left = _without_sources(after, [vertex for vertex in left if vertex not in gone])

    def _edges(self) -> list[list[_Edge]]:
        """The edges that leave each vertex: first the calls, then the ends."""
        after: list[list[_Edge]] = [[] for _ in range(self._calls)]
        for timeline, spans in self._spans.items():
            ended = sorted((span for span in spans if span.end is not None), key=itemgetter(2))
            ends = [span.end for span in ended]
            first = len(after)
            after += [[_Edge(first + number + 1, timeline)] for number in range(len(ended))]
            if ended:
                after[-1].clear()
            for number, span in enumerate(ended, first):
                after[span.call].append(_Edge(number, timeline))
            for span in spans:
                earlier = bisect_left(ends, span.start)
                if earlier:
                    after[first + earlier - 1].append(_Edge(span.call, timeline))
        return after

    def _short(self, after: list[list[_Edge]], left: Vertices) -> list[Pair]:
        """A short cycle among what is left."""
        found: list[Pair] = []
        for start in [v for v in self._some_cycle(after, left) if v < self._calls][:STARTS_MAX]:
            pairs = self._pairs(start, _way_back(after, left, start))
            if not found or len(pairs) < len(found):
                found = pairs
        return found

    @staticmethod
    def _some_cycle(after: list[list[_Edge]], left: Vertices) -> list[int]:
        """The vertices of any cycle: everything left has something before it, so a way back never ends."""
        before = {edge.head: vertex for vertex in left for edge in after[vertex] if edge.head in left}
        here, seen = next(iter(left)), dict[int, int]()
        while here not in seen:
            seen[here] = len(seen)
            here = before[here]
        return [vertex for vertex, place in seen.items() if place >= seen[here]]

    def _pairs(self, start: int, way: list[_Edge]) -> list[Pair]:
        """A way in pairs of calls; ends are left out."""
        pairs: list[Pair] = []
        here = start
        for edge in way:
            if edge.head < self._calls:
                pairs.append(Pair(here, edge.head, edge.timeline))
                here = edge.head
        return pairs


def _without_sources(after: list[list[_Edge]], left: Iterable[int]) -> Vertices:
    """Take away what has nothing before it, again and again."""
    count = dict.fromkeys(left, 0)
    for vertex in list(count):
        for edge in after[vertex]:
            if edge.head in count:
                count[edge.head] += 1
    ready = [vertex for vertex, before in count.items() if not before]
    while ready:
        vertex = ready.pop()
        del count[vertex]
        for edge in after[vertex]:
            if edge.head in count:
                count[edge.head] -= 1
                if not count[edge.head]:
                    ready.append(edge.head)
    return count


def _way_back(after: list[list[_Edge]], left: Vertices, start: int) -> list[_Edge]:
    """The fewest edges from a vertex of a cycle back to itself."""
    came: dict[int, tuple[int, _Edge]] = {}
    queue = deque([start])
    while start not in came:
        here = queue.popleft()
        for edge in after[here]:
            if edge.head in left and edge.head not in came:
                came[edge.head] = (here, edge)
                queue.append(edge.head)
    way: list[_Edge] = []
    here = start
    while not way or here != start:
        here, edge = came[here]
        way.append(edge)
    return way[::-1]

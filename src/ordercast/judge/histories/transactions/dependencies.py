"""Dependencies between transactions: which must come before which, and why (Adya; Elle, section 4).

`ww`: one appended right behind the other. `wr`: one read what the other had appended. `rw`: one read a list
as it was before the other appended to it. The order of a client, and of real time, are dependencies too.

Some orders have many pairs. They go over *links*, which are vertices that stand for no transaction: from
all that were answered by a moment, over this moment, to all that were invoked later.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from ordercast.judge.histories.operation import Value
from ordercast.judge.histories.transactions.lists import List, Lists, Seen
from ordercast.judge.histories.transactions.transaction import Transaction


class Dependency(IntEnum):
    """Why a transaction comes before another one."""

    WW = 0
    WR = 1
    RW = 2
    CLIENT = 3
    TIME = 4
    LINK = 5
    """The rest of a way whose first edge says why."""


class Why(NamedTuple):
    """A list, and the place of the element in it which the dependency is about."""

    key: Value
    place: int


class Edge(NamedTuple):
    """From a vertex to another one."""

    tail: int
    head: int
    kind: Dependency
    why: Why | None = None


class Graph:
    """Vertices, the first of which are the transactions, and edges between them."""

    def __init__(self, transactions: int) -> None:
        self.transactions = transactions
        self.after: list[list[Edge]] = [[] for _ in range(transactions)]
        """The edges that leave each vertex."""

    def link(self) -> int:
        """A new vertex that stands for no transaction."""
        self.after.append([])
        return len(self.after) - 1

    def within(self, part: Sequence[int]) -> "Graph":
        """The graph of some vertices, renumbered in this order; transactions must come first."""
        number = {vertex: place for place, vertex in enumerate(part)}
        graph = Graph(sum(vertex < self.transactions for vertex in part))
        graph.after = [
            [Edge(place, number[e.head], e.kind, e.why) for e in self.after[vertex] if e.head in number]
            for place, vertex in enumerate(part)
        ]
        return graph

    def add(self, tail: int, head: int, kind: Dependency, why: Why | None = None) -> None:
        """A dependency; none of a transaction on itself."""
        if tail != head:
            self.after[tail].append(Edge(tail, head, kind, why))


class Span(NamedTuple):
    """When a transaction was invoked and answered."""

    vertex: int
    invoked: int
    answered: int | None


def add_values(graph: Graph, lists: Lists) -> None:
    """The dependencies that the values show."""
    for one in lists:
        writers = [one.appended[element] for element in one.order]
        for place in range(1, len(writers)):
            graph.add(writers[place - 1], writers[place], Dependency.WW, Why(one.key, place))
        for seen in one.reads:
            _add_read(graph, one, seen, writers)
        _add_unread(graph, one, writers, lists.committed)


def _add_read(graph: Graph, one: List, seen: Seen, writers: list[int]) -> None:
    if seen.before:
        why = Why(one.key, seen.before - 1)
        graph.add(writers[seen.before - 1], seen.transaction, Dependency.WR, why)
    if seen.before < len(writers):
        graph.add(seen.transaction, writers[seen.before], Dependency.RW, Why(one.key, seen.before))


def _add_unread(graph: Graph, one: List, writers: list[int], committed: list[bool]) -> None:
    """What was appended and never read stands behind everything that was read.

    It has no order among itself. A transaction may read the whole list and then append to it; so each way
    goes over two lines of links, from the end to the beginning and back, and passes by where it starts.
    """
    read = set(one.order)
    unread = [number for element, number in one.appended.items() if element not in read]
    unread = [number for number in dict.fromkeys(unread) if committed[number]]
    last = [seen.transaction for seen in one.reads if seen.before == len(writers)]
    sources = [(number, Dependency.RW) for number in last]
    sources += [(writers[-1], Dependency.WW)] if writers else []
    if not unread or not sources or one.longest < 0:
        return
    why, place = Why(one.key, len(writers)), {number: i for i, number in enumerate(unread)}
    up, down = _line(graph, unread), _line(graph, unread[::-1])[::-1]
    for number, kind in sources:
        own = place.get(number, len(unread))
        if own > 0:
            graph.add(number, up[own - 1], kind, why)
        if own + 1 < len(unread):
            graph.add(number, down[own + 1], kind, why)


def _line(graph: Graph, vertices: Sequence[int]) -> list[int]:
    """For each vertex, a link that leads to it and to all before it."""
    links: list[int] = []
    for vertex in vertices:
        links.append(graph.link())
        graph.add(links[-1], vertex, Dependency.LINK)
        if len(links) > 1:
            graph.add(links[-1], links[-2], Dependency.LINK)
    return links


def add_order(graph: Graph, spans: Iterable[Span], kind: Dependency) -> None:
    """Whoever was answered comes before all that were invoked later."""
    spans = list(spans)
    ended = sorted((span.answered, span.vertex) for span in spans if span.answered is not None)
    links: list[int] = []
    for _, vertex in ended:
        links.append(graph.link())
        graph.add(vertex, links[-1], kind)
        if len(links) > 1:
            graph.add(links[-2], links[-1], Dependency.LINK)
    times = [answered for answered, _ in ended]
    for span in spans:
        earlier = bisect_left(times, span.invoked)
        if earlier:
            graph.add(links[earlier - 1], span.vertex, Dependency.LINK)


def span_of(vertex: int, transaction: Transaction) -> Span:
    """The time of a transaction that took effect."""
    return Span(vertex, transaction.invoked, transaction.answered)

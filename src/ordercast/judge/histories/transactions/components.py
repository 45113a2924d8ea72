"""The strongly connected parts of a graph, and short cycles in them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from ordercast.judge.histories.transactions.dependencies import Dependency, Edge, Graph

STARTS_MAX = 32
"""From how many vertices a short cycle is searched."""


def strong_parts(graph: Graph, kinds: Collection[Dependency] = tuple(Dependency)) -> list[list[int]]:
    """The strongly connected parts with several vertices (Tarjan), along edges of some kinds."""
    number = [0] * len(graph.after)
    low = [0] * len(graph.after)
    path: list[int] = []
    on_path = bytearray(len(graph.after))
    parts: list[list[int]] = []
    allowed = frozenset(kinds)
    count = 0
    for root in range(len(graph.after)):
        if number[root]:
            continue
        count += 1
        number[root] = low[root] = count
        path.append(root)
        on_path[root] = 1
        work = [(root, iter(graph.after[root]))]
        while work:
            here, edges = work[-1]
            for _, there, kind, _ in edges:
                if kind not in allowed:
                    continue
                if not number[there]:
                    count += 1
                    number[there] = low[there] = count
                    path.append(there)
                    on_path[there] = 1
                    work.append((there, iter(graph.after[there])))
                    break
                if on_path[there] and number[there] < low[here]:
                    low[here] = number[there]
            else:
                work.pop()
                if work and low[here] < low[work[-1][0]]:
                    low[work[-1][0]] = low[here]
                if low[here] == number[here]:
                    parts += _part(path, on_path, here)
    return parts


def _part(path: list[int], on_path: bytearray, last: int) -> list[list[int]]:
    """Take a part from the path; nothing if it is one vertex."""
    part: list[int] = []
    while not part or part[-1] != last:
        part.append(path.pop())
        on_path[part[-1]] = 0
    return [part] if len(part) > 1 else []


def shortest_way(
    graph: Graph, start: int, end: int, allowed: Callable[[Edge], bool], budget: list[int] | None = None
) -> list[Edge] | None:
    """The fewest edges from a vertex to another one, or back to itself; None if there is no way.

    A budget of steps may be given, from which the search takes; it ends when nothing is left.
    """
    came: dict[int, Edge] = {}
    queue = deque([start])
    while queue and end not in came and (budget is None or budget[0] > 0):
        here = queue.popleft()
        for edge in graph.after[here]:
            if edge.head not in came and allowed(edge):
                came[edge.head] = edge
                queue.append(edge.head)
        if budget is not None:
            budget[0] -= 1 + len(graph.after[here])
    if end not in came:
        return None
    way = [came[end]]
    while way[-1].tail != start:
        way.append(came[way[-1].tail])
    return way[::-1]


def short_cycle(graph: Graph, part: Iterable[int], kinds: Collection[Dependency]) -> list[Edge]:
    """A short cycle in a strongly connected part."""
    inside, allowed = frozenset(part), frozenset(kinds)
    found: list[Edge] | None = None
    for start in islice((vertex for vertex in sorted(inside) if vertex < graph.transactions), STARTS_MAX):
        cycle = shortest_way(graph, start, start, lambda e: e.kind in allowed and e.head in inside)
        if cycle is not None and (found is None or len(cycle) < len(found)):
            found = cycle
    assert found is not None
    return found

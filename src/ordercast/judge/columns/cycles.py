"""Finds the cycles of the relation "some receiver delivered a before b" among a few messages.

First it compares pairs of receivers: two receivers that deliver two messages in opposite orders are the
plainest contradiction. If no pair contradicts each other, three or more receivers may, if each missed
something. Then the strongly connected parts of the relation show the cycles (Tarjan's algorithm), and a
shortest cycle in one of them is the counterexample.
"""

from collections import deque
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ordercast.core import NodeId
from ordercast.judge.columns.columns import Ints


class Sequence(NamedTuple):
    """What a receiver delivered, in order: the places of the messages and of the deliveries."""

    node: NodeId
    places: Ints
    where: Ints


Edge = tuple[NodeId, int, int]
"""A node and two of its deliveries, the earlier one first."""
PAIRS_MAX = 64
"""How many chains are compared pairwise before the general search starts."""


def find_cycles(chains: list[Sequence], wanted: int) -> tuple[list[list[Edge]], int]:
    """Up to `wanted` cycles, as lists of edges, and how many more are known."""
    cycles, more = _inversions(chains, wanted)
    if cycles or more:
        return cycles, more
    return _long_cycles(chains, wanted)


def _inversions(chains: list[Sequence], wanted: int) -> tuple[list[list[Edge]], int]:
    """Pairs of messages that two receivers deliver in opposite orders, next to each other at one of them."""
    found: dict[frozenset[int], list[Edge]] = {}
    more = 0
    # Renumbered, because a stretch is small and the run is large.
    messages, local = np.unique(np.concatenate([chain.places for chain in chains]), return_inverse=True)
    names = np.split(local, np.cumsum([len(chain.places) for chain in chains])[:-1])
    at = np.full(len(messages), -1, np.int64)
    for number, reference in enumerate(chains[:PAIRS_MAX]):
        at[names[number]] = np.arange(len(reference.places))
        for chain, name in zip(chains[number + 1 :], names[number + 1 :], strict=True):
            common = np.flatnonzero(at[name] >= 0)
            there = at[name[common]]
            steps = np.flatnonzero(there[1:] < there[:-1])
            for step in steps.tolist():
                if len(found) >= wanted:
                    more += 1 if number == 0 else 0  # with another reference, it may be the same pair
                    continue
                first, second = common[step], common[step + 1]
                here = (int(chain.where[first]), int(chain.where[second]))
                others = (int(reference.where[there[step + 1]]), int(reference.where[there[step]]))
                pair = frozenset((int(chain.places[first]), int(chain.places[second])))
                found.setdefault(pair, [(reference.node, *others), (chain.node, *here)])
        at[names[number]] = -1
        if len(found) >= wanted:
            break
    return list(found.values()), more


def _long_cycles(chains: list[Sequence], wanted: int) -> tuple[list[list[Edge]], int]:
    """One cycle of each strongly connected part of the relation."""
    after: dict[int, dict[int, Edge]] = {}
    for chain in chains:
        places, where = chain.places.tolist(), chain.where.tolist()
        for index in range(len(places) - 1):
            edge = (chain.node, where[index], where[index + 1])
            after.setdefault(places[index], {}).setdefault(places[index + 1], edge)
    parts = [part for part in strong_parts(after) if len(part) > 1]
    return [way_round(after, part) for part in parts[:wanted]], max(0, len(parts) - wanted)


def strong_parts(after: dict[int, dict[int, Edge]]) -> list[list[int]]:
    """The strongly connected parts of a graph; no recursion, because chains are long."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    parts: list[list[int]] = []
    for root in after:
        if root in number:
            continue
        work = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        path.append(root)
        on_path.add(root)
        while work:
            here, successors = work[-1]
            for there in successors:
                if there not in number:
                    number[there] = low[there] = len(number)
                    path.append(there)
                    on_path.add(there)
                    work.append((there, iter(after.get(there, ()))))
                    break
                if there in on_path:
                    low[here] = min(low[here], number[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == number[here]:
                    part: list[int] = []
                    while not part or part[-1] != here:
                        part.append(path.pop())
                        on_path.discard(part[-1])
                    parts.append(part)
    return parts


def way_round(after: dict[int, dict[int, Edge]], part: list[int]) -> list[Edge]:
    """A shortest cycle through one message of a strongly connected part, with edges of one node merged."""
    start, inside = min(part), set(part)
    came: dict[int, int] = {}
    queue = deque([start])
    while start not in came:
        here = queue.popleft()
        for there in after.get(here, ()):
            if there in inside and there not in came:
                came[there] = here
                queue.append(there)
    messages = [start]
    while not (len(messages) > 1 and messages[-1] == start):
        messages.append(came[messages[-1]])
    messages.reverse()
    edges = [after[a][b] for a, b in pairwise(messages)]
    turn = next((i for i in range(len(edges)) if edges[i - 1][0] != edges[i][0]), 0)
    short: list[Edge] = []
    for node, first, last in edges[turn:] + edges[:turn]:
        if short and short[-1][0] == node and short[-1][2] == first:
            short[-1] = (node, short[-1][1], last)
        else:
            short.append((node, first, last))
    return short

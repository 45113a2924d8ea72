"""Makes the plans of an epoch from the graph and the places of the atoms."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ordercast.components.sequencing_graph import AtomId, SequencingGraph
from ordercast.core import GroupId, NodeId
from ordercast.protocols.atoms.records import Hop, Post

SENDERS: NodeId = -1
"""Stands for the publishers, as a member of every group, where causal order is promised: a publisher that
receives what it sends makes every common member of two groups a second one."""


def members_of(graph: SequencingGraph, group: GroupId) -> tuple[NodeId, ...]:
    """The subscribers of a group."""
    return tuple(sorted(node for node in graph.members(group) if node != SENDERS))


def trees(graph: SequencingGraph, groups: Iterable[GroupId]) -> dict[GroupId, AtomId]:
    """The root of the tree of each group."""
    roots: dict[AtomId, AtomId] = {}
    found: dict[GroupId, AtomId] = {}
    for group in groups:
        way: list[AtomId] = []
        for atom in graph.forest.upwards(graph.highest(group)):
            way.append(atom)
            if atom in roots:
                break
        found[group] = roots.get(way[-1], way[-1])
        roots.update(dict.fromkeys(way, found[group]))
    return found


class Runs:
    """Runs of atoms above each other at one node. Paths have far more atoms than nodes, and many paths go the
    same way, so each run is walked once."""

    def __init__(self, graph: SequencingGraph, sites: Mapping[AtomId, NodeId]) -> None:
        self._forest = graph.forest
        self._sites = sites
        self._tops: dict[AtomId, AtomId] = {}

    def top(self, atom: AtomId) -> AtomId:
        """The highest atom that can be reached from an atom without leaving its node."""
        if atom in self._tops:
            return self._tops[atom]
        way: list[AtomId] = []
        for one in self._forest.upwards(atom):
            if self._sites[one] != self._sites[atom]:
                break
            way.append(one)
            if one in self._tops:
                break
        found = self._tops.get(way[-1], way[-1])
        self._tops.update(dict.fromkeys(way, found))
        return found


def hops_of(
    graph: SequencingGraph,
    group: GroupId,
    sites: Mapping[AtomId, NodeId],
    lives: Mapping[NodeId, int],
    runs: Runs,
) -> tuple[Hop, ...]:
    """The path of a group from node to node. Atoms that only pass it on count too: messages of other groups
    must not overtake it there."""
    level, own = graph.forest.level, [*graph.own_atoms(group)]
    atom: AtomId | None = own[-1]
    hops: list[Hop] = []
    while own and atom is not None:
        here: list[AtomId] = []
        first = runs.top(atom)
        above = level(first)
        while own and level(own[-1]) >= above:
            here.append(own.pop())
        node = sites[atom]
        hops.append(Hop(Post(node, lives[node]), tuple(reversed(here))))
        atom = graph.forest.parent(first)
    return tuple(reversed(hops))


def holders_of(
    last: NodeId,
    before: Sequence[NodeId],
    up: Collection[NodeId],
    copies: int,
    load: Mapping[NodeId, int],
) -> tuple[NodeId, ...]:
    """The nodes that keep the log of a group: the last of its path, then others, first the present ones."""
    others = [node for node in before if node in up and node != last]
    others += sorted(
        (node for node in up if node not in (last, *others)), key=lambda node: (load[node], node)
    )
    chosen = others[: copies - 1]
    # Whoever sent to the subscribers goes on: it knows how far they have come.
    chosen.sort(key=lambda node: before.index(node) if node in before else -1)
    return (last, *chosen)

"""Which sequencing node hosts which atom ([atoms] section 3.3).

The groupings of the sequencing graph say which atoms belong together, for any number of nodes. Where nodes
are few and atoms many, what counts is how often a path changes its node. Paths lead down a tree. So if the
atoms are put in the order of a walk through it, each before those below it, and this order is cut in pieces,
one for each node, then no path comes back to a node that it has left.
"""

from collections.abc import Iterable, Mapping

from ordercast.components.sequencing_graph import GROUPINGS, AtomId, SequencingGraph
from ordercast.core import NodeId

SUBTREES = "subtrees"
PLACEMENTS = (*GROUPINGS, SUBTREES)


def first_sites(graph: SequencingGraph, nodes: tuple[NodeId, ...], grouping: str) -> dict[AtomId, NodeId]:
    """Atoms that belong together on one node; nodes with as many atoms as others, as far as that goes."""
    if grouping == SUBTREES:
        return _pieces(graph, nodes)
    load = dict.fromkeys(nodes, 0)
    sites: dict[AtomId, NodeId] = {}
    for atoms in sorted(GROUPINGS[grouping](graph), key=lambda atoms: (-len(atoms), atoms)):
        node = _least(load)
        load[node] += len(atoms)
        sites.update(dict.fromkeys(atoms, node))
    return sites


def _pieces(graph: SequencingGraph, nodes: tuple[NodeId, ...]) -> dict[AtomId, NodeId]:
    order: list[AtomId] = []
    waiting = [*reversed(graph.children(None))]
    while waiting:
        atom = waiting.pop()
        order.append(atom)
        waiting += reversed(graph.children(atom))
    return {atom: nodes[place * len(nodes) // len(order)] for place, atom in enumerate(order)}


def next_sites(
    graph: SequencingGraph, before: Mapping[AtomId, NodeId], up: Iterable[NodeId]
) -> dict[AtomId, NodeId]:
    """Atoms stay where they are. New ones, and those of nodes that are down, go beside the atoms above or
    below them, if their node has not more atoms than others, and elsewhere to the node with fewest."""
    load = dict.fromkeys(sorted(up), 0)
    sites: dict[AtomId, NodeId] = {}
    for atom in graph.atoms:
        if before.get(atom) in load:
            sites[atom] = before[atom]
            load[before[atom]] += 1
    homeless = [atom for atom in graph.atoms if atom not in sites]
    fair = -(-len(graph.atoms) // max(1, len(load)))
    for atom in homeless:
        near = (graph.parent(atom), *graph.children(atom))
        beside = (sites[one] for one in near if one is not None and one in sites)
        node = next((one for one in beside if load[one] < fair), None)
        node = _least(load) if node is None else node
        sites[atom] = node
        load[node] += 1
    return sites


def _least(load: Mapping[NodeId, int]) -> NodeId:
    return min(load, key=lambda node: (load[node], node))

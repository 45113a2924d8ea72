"""A sequencing graph for many groups at once, with shorter paths than their arrival one by one gives.

The forest is the elimination tree of an order of the atoms: from the last to the first of that order, an atom
goes on top of all trees that hold an atom of one of its groups. Atoms of one group are then on one way,
whatever the order is; the order decides how long the ways are. Two orders are named here. Both take time in
proportion to the sum of the overlaps' sizes (and a logarithm).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.hubs import find_hubs, pack_hubs
from ordercast.components.sequencing_graph.steps import FoundGroup, InsertAtom, OpenGroup
from ordercast.components.sequencing_graph.terrain import WantedAtom
from ordercast.core import GroupId, LocalError, NodeId

Order: TypeAlias = Callable[[Sequence[WantedAtom]], Iterable[int]]
"""From the wanted atoms to their indices, from the top of the forest to its leaves."""


def by_hub(wanted: Sequence[WantedAtom]) -> list[int]:
    """Atoms that share a member together, that of most overlaps on top: a path changes its node seldom."""
    place = {index: place for place, index in enumerate(by_group(wanted))}
    hubs = find_hubs([want.overlap for want in wanted])
    return [index for _, indices in hubs for index in sorted(indices, key=place.__getitem__)]


def by_load(rates: Mapping[GroupId, float], limit: float) -> Order:
    """Hubs together as `within_load` puts them on nodes: fewest changes of node on a path.

    Time grows with the square of the number of hubs.
    """

    def order(wanted: Sequence[WantedAtom]) -> list[int]:
        place = {index: place for place, index in enumerate(by_group(wanted))}
        overlaps, groups = [want.overlap for want in wanted], [want.groups for want in wanted]
        packs = pack_hubs(overlaps, groups, rates, limit)
        return [index for pack in packs for index in sorted(pack, key=place.__getitem__)]

    return order


def by_group(wanted: Sequence[WantedAtom]) -> list[int]:
    """Atoms of groups with few atoms at the leaves: few atoms on a path, but many changes of node."""
    atoms = Counter(group for want in wanted for group in want.groups)
    keys = [sorted(atoms[group] for group in want.groups) for want in wanted]
    return sorted(range(len(wanted)), key=lambda index: (keys[index], index), reverse=True)


def build(groups: Mapping[GroupId, Iterable[NodeId]], order: Order = by_hub) -> SequencingGraph:
    """The graph of these groups; `LocalError` if one has no members."""
    graph = SequencingGraph()
    members = {group: frozenset(groups[group]) for group in sorted(groups)}
    for group, those in members.items():
        if not those:
            raise LocalError(f"group {group} has no members")
        graph.apply(FoundGroup(group, those))
    wanted = wanted_atoms(graph)
    for step in _insertions(wanted, list(order(wanted))):
        graph.apply(step)
    for group in members:
        if not graph.has_atoms(group):
            graph.apply(InsertAtom(graph.next_atom, (group,), None, ()))
        graph.apply(OpenGroup(group))
    return graph


def wanted_atoms(graph: SequencingGraph) -> list[WantedAtom]:
    """One atom for every different double overlap of a graph's groups."""
    sharing: dict[frozenset[NodeId], dict[GroupId, None]] = {}
    for group, members in graph.subscriptions.groups.items():
        for other, overlap in graph.subscriptions.overlaps(members, group).items():
            if other < group:
                sharing.setdefault(overlap, {}).update({other: None, group: None})
    return [WantedAtom(overlap, tuple(sorted(those))) for overlap, those in sharing.items()]


def _insertions(wanted: Sequence[WantedAtom], order: Sequence[int]) -> Iterator[InsertAtom]:
    """Every atom below its parent in the elimination tree, parents first."""
    parents = _elimination_tree([wanted[index].groups for index in order])
    for place, index in enumerate(order):
        yield InsertAtom(place, wanted[index].groups, parents[place], ())


def _elimination_tree(order: Sequence[Sequence[GroupId]]) -> list[int | None]:
    """The parent of each atom, by place, for atoms that are given from the top to the leaves."""
    parents: list[int | None] = [None] * len(order)
    top = list(range(len(order)))
    last: dict[GroupId, int] = {}

    def find(place: int) -> int:
        while top[place] != place:
            top[place] = top[top[place]]
            place = top[place]
        return place

    for place in range(len(order) - 1, -1, -1):
        for group in order[place]:
            root = find(last.get(group, place))
            if root != place:
                parents[root] = top[root] = place
            last[group] = place
    return parents

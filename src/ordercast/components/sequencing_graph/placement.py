"""Which atoms share a sequencing node, and where the nodes are ([atoms] section 3.3).

The paper has heuristics for this and does not give them. Here they are in two stages, each a function that
can be replaced:

- A *grouping* says which atoms share a node. It must keep what the paper promises: no node orders more
  messages than the busiest receiver gets. It does so if some member is in all overlaps of a node, for it
  receives all that the node orders.
- A *siting* gives each node a machine, near the members and near the other nodes on the paths.

Atoms that are an ingress only stay apart, each on a node of its own: nothing is ordered across groups there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, TypeAlias

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.hubs import find_hubs, pack_hubs
from ordercast.components.sequencing_graph.steps import AtomId
from ordercast.core import GroupId, HostId, LocalError, NodeId


class AtomsAndOverlaps(Protocol):
    """What a grouping must know: a graph, or a network."""

    @property
    def atoms(self) -> Iterable[AtomId]:
        """All atoms."""
        ...

    def groups_of(self, atom: AtomId, /) -> tuple[GroupId, ...]:
        """The groups that an atom numbers."""
        ...

    def overlap(self, atom: AtomId, /) -> frozenset[NodeId]:
        """The members to whom an atom is relevant."""
        ...


Grouping: TypeAlias = Callable[[AtomsAndOverlaps], list[tuple[AtomId, ...]]]
"""From a graph to the atoms of each sequencing node."""

Distances: TypeAlias = Sequence[Sequence[float]]
"""From a machine to a machine. Members are at machines of the same numbers."""


def apart(graph: AtomsAndOverlaps) -> list[tuple[AtomId, ...]]:
    """Every atom on a node of its own: most nodes, longest paths, least load. Costs nothing to compute."""
    return [(atom,) for atom in graph.atoms]


def nested(graph: AtomsAndOverlaps) -> list[tuple[AtomId, ...]]:
    """Overlaps that are equal to, inside or around another share a node, as the paper says.

    A node keeps the smallest of its overlaps as its core; an overlap that contains a core joins it. Time
    grows with the number of atoms times the number of nodes.
    """
    ordering, alone = _divided(graph)
    cores: list[tuple[frozenset[NodeId], list[AtomId]]] = []
    for atom in sorted(ordering, key=lambda atom: (len(graph.overlap(atom)), atom)):
        overlap = graph.overlap(atom)
        homes = (atoms for core, atoms in cores if core <= overlap)
        if (home := next(homes, None)) is None:
            cores.append((overlap, [atom]))
        else:
            home.append(atom)
    return [tuple(sorted(atoms)) for _, atoms in cores] + alone


def shared_member(graph: AtomsAndOverlaps) -> list[tuple[AtomId, ...]]:
    """Overlaps with a member in common share a node: fewest nodes.

    Equal, inner and outer overlaps have members in common, so this goes further than `nested`. Time grows
    with the sum of the overlaps' sizes (and a logarithm).
    """
    ordering, alone = _divided(graph)
    hubs = find_hubs([graph.overlap(atom) for atom in ordering])
    return [tuple(sorted(ordering[index] for index in indices)) for _, indices in hubs] + alone


def within_load(rates: Mapping[GroupId, float], limit: float) -> Grouping:
    """Hubs share a node while it orders no more messages than a limit; `busiest_receiver` is the paper's.

    A member in common is no longer needed then, but the rates of the groups must be known. Time grows with
    the square of the number of hubs.
    """

    def grouping(graph: AtomsAndOverlaps) -> list[tuple[AtomId, ...]]:
        ordering, alone = _divided(graph)
        overlaps = [graph.overlap(atom) for atom in ordering]
        packs = pack_hubs(overlaps, [graph.groups_of(atom) for atom in ordering], rates, limit)
        return [tuple(sorted(ordering[index] for index in pack)) for pack in packs] + alone

    return grouping


def busiest_receiver(members: Mapping[GroupId, Iterable[NodeId]], rates: Mapping[GroupId, float]) -> float:
    """How many messages the member gets who gets most."""
    received: dict[NodeId, float] = {}
    for group in sorted(members):
        for member in members[group]:
            received[member] = received.get(member, 0.0) + rates[group]
    return max(received.values(), default=0.0)


GROUPINGS: Mapping[str, Grouping] = {"apart": apart, "nested": nested, "shared_member": shared_member}
"""The groupings that need no rates, by name."""


def _divided(graph: AtomsAndOverlaps) -> tuple[list[AtomId], list[tuple[AtomId, ...]]]:
    """The atoms that order overlaps, and those that are an ingress only."""
    ordering = [atom for atom in graph.atoms if graph.overlap(atom)]
    return ordering, [(atom,) for atom in graph.atoms if not graph.overlap(atom)]


class NodeLayout:
    """Atoms on sequencing nodes: the paths between nodes, and what each node handles."""

    __slots__ = ("_graph", "_node_of", "nodes", "paths")

    def __init__(self, graph: SequencingGraph, grouping: Grouping = shared_member) -> None:
        self._graph = graph
        self.nodes = grouping(graph)
        self._node_of = {atom: node for node, atoms in enumerate(self.nodes) for atom in atoms}
        self.paths = {group: self._path(group) for group in graph.groups}

    def node_of(self, atom: AtomId) -> int:
        """The node of an atom."""
        return self._node_of[atom]

    def ordering_nodes(self) -> list[int]:
        """The nodes that order overlaps; the others are an ingress only."""
        return [node for node, atoms in enumerate(self.nodes) if any(map(self._graph.overlap, atoms))]

    def ordered(self, rates: Mapping[GroupId, float]) -> list[float]:
        """How many messages each node gives a number to, for messages sent to each group."""
        of_node = (
            dict.fromkeys(one for atom in atoms for one in self._graph.groups_of(atom))
            for atoms in self.nodes
        )
        return [sum(rates[group] for group in groups) for groups in of_node]

    def handled(self, rates: Mapping[GroupId, float]) -> list[float]:
        """How many messages come to each node, with those that it only passes on."""
        loads = [0.0] * len(self.nodes)
        for group, path in self.paths.items():
            for node in dict.fromkeys(path):
                loads[node] += rates[group]
        return loads

    def _path(self, group: GroupId) -> tuple[int, ...]:
        nodes = [self._node_of[atom] for atom in self._graph.path(group)]
        return tuple(node for place, node in enumerate(nodes) if place == 0 or nodes[place - 1] != node)


class Siting:
    """Machines for the nodes of a layout: one machine for each, as long as there are enough.

    `near_members` puts a node where the sum of distances to the members of its groups is least. `near_paths`
    starts there and moves one node after the other to where the ways of all messages are shortest: from
    members to the first node, from node to node, and from the last node to the members. Either takes time in
    proportion to machines times the sum of group sizes; `near_paths` in addition machines times channels for
    each round.
    """

    __slots__ = ("_distances", "_graph", "_layout", "_to_members", "hosts")

    def __init__(self, graph: SequencingGraph, layout: NodeLayout, distances: Distances) -> None:
        if not len(distances):
            raise LocalError("there is no machine to put sequencing nodes on")
        self._graph = graph
        self._layout = layout
        self._distances = distances
        self._to_members = {group: self._mean_distances(group) for group in layout.paths}
        self.hosts: list[HostId] = []

    def _mean_distances(self, group: GroupId) -> list[float]:
        members = sorted(self._graph.members(group))
        rows = [self._distances[member] for member in members]
        if not members:
            return [0.0] * len(self._distances)
        return [sum(column) / len(members) for column in zip(*rows, strict=True)]

    def near_members(self) -> list[HostId]:
        """Each node near the members of its groups, whatever the other nodes do."""
        self.hosts = []
        for atoms in self._layout.nodes:
            groups = dict.fromkeys(group for atom in atoms for group in self._graph.groups_of(atom))
            self.hosts.append(self._best([self._to_members[group] for group in groups], None))
        return self.hosts

    def near_paths(self, rounds: int = 5) -> list[HostId]:
        """Nodes near the members and near each other, by rounds of improvement."""
        self.near_members()
        ends, links = self._terms()
        for _ in range(rounds):
            before = list(self.hosts)
            for node in range(len(self.hosts)):
                rows: list[Sequence[float]] = [self._to_members[group] for group in ends[node]]
                rows += [self._distances[self.hosts[other]] for other in links[node]]
                self.hosts[node] = self._best(rows, node)
            if self.hosts == before:
                break
        return self.hosts

    def _terms(self) -> tuple[list[list[GroupId]], list[list[int]]]:
        """For each node: the groups whose path begins or ends there, and the nodes before and after it."""
        ends: list[list[GroupId]] = [[] for _ in self._layout.nodes]
        links: list[list[int]] = [[] for _ in self._layout.nodes]
        for group, path in self._layout.paths.items():
            ends[path[0]].append(group)
            ends[path[-1]].append(group)
            for source, target in pairwise(path):
                links[source].append(target)
                links[target].append(source)
        return ends, links

    def _best(self, rows: Sequence[Sequence[float]], node: int | None) -> HostId:
        """The machine with the least sum of distances, of those with the fewest nodes."""
        machines = range(len(self._distances))
        costs = [sum(column) for column in zip(*rows, strict=True)] if rows else [0.0 for _ in machines]
        taken = [0 for _ in machines]
        for other, host in enumerate(self.hosts):
            taken[host] += other != node
        return min(machines, key=lambda host: (taken[host], costs[host], host))

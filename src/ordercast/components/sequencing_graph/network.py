"""What a sequencing graph comes down to: groups, atoms and paths; and the conditions that they must meet.

The conditions of [atoms] section 3.2, and one that the paper does not state:

- C1: one path connects the atoms of a group.
- C2: the channels, taken without their direction, have no loop.
- C3: every channel is used in one direction only. Without it, three groups can wait for each other in a
  circle although there is no loop.

And every double overlap has an atom: one that numbers both groups, and is relevant to all whom they share.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from ordercast.components.sequencing_graph.steps import AtomId
from ordercast.core import GroupId, LocalError, NodeId


@dataclass(frozen=True, slots=True)
class Network:
    """The members of each group, the groups of each atom, and the path of each group."""

    members: Mapping[GroupId, frozenset[NodeId]]
    atoms: Mapping[AtomId, tuple[GroupId, ...]]
    paths: Mapping[GroupId, tuple[AtomId, ...]]

    def groups_of(self, atom: AtomId) -> tuple[GroupId, ...]:
        """The groups whose messages an atom numbers."""
        return self.atoms[atom]

    def overlap(self, atom: AtomId) -> frozenset[NodeId]:
        """The members to whom an atom is relevant."""
        return overlap_of(self.members, self.atoms[atom])

    def channels(self) -> Iterator[tuple[AtomId, AtomId]]:
        """Every channel that a path uses, in the direction of its messages, once."""
        steps = (step for path in self.paths.values() for step in pairwise(path))
        yield from dict.fromkeys(steps)


def check_network(network: Network) -> None:
    """Raise `LocalError` with one sentence about the first condition that does not hold."""
    _check_names(network)
    _check_paths(network)
    _check_directions(network)
    _check_loops(network)
    _check_overlaps(network)


def _check_names(network: Network) -> None:
    for atom, groups in network.atoms.items():
        for group in groups:
            if group not in network.members:
                raise LocalError(f"atom {atom} numbers group {group}, which is not there")
    if missing := [group for group in network.members if not network.paths.get(group)]:
        raise LocalError(f"group {missing[0]} has no path (C1)")


def _check_paths(network: Network) -> None:
    for group, path in network.paths.items():
        if len(frozenset(path)) < len(path):
            raise LocalError(f"the path of group {group} comes to an atom twice (C1)")
        if unknown := [atom for atom in path if atom not in network.atoms]:
            raise LocalError(f"the path of group {group} goes through atom {unknown[0]}, which is not there")
    for atom, groups in network.atoms.items():
        for group in groups:
            if atom not in network.paths[group]:
                raise LocalError(f"the path of group {group} misses its atom {atom} (C1)")


def _check_directions(network: Network) -> None:
    seen: set[tuple[AtomId, AtomId]] = set()
    for source, target in network.channels():
        if (target, source) in seen:
            raise LocalError(
                f"the channel between atoms {target} and {source} is used in both directions (C3)"
            )
        seen.add((source, target))


def _check_loops(network: Network) -> None:
    leader = {atom: atom for atom in network.atoms}

    def find(atom: AtomId) -> AtomId:
        while leader[atom] != atom:
            leader[atom] = leader[leader[atom]]
            atom = leader[atom]
        return atom

    for source, target in network.channels():
        one, other = find(source), find(target)
        if one == other:
            raise LocalError(f"the channel from atom {source} to atom {target} closes a loop (C2)")
        leader[one] = other


def _check_overlaps(network: Network) -> None:
    served: set[tuple[GroupId, GroupId]] = set()
    for groups in network.atoms.values():
        overlap = overlap_of(network.members, groups)
        for pair in combinations(sorted(groups), 2):
            if len(network.members[pair[0]] & network.members[pair[1]]) == len(overlap):
                served.add(pair)
    for one, other in _double_overlaps(network.members):
        if (one, other) not in served:
            raise LocalError(f"the double overlap of groups {one} and {other} has no atom")


def overlap_of(
    members: Mapping[GroupId, frozenset[NodeId]], groups: tuple[GroupId, ...]
) -> frozenset[NodeId]:
    """Those in all these groups: the members to whom an atom for two or more groups is relevant."""
    if len(groups) < 2:
        return frozenset()
    smallest = min(groups, key=lambda group: len(members[group]))
    return members[smallest].intersection(*(members[group] for group in groups))


def _double_overlaps(members: Mapping[GroupId, frozenset[NodeId]]) -> Iterator[tuple[GroupId, GroupId]]:
    for one, other in combinations(sorted(members), 2):
        if len(members[one] & members[other]) > 1:
            yield one, other

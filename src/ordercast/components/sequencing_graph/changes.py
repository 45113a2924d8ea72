"""Changes of a sequencing graph: which steps a new group, a closed group or a subscription takes.

Adding a group starts with an atom for each new double overlap ([atoms] section 3.2); an atom that is there
for the same overlap takes the group in. The work is in proportion to the groups that overlap, and to the ways
from the roots down to their atoms (`terrain`).

Each function makes the change and returns its steps. If it raises `LocalError`, nothing has changed.
"""

from collections.abc import Iterable

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.planner import Planner, Steps
from ordercast.components.sequencing_graph.steps import (
    AtomId,
    CloseGroup,
    FoundGroup,
    OpenGroup,
    Subscribe,
    Unsubscribe,
)
from ordercast.components.sequencing_graph.terrain import WantedAtom
from ordercast.core import GroupId, LocalError, NodeId


def add_group(graph: SequencingGraph, group: GroupId, members: Iterable[NodeId]) -> Steps:
    """Make a group."""
    those = frozenset(members)
    if group in graph.subscriptions:
        raise LocalError(f"there is a group {group} already")
    if not those:
        raise LocalError(f"group {group} has no members")
    planner = Planner(graph, group)
    planner.make(FoundGroup(group, those))
    planner.place(wants_of(group, graph.subscriptions.overlaps(those, group)))
    planner.give_ingress(group, None)
    planner.make(OpenGroup(group))
    planner.tidy_twins()
    return planner.steps


def remove_group(graph: SequencingGraph, group: GroupId) -> Steps:
    """Close a group, and retire the atoms that nothing needs without it."""
    _check_group(graph, group)
    planner = Planner(graph, group)
    own = graph.own_atoms(group)
    planner.make(CloseGroup(group, tuple(atom for atom in own if not _holds_without(graph, atom, group))))
    planner.tidy(own)
    return planner.steps


def subscribe(graph: SequencingGraph, member: NodeId, group: GroupId) -> Steps:
    """Add a member to a group."""
    _check_group(graph, group)
    if member in graph.members(group):
        raise LocalError(f"node {member} is in group {group} already")
    planner = Planner(graph, group)
    found: dict[GroupId, frozenset[NodeId]] = {}
    for other in graph.subscriptions.groups_of(member):
        before = graph.subscriptions.common(group, other)
        if before and not _grows(graph, member, group, other, before):
            found[other] = before | {member}
    extends = planner.place(wants_of(group, found), at_marker=True)
    planner.make(Subscribe(member, group, extends))
    planner.tidy(graph.own_atoms(group))
    return planner.steps


def unsubscribe(graph: SequencingGraph, member: NodeId, group: GroupId) -> Steps:
    """Take a member out of a group."""
    _check_group(graph, group)
    if member not in graph.members(group):
        raise LocalError(f"node {member} is not in group {group}")
    planner = Planner(graph, group)
    own = graph.own_atoms(group)
    leaves = tuple(
        atom for atom in own if graph.relevant(atom, member) and _holds_without(graph, atom, group)
    )
    found: dict[GroupId, frozenset[NodeId]] = {}
    for other in graph.subscriptions.groups_of(member):
        before = graph.subscriptions.common(group, other)
        if other != group and len(before) > 2 and not _shrinks(graph, group, other, before, leaves):
            found[other] = before - {member}
    planner.place(wants_of(group, found))
    _keep_one_atom(planner, graph, group, leaves)
    planner.make(Unsubscribe(member, group, leaves))
    planner.tidy((*graph.own_atoms(group), *leaves))
    return planner.steps


def change_group(graph: SequencingGraph, group: GroupId, members: Iterable[NodeId]) -> Steps:
    """Give a group other members: one subscription after the other, first those who come."""
    _check_group(graph, group)
    before, after = graph.members(group), frozenset(members)
    if not after:
        raise LocalError(f"group {group} has no members")
    steps: Steps = []
    for member in sorted(after - before):
        steps += subscribe(graph, member, group)
    for member in sorted(before - after):
        steps += unsubscribe(graph, member, group)
    return steps


def wants_of(group: GroupId, overlaps: dict[GroupId, frozenset[NodeId]]) -> list[WantedAtom]:
    """One atom for each different overlap of a group."""
    others: dict[frozenset[NodeId], list[GroupId]] = {}
    for other, overlap in overlaps.items():
        others.setdefault(overlap, []).append(other)
    return [WantedAtom(overlap, (group, *sharing)) for overlap, sharing in others.items()]


def _check_group(graph: SequencingGraph, group: GroupId) -> None:
    if group not in graph.groups:
        raise LocalError(f"there is no group {group}")


def _holds_without(graph: SequencingGraph, atom: AtomId, group: GroupId) -> bool:
    """Whether two other groups of an atom share just its overlap."""
    others = [one for one in graph.groups_of(atom) if one != group]
    size = len(graph.overlap(atom))
    common = graph.subscriptions.common
    return size > 1 and any(
        len(common(one, other)) == size for place, one in enumerate(others) for other in others[:place]
    )


def _grows(
    graph: SequencingGraph, member: NodeId, group: GroupId, other: GroupId, before: frozenset[NodeId]
) -> bool:
    """Whether an atom of two groups becomes relevant to a new member, as it is in all other groups of it."""
    theirs = frozenset((group, *graph.subscriptions.groups_of(member)))
    candidates = (frozenset(graph.groups_of(atom)) for atom in graph.with_overlap(before))
    return any({group, other} <= groups <= theirs for groups in candidates)


def _shrinks(
    graph: SequencingGraph,
    group: GroupId,
    other: GroupId,
    before: frozenset[NodeId],
    leaves: tuple[AtomId, ...],
) -> bool:
    """Whether an atom of two groups stays with both, and is just no longer relevant to who leaves."""
    candidates = (atom for atom in graph.with_overlap(before) if atom not in leaves)
    return any({group, other} <= frozenset(graph.groups_of(atom)) for atom in candidates)


def _keep_one_atom(
    planner: Planner, graph: SequencingGraph, group: GroupId, leaves: tuple[AtomId, ...]
) -> None:
    own = graph.own_atoms(group)
    if frozenset(own) <= frozenset(leaves):
        planner.insert_ingress(group, own[-1])

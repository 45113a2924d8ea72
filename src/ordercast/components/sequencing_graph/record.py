"""A sequencing graph as a value that can be stored and sent, for those who come to the same graph later.

The same changes to a graph that was loaded give the same steps as to the one that was saved.
"""

import msgspec

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.steps import AtomId, FoundGroup, InsertAtom, OpenGroup
from ordercast.core import GroupId, LocalError, NodeId


class GroupRecord(msgspec.Struct, frozen=True, array_like=True):
    """One group: its name, its members, and whether it takes messages."""

    group: GroupId
    members: tuple[NodeId, ...]
    is_open: bool


class AtomRecord(msgspec.Struct, frozen=True, array_like=True):
    """One atom: its name, its groups, and the atom above; if it is idle, to whom it is relevant still."""

    atom: AtomId
    groups: tuple[GroupId, ...]
    parent: AtomId | None
    idle: tuple[NodeId, ...] | None = None


class GraphRecord(msgspec.Struct, frozen=True, array_like=True):
    """A whole graph: atoms after those above them, and siblings in their order."""

    groups: tuple[GroupRecord, ...]
    atoms: tuple[AtomRecord, ...]
    next_atom: AtomId


def save_graph(graph: SequencingGraph) -> GraphRecord:
    """The graph as a value."""
    takers = frozenset(graph.groups)
    members = graph.subscriptions.groups.items()
    groups = (GroupRecord(group, tuple(sorted(those)), group in takers) for group, those in members)
    atoms: list[AtomRecord] = []
    waiting = list(graph.children(None))[::-1]
    while waiting:
        atom = waiting.pop()
        idle = tuple(sorted(graph.overlap(atom))) if graph.is_idle(atom) else None
        atoms.append(AtomRecord(atom, graph.groups_of(atom), graph.parent(atom), idle))
        waiting += graph.children(atom)[::-1]
    return GraphRecord(tuple(groups), tuple(atoms), graph.next_atom)


def load_graph(record: GraphRecord) -> SequencingGraph:
    """The graph of a record; `LocalError` if it is none, or breaks a condition."""
    graph = SequencingGraph()
    for each in record.groups:
        if each.group in graph.subscriptions:
            raise LocalError(f"group {each.group} is there twice")
        graph.apply(FoundGroup(each.group, frozenset(each.members)))
    for atom in record.atoms:
        _load_atom(graph, atom)
    for each in record.groups:
        if each.is_open:
            graph.apply(OpenGroup(each.group))
    graph.reserve(record.next_atom)
    graph.check()
    return graph


def _load_atom(graph: SequencingGraph, record: AtomRecord) -> None:
    if record.parent is not None and record.parent not in graph.forest:
        raise LocalError(f"atom {record.atom} is below atom {record.parent}, which is not there")
    if any(group not in graph.subscriptions for group in record.groups):
        raise LocalError(f"atom {record.atom} numbers a group that is not there")
    graph.apply(InsertAtom(record.atom, record.groups, record.parent, ()))
    if record.idle is not None:
        graph.make_idle(record.atom, frozenset(record.idle))

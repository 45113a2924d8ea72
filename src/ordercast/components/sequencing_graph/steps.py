"""The elementary steps that turn one sequencing graph into the next ([atoms] section 3.2).

A change of one group is a list of steps. The graph is sound after each of them (`check`), so a protocol may
carry them out one by one, with messages on the way, and may stop after any.

Steps that touch the membership of a group take effect at a place in the order of that group: with the marker
message that goes down its path. `Subscribe` and `Unsubscribe` say what else happens at an atom when the
marker passes it. All other steps take effect when they are applied.
"""

from dataclasses import dataclass
from typing import TypeAlias

from ordercast.core import GroupId, NodeId

AtomId: TypeAlias = int
"""One atom. Numbers are given in the order of insertion, and never again."""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A new group has members. No message is sent to it yet."""

    group: GroupId
    members: frozenset[NodeId]


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """All atoms of a new group are there: from now on it takes messages."""

    group: GroupId


@dataclass(frozen=True, slots=True)
class CloseGroup:
    """The termination message of a group: it leaves all its atoms.

    The atoms in `idle` order nothing from there on: they are relevant to nobody, and wait to be retired.
    """

    group: GroupId
    idle: tuple[AtomId, ...]


@dataclass(frozen=True, slots=True)
class InsertAtom:
    """A new atom between a parent (none: it is a root) and some of that parent's children (of the roots)."""

    atom: AtomId
    groups: tuple[GroupId, ...]
    parent: AtomId | None
    children: tuple[AtomId, ...]


@dataclass(frozen=True, slots=True)
class ExtendAtom:
    """An atom numbers the messages of one more group. All for whom the atom is relevant are in that group."""

    atom: AtomId
    group: GroupId


@dataclass(frozen=True, slots=True)
class LeaveAtom:
    """An atom no longer numbers the messages of a group. It stays relevant to the same members."""

    atom: AtomId
    group: GroupId


@dataclass(frozen=True, slots=True)
class AttachAtom:
    """A root becomes the child of an atom in another tree. No path uses the new channel yet."""

    atom: AtomId
    parent: AtomId


@dataclass(frozen=True, slots=True)
class DetachAtom:
    """A leaf that no path reaches from above becomes a tree of its own."""

    atom: AtomId


@dataclass(frozen=True, slots=True)
class RetireAtom:
    """An atom that is no longer needed goes; its parent forwards to its children."""

    atom: AtomId


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A marker in a group's order: one more member; the atoms in `extends` number the group from here on."""

    member: NodeId
    group: GroupId
    extends: tuple[AtomId, ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A marker in a group's order: one member less; the atoms in `leaves` number the group no more."""

    member: NodeId
    group: GroupId
    leaves: tuple[AtomId, ...]


Step: TypeAlias = (
    FoundGroup
    | OpenGroup
    | CloseGroup
    | InsertAtom
    | ExtendAtom
    | LeaveAtom
    | AttachAtom
    | DetachAtom
    | RetireAtom
    | Subscribe
    | Unsubscribe
)

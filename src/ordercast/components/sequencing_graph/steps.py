"""The elementary steps that turn one sequencing graph into the next ([atoms] section 3.2).

A change of one group is a list of steps. The graph is sound after each of them (`check`), so a protocol may
carry them out one by one, with messages on the way, and may stop after any.

Steps take effect at places in the orders of groups, so that nothing on the way loses its order:

- A *marker* goes down the path of a group that opens, closes, or gets or loses a member. All atoms of the
  group number it: those in `extends` for the first time, those in `leaves` for the last. It learns from each
  atom how far the atom's other groups have come (also before the atom was there), and who is in those
  delivers it after them.
- A group stops to be numbered by an atom (`LeaveAtom`, `RetireAtom`) after one more number: of a message that
  comes after the marker of the change. Till then the atom stays, which does no harm.
- If the first atom of a group moves down, the new one takes messages when all from the old one have arrived.
  The same holds for the children of an atom that retires, and of one that is inserted.
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
    """The termination message of a group: all its atoms number it, and no later message of the group.

    The atoms in `idle` order nothing from there on. They stay relevant to the same members until they retire.
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

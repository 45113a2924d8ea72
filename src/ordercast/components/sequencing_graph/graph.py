"""The sequencing graph: a rooted forest of atoms, and the path of every group through it.

The paper leaves open how to reach C1 and C2 ([atoms] section 3.2). Here, all atoms of a group lie on one way
from an ancestor to a descendant; the path of the group leads from the topmost to the lowest of them, and what
lies between is passed without a number. So paths lead downwards only, and C1, C2 and C3 (`network`) hold by
construction. Such a forest is an elimination tree of the graph in which two atoms are joined if they share a
group.

An atom stands for one overlap: it numbers groups that all contain it, and is relevant to those who are in all
its groups. They receive every message that it numbers, so they see its numbers without a gap. Two of its
groups at least share just that overlap.

This object is the same in every process that makes the same changes in the same order.
"""

from collections.abc import Iterable, Iterator, Mapping

from ordercast.components.sequencing_graph.forest import Forest
from ordercast.components.sequencing_graph.network import Network, check_network, overlap_of
from ordercast.components.sequencing_graph.steps import (
    AtomId,
    AttachAtom,
    CloseGroup,
    DetachAtom,
    ExtendAtom,
    FoundGroup,
    InsertAtom,
    LeaveAtom,
    OpenGroup,
    RetireAtom,
    Step,
    Subscribe,
    Unsubscribe,
)
from ordercast.components.sequencing_graph.subscriptions import Subscriptions
from ordercast.core import GroupId, LocalError, NodeId


class SequencingGraph:
    """Groups, atoms and paths. `apply` makes one step; `changes` has the functions that plan them."""

    __slots__ = (
        "_by_overlap",
        "_forest",
        "_groups",
        "_idle",
        "_next",
        "_open",
        "_overlap",
        "_own",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.subscriptions = Subscriptions()
        self._forest = Forest()
        self._groups: dict[AtomId, dict[GroupId, None]] = {}
        self._overlap: dict[AtomId, frozenset[NodeId]] = {}
        self._by_overlap: dict[frozenset[NodeId], dict[AtomId, None]] = {}
        self._own: dict[GroupId, dict[AtomId, None]] = {}
        self._open: dict[GroupId, None] = {}
        self._idle: dict[AtomId, None] = {}
        self._next: AtomId = 0

    # What is there

    @property
    def groups(self) -> tuple[GroupId, ...]:
        """The groups that take messages."""
        return tuple(self._open)

    @property
    def atoms(self) -> tuple[AtomId, ...]:
        """All atoms, the oldest first."""
        return tuple(sorted(self._groups))

    @property
    def forest(self) -> Forest:
        """Who is above whom; not to be changed from outside."""
        return self._forest

    @property
    def next_atom(self) -> AtomId:
        """The number of the next new atom."""
        return self._next

    def members(self, group: GroupId) -> frozenset[NodeId]:
        """The subscribers of a group."""
        return self.subscriptions.members(group)

    def groups_of(self, atom: AtomId) -> tuple[GroupId, ...]:
        """The groups whose messages an atom numbers. One only: it is there as an ingress."""
        return tuple(sorted(self._of(atom)))

    def overlap(self, atom: AtomId) -> frozenset[NodeId]:
        """The members to whom the numbers of an atom are relevant."""
        self._of(atom)
        return self._overlap[atom]

    def relevant(self, atom: AtomId, member: NodeId) -> bool:
        """Whether a member must take the numbers of an atom without a gap."""
        return atom in self._overlap and member in self._overlap[atom]

    def is_idle(self, atom: AtomId) -> bool:
        """Whether an atom only waits to be retired."""
        return atom in self._idle

    def own_atoms(self, group: GroupId) -> tuple[AtomId, ...]:
        """The atoms that number the messages of a group, from the first to the last of its path."""
        return tuple(sorted(self._own_of(group), key=self._forest.level))

    def has_atoms(self, group: GroupId) -> bool:
        """Whether a group has an atom; a new group gets its own before it opens."""
        return bool(self._own_of(group))

    def ingress_only(self, group: GroupId) -> AtomId | None:
        """The only atom of a group, if it numbers no other group; otherwise none."""
        own = self._own_of(group)
        atom = next(iter(own)) if len(own) == 1 else None
        return atom if atom is not None and len(self._groups[atom]) == 1 else None

    def highest(self, group: GroupId) -> AtomId:
        """The first of a group's own atoms."""
        return min(self._own_of(group), key=self._forest.level)

    def lowest(self, group: GroupId) -> AtomId:
        """The last of a group's own atoms."""
        return max(self._own_of(group), key=self._forest.level)

    def path(self, group: GroupId) -> tuple[AtomId, ...]:
        """All atoms that a message of a group goes through, with those that only pass it on."""
        own = self._own_of(group)
        if not own:
            raise LocalError(f"group {group} has no atom yet")
        top = min(own, key=self._forest.level)
        return tuple(reversed([*self._climb(self.lowest(group), top)]))

    def ingress(self, group: GroupId) -> AtomId:
        """The first atom of a path, which gives the group's own numbers."""
        return self.path(group)[0]

    def egress(self, group: GroupId) -> AtomId:
        """The last atom of a path, from which the message goes to the members."""
        return self.path(group)[-1]

    def next_hop(self, atom: AtomId, group: GroupId) -> AtomId | None:
        """Where an atom sends the messages of a group; none: to the members."""
        path = self.path(group)
        place = path.index(atom) + 1 if atom in path else 0
        if not place:
            raise LocalError(f"atom {atom} is not on the path of group {group}")
        return path[place] if place < len(path) else None

    def parent(self, atom: AtomId) -> AtomId | None:
        """The atom above; none for a root."""
        self._of(atom)
        return self._forest.parent(atom)

    def children(self, atom: AtomId | None) -> tuple[AtomId, ...]:
        """The atoms directly below an atom, or all roots."""
        return self._forest.children(atom)

    def with_overlap(self, overlap: frozenset[NodeId]) -> tuple[AtomId, ...]:
        """The atoms for an overlap, the oldest first."""
        return tuple(sorted(self._by_overlap.get(overlap, ())))

    def network(self) -> Network:
        """Groups that take messages, with atoms and paths, as a value."""
        members = {group: self.members(group) for group in self._open}
        atoms = {
            atom: tuple(group for group in self.groups_of(atom) if group in self._open)
            for atom in self._groups
        }
        return Network(members, atoms, {group: self.path(group) for group in self._open})

    def check(self) -> None:
        """Raise `LocalError` with one sentence about what is broken."""
        check_network(self.network())
        members = self.subscriptions.groups
        for atom, groups in self._groups.items():
            if atom not in self._idle and self._overlap[atom] != overlap_of(members, tuple(groups)):
                raise LocalError(f"atom {atom} is not relevant to those who are in all its groups")

    def _climb(self, low: AtomId, top: AtomId) -> Iterator[AtomId]:
        for atom in self._forest.upwards(low):
            yield atom
            if atom == top:
                return
        raise LocalError(f"no way leads down from atom {top} to atom {low} (C1)")

    def _of(self, atom: AtomId) -> Mapping[GroupId, None]:
        if atom not in self._groups:
            raise LocalError(f"there is no atom {atom}")
        return self._groups[atom]

    def _own_of(self, group: GroupId) -> Mapping[AtomId, None]:
        if group not in self._own:
            raise LocalError(f"there is no group {group}")
        return self._own[group]

    # One step

    def apply(self, step: Step) -> None:
        """Make one step."""
        match step:
            case FoundGroup(group, members):
                self.subscriptions.add_group(group, members)
                self._own[group] = {}
            case OpenGroup(group):
                self._open[group] = None
            case CloseGroup(group, idle):
                self._close(group, idle)
            case InsertAtom(atom, groups, parent, children):
                self._insert(atom, groups, parent, children)
            case ExtendAtom(atom, group):
                self._extend(atom, group)
            case LeaveAtom(atom, group):
                self._leave(atom, group)
                self._resize(atom)
            case AttachAtom(atom, parent):
                self._forest.attach(atom, parent)
            case DetachAtom(atom):
                self._forest.detach(atom)
            case RetireAtom(atom):
                self._retire(atom)
            case Subscribe(member, group, extends):
                self.subscriptions.add(member, group)
                self._change(group, joins=extends)
            case Unsubscribe(member, group, leaves):
                self.subscriptions.remove(member, group)
                self._change(group, leaves=leaves)

    def _close(self, group: GroupId, idle: tuple[AtomId, ...]) -> None:
        for atom in tuple(self._own[group]):
            self._leave(atom, group)
        for atom in idle:
            self.make_idle(atom, self._overlap[atom])
        del self._own[group], self._open[group]
        self.subscriptions.remove_group(group)

    def make_idle(self, atom: AtomId, overlap: frozenset[NodeId]) -> None:
        """Let an atom wait to be retired; till then it stays relevant to those of an overlap."""
        self._forget(atom)
        self._idle[atom] = None
        self._overlap[atom] = overlap

    def reserve(self, atom: AtomId) -> None:
        """Give no new atom a number below this one."""
        self._next = max(self._next, atom)

    def _insert(
        self, atom: AtomId, groups: Iterable[GroupId], parent: AtomId | None, children: Iterable[AtomId]
    ) -> None:
        self._forest.insert(atom, parent, children)
        self._next = max(self._next, atom + 1)
        self._groups[atom] = {}
        self._overlap[atom] = frozenset()
        for group in groups:
            self._join(atom, group)
        self._resize(atom)

    def _extend(self, atom: AtomId, group: GroupId) -> None:
        if not self.overlap(atom) <= self.members(group):
            raise LocalError(f"atom {atom} is relevant to some who are not in group {group}")
        self._join(atom, group)
        self._resize(atom)

    def _retire(self, atom: AtomId) -> None:
        for group in tuple(self._of(atom)):
            self._leave(atom, group)
        self._forget(atom)
        self._idle.pop(atom, None)
        self._forest.remove(atom)
        del self._groups[atom], self._overlap[atom]

    def _change(
        self, group: GroupId, joins: tuple[AtomId, ...] = (), leaves: tuple[AtomId, ...] = ()
    ) -> None:
        for atom in leaves:
            self._leave(atom, group)
        for atom in joins:
            self._join(atom, group)
        for atom in (*self._own[group], *leaves):
            self._resize(atom)

    def _join(self, atom: AtomId, group: GroupId) -> None:
        self._groups[atom][group] = None
        self._own[group][atom] = None

    def _leave(self, atom: AtomId, group: GroupId) -> None:
        del self._groups[atom][group]
        del self._own[group][atom]

    def _resize(self, atom: AtomId) -> None:
        """Find anew to whom an atom is relevant."""
        before = self._overlap[atom]
        if atom in self._idle:
            self._overlap[atom] = before.intersection(*map(self.members, self._groups[atom]))
            return
        now = overlap_of(self.subscriptions.groups, tuple(self._groups[atom]))
        if before != now:
            self._forget(atom)
            self._overlap[atom] = now
            self._by_overlap.setdefault(now, {})[atom] = None

    def _forget(self, atom: AtomId) -> None:
        """Do not find an atom by its overlap any more."""
        overlap = self._overlap[atom]
        atoms = self._by_overlap.get(overlap, {})
        atoms.pop(atom, None)
        if not atoms:
            self._by_overlap.pop(overlap, None)

"""Puts atoms where they fit, and takes out those that are no longer needed.

The rules that make paths short (C1, C2 and C3 hold with any):

- An atom comes no lower than where the first of its groups ends or leaves the main way, and no higher: so it
  lengthens few paths.
- An atom takes below it only what its own groups need there; what nobody needs below stays where it was, and
  so a new atom is often a leaf, which no other group passes.
- Another tree is hung below the lowest place that needs it.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import TypeAlias

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.steps import (
    AtomId,
    AttachAtom,
    DetachAtom,
    ExtendAtom,
    InsertAtom,
    LeaveAtom,
    RetireAtom,
    Step,
)
from ordercast.components.sequencing_graph.terrain import Terrain, WantedAtom
from ordercast.core import GroupId

Steps: TypeAlias = list[Step]


class Planner:
    """One change of one group."""

    __slots__ = ("_graph", "_group", "_new", "steps")

    def __init__(self, graph: SequencingGraph, group: GroupId) -> None:
        self._graph = graph
        self._group = group
        self._new: list[AtomId] = []
        self.steps: Steps = []

    def make(self, step: Step) -> None:
        """Make one step, and note it."""
        self._graph.apply(step)
        self.steps.append(step)

    # Atoms that are wanted

    def place(self, wants: list[WantedAtom], at_marker: bool = False) -> tuple[AtomId, ...]:
        """Give each overlap its atom: one that is there, or a new one.

        With `at_marker`, atoms that are there take the group in when its marker passes; they are returned.
        """
        if not wants:
            return ()
        groups = dict.fromkeys(one for want in wants for one in want.groups)
        ingresses = {one: self._graph.ingress_only(one) for one in groups}
        terrain = Terrain(self._graph, self._group, wants)
        found = [self._find(terrain, want) for want in wants]
        at = [None if atom is None else terrain.place_of(atom) for atom in found]
        places = [
            self._place(terrain, want) if place is None else place
            for want, place in zip(wants, at, strict=True)
        ]
        self._hang_trees(terrain, wants, places)
        extends = self._extend_all(wants, found, at_marker)
        new = [(place, want) for place, want, atom in zip(places, wants, found, strict=True) if atom is None]
        self._insert_all(terrain, new, (*self._graph.own_atoms(self._group), *extends))
        spare = [one for one in groups if self._graph.ingress_only(one) != ingresses[one]]
        self.tidy(atom for one in spare if (atom := ingresses[one]) is not None)
        return extends

    def _find(self, terrain: Terrain, want: WantedAtom) -> AtomId | None:
        """An atom on the main way that is there for the overlap, and that all groups can have."""
        for atom in self._graph.with_overlap(want.overlap):
            place = terrain.place_of(atom)
            if place is None:
                continue
            joining = [one for one in want.groups if one not in self._graph.groups_of(atom)]
            if all(not terrain.is_beside(one) or terrain.reach(one) >= place for one in joining):
                return atom
        return None

    def _place(self, terrain: Terrain, want: WantedAtom) -> int:
        """The place on the main way below which a new atom goes."""
        inside = [one for one in want.groups if terrain.is_inside(one)]
        others = [one for one in inside if one != self._group]
        return min(map(terrain.reach, others or inside), default=len(terrain.main) - 1)

    def _hang_trees(self, terrain: Terrain, wants: list[WantedAtom], places: list[int]) -> None:
        """Join the other trees that are touched, each as low as its lowest atom demands."""
        lowest: dict[AtomId, int] = {}
        for want, place in zip(wants, places, strict=True):
            for one in want.groups:
                root = terrain.other_tree(one)
                if root is not None:
                    lowest[root] = max(place, lowest.get(root, 0))
        for root, place in lowest.items():
            terrain.hang(root, place)
            self.make(AttachAtom(root, terrain.main[place]))

    def _extend_all(
        self, wants: list[WantedAtom], found: list[AtomId | None], at_marker: bool
    ) -> tuple[AtomId, ...]:
        extends: list[AtomId] = []
        for want, atom in zip(wants, found, strict=True):
            if atom is None:
                continue
            for one in sorted(frozenset(want.groups) - frozenset(self._graph.groups_of(atom))):
                if one == self._group and at_marker:
                    extends.append(atom)
                else:
                    self.make(ExtendAtom(atom, one))
        return tuple(extends)

    def _insert_all(
        self, terrain: Terrain, wants: list[tuple[int, WantedAtom]], own: tuple[AtomId, ...]
    ) -> None:
        """Insert new atoms below their places on the main way, the lowest first."""
        lowest = max((place for atom in own if (place := terrain.place_of(atom)) is not None), default=-1)
        above: AtomId | None = None
        for place, want in sorted(wants, key=lambda wanted: -wanted[0]):
            lower = terrain.below(want.groups, place, lowest > place)
            if above is not None:
                lower.append(above)
            parent = terrain.main[place]
            children = dict.fromkeys(self._child(parent, atom) for atom in lower)
            above = self._graph.next_atom
            self.make(InsertAtom(above, tuple(sorted(want.groups)), parent, tuple(children)))
            self._new.append(above)

    def _child(self, parent: AtomId, atom: AtomId) -> AtomId:
        """The child of an atom on the way down to another."""
        forest = self._graph.forest
        while (above := forest.parent(atom)) != parent:
            assert above is not None, f"atom {atom} is not below atom {parent}"
            atom = above
        return atom

    # An ingress for who has no other atom

    def give_ingress(self, group: GroupId, parent: AtomId | None) -> None:
        """An atom that gives a group its own numbers only, if it has no atom."""
        if not self._graph.has_atoms(group):
            self.insert_ingress(group, parent)

    def insert_ingress(self, group: GroupId, parent: AtomId | None) -> None:
        """An atom that gives a group its own numbers only."""
        self.make(InsertAtom(self._graph.next_atom, (group,), parent, ()))

    # Atoms that are no longer needed

    def tidy_twins(self) -> None:
        """Retire older atoms whose groups all have a new atom for the same overlap."""
        for new in self._new:
            self.tidy(twin for twin in self._graph.with_overlap(self._graph.overlap(new)) if twin != new)

    def tidy(self, atoms: Iterable[AtomId]) -> None:
        """Take groups out of atoms that order nothing for them, and retire atoms that are left with none."""
        for atom in tuple(atoms):
            if atom not in self._graph.forest:
                continue
            kept = self._kept(atom)
            going = [one for one in self._graph.groups_of(atom) if one not in kept]
            alone = [one for one in going if len(self._graph.own_atoms(one)) == 1]
            if self._is_ingress(atom) and alone and not self._graph.children(atom):
                self._detach(atom)
            else:
                self._go(atom, going, alone, bool(kept))

    def _go(self, atom: AtomId, going: list[GroupId], alone: list[GroupId], stays: bool) -> None:
        for one in alone:
            self.insert_ingress(one, atom)
        for one in going if stays else ():
            self.make(LeaveAtom(atom, one))
        if not stays:
            self.make(RetireAtom(atom))
        for one in alone:
            self._detach(*self._graph.own_atoms(one))

    def _is_ingress(self, atom: AtomId) -> bool:
        return len(self._graph.groups_of(atom)) == 1 and not self._graph.is_idle(atom)

    def _detach(self, ingress: AtomId) -> None:
        if self._graph.parent(ingress) is not None:
            self.make(DetachAtom(ingress))

    def _kept(self, atom: AtomId) -> frozenset[GroupId]:
        """The groups of an atom that share just its overlap with another; no other atom serves the two."""
        overlap = frozenset() if self._graph.is_idle(atom) else self._graph.overlap(atom)
        groups = self._graph.groups_of(atom)
        twins = [
            frozenset(self._graph.groups_of(twin))
            for twin in self._graph.with_overlap(overlap)
            if twin != atom
        ]
        if len(overlap) < 2:
            return frozenset()
        kept: set[GroupId] = set()
        for one, other in combinations(groups, 2):
            if one in kept and other in kept:
                continue
            served = any(one in twin and other in twin for twin in twins)
            if not served and len(self._graph.subscriptions.common(one, other)) == len(overlap):
                kept |= {one, other}
        return frozenset(kept)

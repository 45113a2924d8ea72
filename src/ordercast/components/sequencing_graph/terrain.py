"""The part of the forest that a change of one group must know: the ways from the roots to its neighbours.

The change adds atoms for some groups, one of which is *the* group; all its atoms must lie on one way down. So
one way is chosen, the *main* way, and the new atoms go on it: at a branch it follows the side that most of
the wanted atoms have groups on. What lies aside may still be reached, by an atom that sits on the main way
above the branch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.steps import AtomId
from ordercast.core import GroupId, NodeId


@dataclass(frozen=True, slots=True)
class WantedAtom:
    """An overlap that must have an atom, with the groups that the atom must number."""

    overlap: frozenset[NodeId]
    groups: tuple[GroupId, ...]


class Terrain:
    """The main way, and where each group leaves it."""

    __slots__ = ("_branch", "_graph", "_hung", "_leaves", "_low", "_place", "_tree", "main")

    def __init__(self, graph: SequencingGraph, group: GroupId, wants: Sequence[WantedAtom]) -> None:
        self._graph = graph
        weights = self._weights(group, wants)
        self._low = {one: graph.lowest(one) for one in weights}
        self.main: list[AtomId] = []
        self._place: dict[AtomId, int] = {}
        self._branch: dict[AtomId, AtomId] = {}
        self._tree: dict[AtomId, AtomId] = {}
        self._leaves: dict[AtomId, int] = {}
        self._hung: dict[AtomId, int] = {}
        loads = {self._low[one]: 0 for one in weights}
        for one, weight in weights.items():
            loads[self._low[one]] += weight
        twins = (atom for want in wants for atom in graph.with_overlap(want.overlap))
        best, parents = self._climb(dict.fromkeys(twins, 0) | loads)
        self._choose_main(best)
        for low in dict.fromkeys(self._low.values()):
            self._note(low, parents)

    def _weights(self, group: GroupId, wants: Sequence[WantedAtom]) -> dict[GroupId, int]:
        weights: dict[GroupId, int] = {}
        for want in wants:
            for one in want.groups:
                weights[one] = weights.get(one, 0) + 1
        weights[group] = sum(weights.values()) + 1  # the main way leads past all atoms that it has already
        return {one: weight for one, weight in weights.items() if self._graph.has_atoms(one)}

    def _climb(self, loads: dict[AtomId, int]) -> tuple[dict[AtomId | None, AtomId], dict[AtomId, AtomId]]:
        """Climb from all ends of ways, the lowest first; where all have met, nothing above matters.

        Returns for each atom the child with the highest load (how much is wanted of groups that end there or
        below), for none the best root; and the parents.
        """
        levels, above = self._graph.forest.levels, self._graph.forest.parents
        best: dict[AtomId | None, AtomId] = {}
        parents: dict[AtomId, AtomId] = {}
        heap = [(-levels[atom], atom) for atom in loads]
        heapify(heap)
        while heap:
            atom = heappop(heap)[1]
            parent = above[atom] if heap or None in best else None
            while parent is not None and parent not in loads:  # up to where another way may come in
                loads[parent] = loads[atom]
                best[parent], parents[atom] = atom, parent
                atom, parent = parent, above[parent]
                if heap and levels[atom] < -heap[0][0]:
                    heappush(heap, (-levels[atom], atom))
                    break
            else:
                rival = best.setdefault(parent, atom)
                if (loads[atom], -atom) > (loads[rival], -rival):
                    best[parent] = atom
                if parent is not None:
                    loads[parent] += loads[atom]
                    parents[atom] = parent
        return best, parents

    def _choose_main(self, best: Mapping[AtomId | None, AtomId]) -> None:
        here: AtomId | None = None
        while here in best:
            here = best[here]
            self._place[here] = len(self.main)
            self.main.append(here)

    def _note(self, low: AtomId, parents: Mapping[AtomId, AtomId]) -> None:
        """Note where the way down to an atom leaves the main way."""
        if low in self._place:
            return
        here = low
        while here in parents and parents[here] not in self._place:
            here = parents[here]
        if here in parents:
            self._branch[low] = here
            self._leaves[low] = self._place[parents[here]]
        else:
            self._tree[low] = here

    def place_of(self, atom: AtomId) -> int | None:
        """The place of an atom on the main way; none if it is not on it."""
        return self._place.get(atom)

    def other_tree(self, group: GroupId) -> AtomId | None:
        """The root of the tree that a group is in, if it is not the tree of the main way."""
        return self._tree.get(self._low[group]) if group in self._low else None

    def is_inside(self, group: GroupId) -> bool:
        """Whether a group has atoms in the tree of the main way."""
        return group in self._low and self.other_tree(group) is None

    def is_beside(self, group: GroupId) -> bool:
        """Whether the path of a group ends aside of the main way, in the same tree."""
        return self.is_inside(group) and self._low[group] in self._branch

    def reach(self, group: GroupId) -> int:
        """The place at which the path of a group ends on the main way or leaves it.

        An atom further down would not lie on one way with the group's own, or would make its path longer.
        """
        low = self._low[group]
        return self._leaves[low] if low in self._leaves else self._place[low]

    def hang(self, root: AtomId, place: int) -> None:
        """Note that another tree now leaves the main way at a place."""
        self._hung[root] = place

    def below(self, groups: tuple[GroupId, ...], place: int, deeper: bool) -> list[AtomId]:
        """Atoms that must come below a new one for these groups, just below a place of the main way.

        With `deeper`, the rest of the main way must too.
        """
        found: list[AtomId] = []
        for one in groups:
            if one not in self._low:
                continue
            root = self.other_tree(one)
            reach = self._hung[root] if root is not None else self.reach(one)
            side = root if root is not None else self._branch.get(self._low[one])
            deeper = deeper or reach > place
            if reach == place and side is not None:
                found.append(side)
        return [*found, *self.main[place + 1 : place + 2]] if deeper else found

"""The part of the forest that a change of one group must know: the ways from the roots to its neighbours.

The change adds atoms for some groups, one of which is *the* group; all its atoms must lie on one way down. So
one way is chosen, the *main* way, and the new atoms go on it: at a branch it follows the side that most of
the wanted atoms have groups on. What lies aside may still be reached, by an atom that sits on the main way
above the branch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

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

    __slots__ = ("_branch", "_graph", "_hung", "_low", "_place", "_tree", "main")

    def __init__(self, graph: SequencingGraph, group: GroupId, wants: Sequence[WantedAtom]) -> None:
        self._graph = graph
        weights = self._weights(group, wants)
        self._low = {one: graph.lowest(one) for one in weights}
        self.main: list[AtomId] = []
        self._place: dict[AtomId, int] = {}
        self._branch: dict[AtomId, AtomId] = {}
        self._tree: dict[AtomId, AtomId] = {}
        self._hung: dict[AtomId, int] = {}
        twins = (atom for want in wants for atom in graph.with_overlap(want.overlap))
        self._survey(self._loads(weights, twins))

    def _weights(self, group: GroupId, wants: Sequence[WantedAtom]) -> dict[GroupId, int]:
        weights: dict[GroupId, int] = {}
        for want in wants:
            for one in want.groups:
                weights[one] = weights.get(one, 0) + 1
        weights[group] = sum(weights.values()) + 1  # the main way leads past all atoms that it has already
        return {one: weight for one, weight in weights.items() if self._graph.has_atoms(one)}

    def _loads(self, weights: dict[GroupId, int], twins: Iterable[AtomId]) -> dict[AtomId, int]:
        """For every atom on the ways: how much is wanted of the groups that end at it or below.

        Atoms that are there for a wanted overlap are on the ways too. The lowest come first. Where all ways
        have met, nothing above matters.
        """
        loads = dict.fromkeys(twins, 0)
        for one, weight in weights.items():
            loads[self._low[one]] = loads.get(self._low[one], 0) + weight
        forest = self._graph.forest
        heap = [(-forest.level(atom), atom) for atom in loads]
        heapify(heap)
        one_tree = True
        while len(heap) > 1 or (heap and not one_tree):
            _, atom = heap[0]
            parent = forest.parent(atom)
            if parent is None:
                one_tree = False
                heappop(heap)
            elif parent in loads:
                loads[parent] += loads[atom]
                heappop(heap)
            else:
                loads[parent] = loads[atom]
                heapreplace(heap, (-forest.level(parent), parent))
        return loads

    def _survey(self, loads: dict[AtomId, int]) -> None:
        """Choose the main way, and note for every other atom at which place its way leaves it."""
        forest = self._graph.forest
        parents = {atom: parent for atom in loads if (parent := forest.parent(atom)) in loads}
        best: dict[AtomId | None, AtomId] = {}
        for atom, load in loads.items():
            rival = best.setdefault(parents.get(atom), atom)
            if (load, -atom) > (loads[rival], -rival):
                best[parents.get(atom)] = atom
        here: AtomId | None = None
        while here in best:
            here = best[here]
            self._place[here] = len(self.main)
            self.main.append(here)
        for low in self._low.values():
            self._note(low, parents)

    def _note(self, low: AtomId, parents: Mapping[AtomId, AtomId]) -> None:
        """Note where the way from a tree's top to an atom leaves the main way."""
        way = [low]
        while way[-1] not in self._tree and way[-1] in parents:
            way.append(parents[way[-1]])
        for atom in reversed(way):
            parent = parents.get(atom)
            if atom in self._tree:
                continue
            self._tree[atom] = atom if parent is None else self._tree[parent]
            if atom not in self._place:
                self._place[atom] = -1 if parent is None else self._place[parent]
                if parent is not None:
                    self._branch[atom] = self._branch.get(parent, atom)

    def place_of(self, atom: AtomId) -> int | None:
        """The place of an atom on the main way; none if it is not on it."""
        place = self._place.get(atom, -1)
        return place if place >= 0 and self.main[place] == atom else None

    def other_tree(self, group: GroupId) -> AtomId | None:
        """The root of the tree that a group is in, if it is not the tree of the main way."""
        root = self._tree[self._low[group]] if group in self._low else None
        return None if root == self.main[0] else root

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
        return self._place[self._low[group]]

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

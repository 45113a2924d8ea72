"""A rooted forest of atoms: who is above whom.

Messages go downwards only, so the channels have no loop (condition C2), and none is used in both directions
(condition C3). Each atom has a level: among atoms on one way from a root to a leaf, the level tells which is
above, without a walk.
"""

from collections.abc import Iterable, Iterator, Mapping

from ordercast.components.sequencing_graph.steps import AtomId
from ordercast.core import LocalError

GAP = 1 << 40
"""Levels between a new leaf and its parent: room for many insertions before the levels are given anew."""


class Forest:
    """Parents and children; children and roots in the order in which they came."""

    __slots__ = ("_children", "_level", "_parent", "_roots")

    def __init__(self) -> None:
        self._parent: dict[AtomId, AtomId | None] = {}
        self._children: dict[AtomId, dict[AtomId, None]] = {}
        self._roots: dict[AtomId, None] = {}
        self._level: dict[AtomId, int] = {}

    def __contains__(self, atom: AtomId) -> bool:
        return atom in self._parent

    @property
    def parents(self) -> Mapping[AtomId, AtomId | None]:
        """The atom above each; none above a root."""
        return self._parent

    @property
    def levels(self) -> Mapping[AtomId, int]:
        """The level of each, which is smaller than that of everything below."""
        return self._level

    def parent(self, atom: AtomId) -> AtomId | None:
        """The atom above; none for a root."""
        return self._parent[atom]

    def children(self, atom: AtomId | None) -> tuple[AtomId, ...]:
        """The atoms directly below an atom, or all roots."""
        return tuple(self._below(atom))

    def level(self, atom: AtomId) -> int:
        """Smaller than the level of everything below."""
        return self._level[atom]

    def upwards(self, atom: AtomId) -> Iterator[AtomId]:
        """The atom, its parent, and so on up to the root."""
        here: AtomId | None = atom
        while here is not None:
            yield here
            here = self._parent[here]

    def insert(self, atom: AtomId, parent: AtomId | None, children: Iterable[AtomId]) -> None:
        """Put an atom between a parent and some of its children."""
        below = self._below(parent)
        taken = dict.fromkeys(children)
        if atom in self or not taken.keys() <= below.keys():
            raise LocalError(f"atom {atom} cannot be put between {parent} and {list(taken)}")
        for child in taken:
            del below[child]
            self._parent[child] = atom
        below[atom] = None
        self._parent[atom] = parent
        self._children[atom] = taken
        self._give_level(atom)

    def remove(self, atom: AtomId) -> None:
        """Take an atom out: its children go to its parent, or become roots."""
        parent = self._parent.pop(atom)
        children = self._children.pop(atom)
        below = self._below(parent)
        del below[atom], self._level[atom]
        for child in children:
            below[child] = None
            self._parent[child] = parent

    def attach(self, atom: AtomId, parent: AtomId) -> None:
        """Make a root, with all below it, the child of an atom in another tree."""
        if atom not in self._roots or atom in self.upwards(parent):
            raise LocalError(f"atom {atom} cannot be put below {parent}: it is no root of another tree")
        del self._roots[atom]
        self._parent[atom] = parent
        self._children[parent][atom] = None
        if self._level[atom] <= self._level[parent]:
            self._renew_levels(atom, self._level[parent] + GAP)

    def detach(self, atom: AtomId) -> None:
        """Make an atom a root, with all below it."""
        del self._below(self._parent[atom])[atom]
        self._roots[atom] = None
        self._parent[atom] = None

    def _below(self, atom: AtomId | None) -> dict[AtomId, None]:
        return self._roots if atom is None else self._children[atom]

    def _give_level(self, atom: AtomId) -> None:
        parent = self._parent[atom]
        lowest = min((self._level[child] for child in self._children[atom]), default=None)
        if parent is None:
            self._level[atom] = 0 if lowest is None else lowest - GAP
            return
        above = self._level[parent]
        self._level[atom] = above + GAP if lowest is None else (above + lowest) // 2
        if lowest is not None and lowest - above < 2:
            *_, root = self.upwards(atom)
            self._renew_levels(root, 0)

    def _renew_levels(self, atom: AtomId, level: int) -> None:
        """Give levels anew to an atom and all below it."""
        self._level[atom] = level
        waiting = [atom]
        while waiting:
            here = waiting.pop()
            for child in self._children[here]:
                self._level[child] = self._level[here] + GAP
                waiting.append(child)

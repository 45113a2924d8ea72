"""Which nodes the cluster has besides those that the group knows, and which were removed from it.

A removed node gets no seat, and loses its vote with the next view. Only nodes that this one has known can be
removed: another host may know of a newcomer sooner.
"""

from collections.abc import Collection

from ordercast.core import NodeId


class Roster:
    """The nodes that came and those that were removed."""

    __slots__ = ("_known", "present", "removed")

    def __init__(self, planned: Collection[NodeId], removed: Collection[NodeId]) -> None:
        self._known = frozenset(planned)
        self.present: frozenset[NodeId] = frozenset()
        """Nodes that are there; empty as long as the cluster is as it was planned."""
        self.removed = frozenset(removed)

    def knows(self, nodes: Collection[NodeId]) -> bool:
        """Whether the cluster has, or had, all these nodes."""
        return self._known.union(self.present).issuperset(nodes)

    def update(self, present: Collection[NodeId]) -> None:
        """These nodes are there now."""
        self._known |= self.present
        self.present = frozenset(present)
        self.removed |= self._known - self.present

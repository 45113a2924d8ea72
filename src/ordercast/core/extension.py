"""What has changed in a live cluster since its first plan: nodes that came later, and removed nodes.

A plan is made for the deployment of the file. A node that comes later gets the next id after all ids so far,
and the id of its host is the same number. A node that is removed keeps its id and its place in the plan, but
it is in no group, and nobody sends to it. So an id never gets a second meaning, and plans of different
versions agree on all nodes that they share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ordercast.core.errors import LocalError
from ordercast.core.ids import GroupId, NodeId


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that came later, on a host of its own."""

    role: str
    groups: tuple[GroupId, ...] = ()
    """The groups that it receives."""


@dataclass(frozen=True, slots=True)
class Extension:
    """All changes since the first plan."""

    added: tuple[NewNode, ...] = ()
    """In the order in which they came: the first has the first id after the nodes of the first plan."""
    removed: frozenset[NodeId] = frozenset()

    def nodes(self, first: NodeId) -> Iterable[tuple[NodeId, NewNode]]:
        """The nodes that came later, with their ids; `first` is the number of nodes in the first plan."""
        return enumerate(self.added, first)

    def members(
        self, groups: Mapping[GroupId, tuple[NodeId, ...]], first: NodeId
    ) -> dict[GroupId, tuple[NodeId, ...]]:
        """The receivers of each group now, given those of the first plan."""
        came = {group: [*nodes] for group, nodes in groups.items()}
        for node, new in self.nodes(first):
            for group in new.groups:
                if group not in came:
                    raise LocalError(f"node {node} cannot receive group {group}; there is no such group")
                came[group].append(node)
        return {group: self.left(nodes) for group, nodes in came.items()}

    def left(self, nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """Those of some nodes that were not removed."""
        return tuple(node for node in nodes if node not in self.removed)

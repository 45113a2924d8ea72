"""Who sits in the first view of a plan, who comes by itself later, and who was removed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ordercast.core import Groups, LocalError, NodeId


@dataclass(frozen=True, slots=True)
class Seating:
    """What each node of a plan receives when it starts. One that receives nothing sends, without a vote."""

    founders: Mapping[NodeId, Groups]
    """The members of the first view."""
    later: Mapping[NodeId, Groups] = field(default_factory=dict)
    """Nodes that came to the cluster after that; they ask for a seat as soon as they start."""
    removed: frozenset[NodeId] = frozenset()
    others: frozenset[NodeId] = frozenset()
    """Nodes of the plan that sit only if their applications ask."""

    def __post_init__(self) -> None:
        if not any(self.founders.values()):
            raise LocalError("views: one of the founders must receive a group, because receivers vote")

    @property
    def nodes(self) -> frozenset[NodeId]:
        """All nodes of the plan."""
        return self.others.union(self.founders, self.later)

    def wish(self, node: NodeId) -> Groups | None:
        """What a node wants when it starts; None if it does not want to sit before its application asks."""
        groups = self.founders.get(node, self.later.get(node))
        return None if groups is None else tuple(sorted(groups))

"""What all nodes of a deployment know: the process groups, and where their members run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ordercast.core import GroupId, NodeId, ServiceSpec
from ordercast.replication.llft.names import Party, ViewId
from ordercast.replication.llft.options import LlftOptions


@dataclass(frozen=True)
class Setting:
    """The groups of replicas, and the groups of clients, each of one node."""

    options: LlftOptions
    service: ServiceSpec | None
    groups: Mapping[GroupId, tuple[NodeId, ...]]
    clients: tuple[NodeId, ...]
    nodes: int
    """How many replicas there are in all groups; a precedence modulo this number is the node of a replica."""
    joiners: Mapping[GroupId, tuple[NodeId, ...]] = field(default_factory=dict)
    """The replicas of each group that are not in it at the start."""
    _ways: dict[tuple[Party, NodeId], tuple[NodeId, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def parties(self) -> dict[Party, tuple[NodeId, ...]]:
        """The nodes of each process group, by precedence at the start; those that may join it come last."""
        groups = {group: self.founders(group) + self.joiners.get(group, ()) for group in self.groups}
        return groups | {self.client_party(node): (node,) for node in self.clients}

    def founders(self, group: GroupId) -> tuple[NodeId, ...]:
        """The members of a group at the start, by precedence."""
        return tuple(sorted(self.groups[group]))

    def service_of(self, group: GroupId) -> ServiceSpec | None:
        """The service that a group replicates."""
        return None if self.service is None else self.service.for_group(group, len(self.groups))

    def services_beside(self, group: GroupId) -> dict[GroupId, str]:
        """The fingerprints of the services that the other groups replicate."""
        found = ((other, self.service_of(other)) for other in self.groups if other != group)
        return {other: service.fingerprint for other, service in found if service is not None}

    def client_party(self, node: NodeId) -> Party:
        """The process group of a client."""
        return len(self.groups) + node

    def primary_node(self, view: ViewId) -> NodeId:
        """The node of the primary of a view."""
        return view.precedence % self.nodes

    def way_to(self, party: Party, view: ViewId | None) -> tuple[NodeId, ...]:
        """All nodes of a group, the primary that one knows first: it should get a multicast first."""
        nodes = self.parties[party]
        first = nodes[0] if view is None else self.primary_node(view)
        way = self._ways.get((party, first))
        if way is None:
            way = (first, *(node for node in nodes if node != first)) if first in nodes else nodes
            self._ways[party, first] = way
        return way

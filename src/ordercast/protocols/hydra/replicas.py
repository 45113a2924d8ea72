"""Replicas of a service behind Hydra's sequencers, as a plan makes them."""

from functools import partial

from ordercast.components.network_ordered import NetworkReplica, ReplicaOptions
from ordercast.core import Env, GroupId, NodeId, ServiceSpec
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.replica_ordering import HydraOrdering


def make_replica(
    env: Env,
    group: GroupId,
    members: dict[GroupId, tuple[NodeId, ...]],
    initial: dict[int, NodeId],
    service: tuple[NodeId, ...],
    aggregator: NodeId | None,
    options: HydraOptions,
    *,
    order: type[HydraOrdering],
    spec: ServiceSpec | None,
    replicas: ReplicaOptions,
    durable: bool,
) -> NetworkReplica:
    """A replica with this kind of order."""
    ordering = partial(
        order,
        group=group,
        groups=len(members),
        initial=initial,
        service=service,
        aggregator=aggregator,
        options=options,
    )
    return NetworkReplica(env, group, members[group], spec, ordering, replicas, durable=durable)

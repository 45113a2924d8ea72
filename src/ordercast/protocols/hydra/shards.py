"""How replicas of shards are made that get their order from Hydra's network."""

from collections.abc import Callable
from functools import partial

from ordercast.components.cross_shard import CoordinatorOptions, ShardReplica
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.core import Env, GroupId, Member, NodeId, ServiceSpec
from ordercast.protocols.hydra.messages import Announce, Echo, Outcome, Stamped, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering

HEARD_BY_SENDERS = (Announce, Steps, Echo, Stamped, Outcome)
"""The messages for the sender inside a coordinator."""


def make_shard_replica(
    env: Env,
    group: GroupId,
    members: dict[GroupId, tuple[NodeId, ...]],
    initial: dict[int, NodeId],
    service: tuple[NodeId, ...],
    aggregator: NodeId | None,
    options: HydraOptions,
    *,
    order: type[HydraShardOrdering],
    coordinators: tuple[NodeId, ...],
    spec: ServiceSpec | None,
    replicas: ReplicaOptions,
    coordinator: CoordinatorOptions,
    durable: bool,
) -> ShardReplica:
    """A replica of a shard with this kind of order."""
    shards = sum(1 for nodes in members.values() if nodes)
    ordering = partial(
        order,
        group=group,
        groups=len(members),
        initial=initial,
        service=service,
        aggregator=aggregator,
        options=options,
    )
    return ShardReplica(
        env,
        group,
        members[group],
        spec.for_group(group, shards) if spec is not None else None,
        ordering,
        replicas,
        durable=durable,
        coordinators=coordinators,
        certain_ns=coordinator.certain_ns,
        lock_ns=coordinator.lock_ns,
    )


def sender_for(
    groups: dict[GroupId, tuple[NodeId, ...]], service: tuple[NodeId, ...], options: HydraOptions
) -> Callable[[Env], Member]:
    """What a coordinator sends with, as clients do."""
    return lambda env: Sender(env, groups, service, options)

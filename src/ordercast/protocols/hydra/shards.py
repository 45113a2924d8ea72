"""How replicas of shards are made that get their order from Hydra's network."""

from collections.abc import Callable

from ordercast.components.cross_shard import CoordinatorOptions, ShardOrdering, ShardReplica
from ordercast.components.network_ordered import OrderingOwner, ReplicaOptions
from ordercast.core import Env, GroupId, Member, NodeId, ServiceSpec
from ordercast.protocols.hydra.messages import Announce, Echo, Outcome, Stamped, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender

HEARD_BY_SENDERS = (Announce, Steps, Echo, Stamped, Outcome)
"""The messages for the sender inside a coordinator."""


def make_shard_replica(
    env: Env,
    group: GroupId,
    members: dict[GroupId, tuple[NodeId, ...]],
    ordering: Callable[[Env, OrderingOwner], ShardOrdering],
    *,
    coordinators: tuple[NodeId, ...],
    spec: ServiceSpec | None,
    replicas: ReplicaOptions,
    coordinator: CoordinatorOptions,
    durable: bool,
) -> ShardReplica:
    """A replica of a shard with this order."""
    shards = sum(1 for nodes in members.values() if nodes)
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

"""Replicas of a service behind Hydra's sequencers, as a plan makes them."""

from functools import partial
from random import Random

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.network_ordered import NetworkReplica, ReplicaOptions
from ordercast.components.network_ordered.options import LIVE_OPTIONS, vary_options
from ordercast.core import MILLISECOND, Env, GroupId, NodeId, ServiceSpec
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


def vary_replicas(rng: Random) -> dict[str, object]:
    """Options of such replicas, their clients and the network, for a run of the swarm."""
    flush = rng.choice(("adaptive", "solicited", "periodic", "aggregated", "nudged"))
    periods = (0, 50_000) if flush in ("adaptive", "solicited") else (2_000_000, 10_000_000)
    hydra: dict[str, object] = {
        "sequencers": rng.choice((1, 2, 2, 3)),
        "spares": rng.choice((0, 1, 1, 2)),
        "flush": flush,
        "flush_ns": rng.choice(periods),
        "route": rng.choice(("random", "hash", "congestion", "sticky")),
        "suspect_ns": rng.choice((30_000_000, 100_000_000)),
        "replicas": rng.choice((1, 3, 3)),
        "announce_ns": rng.choice((5, 20)) * MILLISECOND,
        "addition_ns": rng.choice((50, 100)) * MILLISECOND,
        "strangers": rng.choice((2, 1024)),
        "buffer": rng.choice((16, 65_536)),
    }
    if hydra["spares"] and rng.random() < 0.5:
        hydra["target"] = hydra["sequencers"]
    return {
        "durable": rng.random() < 0.4,
        "hydra": hydra,
        "replicas": vary_options(rng),
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
    }


LIVE_REPLICAS: dict[str, dict[str, object]] = {
    "hydra": {
        "flush": "nudged",
        "flush_ns": 5 * MILLISECOND,
        # A client moves seldom, and a sequencer that rests promises much: nudges cost as much as calls.
        "route": "sticky",
        "stick_ns": 500 * MILLISECOND,
        "lead_ns": 50 * MILLISECOND,
        "heartbeat_ns": 20 * MILLISECOND,
        "suspect_ns": 500 * MILLISECOND,
        "retry_ns": 5 * MILLISECOND,
        "announce_ns": 100 * MILLISECOND,
        "addition_ns": 1000 * MILLISECOND,
        "join_ns": 50 * MILLISECOND,
        "consensus": LIVE_TIMEOUTS,
    },
    "replicas": LIVE_OPTIONS,
    "calls": LIVE_CALLS,
}
"""The same for real machines."""

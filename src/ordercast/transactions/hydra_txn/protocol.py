"""HydraTxn as a protocol (Hydra section 6): Eris over Hydra's groupcast."""

from functools import partial
from random import Random

import msgspec

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.cross_shard import MESSAGES as CROSS_SHARD_MESSAGES
from ordercast.components.cross_shard import CoordinatorOptions, FailureCoordinator
from ordercast.components.cross_shard.options import LIVE_COORDINATOR, vary_coordinator
from ordercast.components.cross_shard.promises import promises
from ordercast.components.execution import CallOptions
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.core import (
    Action,
    Codec,
    Deployment,
    Env,
    Extension,
    GroupId,
    LocalError,
    Nanos,
    NodeId,
    Options,
    Pace,
    Plan,
    Protocol,
)
from ordercast.protocols.hydra.messages import MESSAGES as HYDRA_MESSAGES
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import Beside, Ends, lay_out
from ordercast.protocols.hydra.replicas import LIVE_REPLICAS, vary_replicas
from ordercast.protocols.hydra.shard_calling import ShardClient
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering
from ordercast.protocols.hydra.shards import HEARD_BY_SENDERS, make_shard_replica, sender_for

NAME = "hydra_txn"


class HydraTxnOptions(Options, frozen=True):
    """Options of HydraTxn."""

    durable: bool = False
    """Whether replicas save their log, and may restart, all at once too."""
    hydra: HydraOptions = HydraOptions()
    """The sequencers, and how replicas get flushes. Its options for receivers and senders that keep packets
    (`repair`, `resend`, `durable`) are not used: replicas and clients do that themselves."""
    replicas: ReplicaOptions = ReplicaOptions()
    """Timeouts and limits of replicas."""
    coordinator: CoordinatorOptions = CoordinatorOptions()
    """The failure coordinator."""
    calls: CallOptions = CallOptions()
    """How clients call."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencer, a leader, or the leader of the coordinator is suspected."""
        return max(self.hydra.detection_ns, self.replicas.silence_ns, self.coordinator.detection_ns)

    def network(self) -> HydraOptions:
        """The options of the network."""
        return msgspec.structs.replace(self.hydra, repair=False, resend=False, durable=False)

    def pace(self, delay: Nanos) -> Pace:
        """A call waits for the order, and a retry; a delivery waits for synchronisation."""
        pace = self.replicas.pace(self.network().pace(delay), delay, 9 * self.calls.retry_ns)
        return self.coordinator.pace(pace, delay)


def _make_coordinator(
    env: Env,
    groups: dict[GroupId, tuple[NodeId, ...]],
    peers: tuple[NodeId, ...],
    service: tuple[NodeId, ...],
    options: HydraOptions,
    *,
    own: CoordinatorOptions,
) -> FailureCoordinator:
    """A coordinator, which sends as clients do."""
    sender = sender_for(groups, service, options)
    return FailureCoordinator(env, groups, peers, own, sender, HEARD_BY_SENDERS)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas of shards, their coordinator, clients, sequencers, and the configuration service."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with sequencers that came later, and without those that were removed."""
    if not isinstance(options, HydraTxnOptions):
        raise LocalError(f"{NAME} takes HydraTxnOptions, not {type(options).__name__}")
    spec, coordinator = deployment.service, options.coordinator
    ends = Ends(
        partial(
            make_shard_replica,
            order=HydraShardOrdering,
            spec=spec,
            replicas=options.replicas,
            coordinator=coordinator,
            durable=options.durable,
        ),
        partial(ShardClient, calls=options.calls, spec=spec),
        "replica",
        "client",
        name=NAME,
        beside=Beside("coordinator", coordinator.replicas, partial(_make_coordinator, own=coordinator)),
    )
    nodes, members = lay_out(deployment, options.network(), extension, ends)
    return Plan(
        NAME,
        promises(durable=options.durable),
        nodes,
        members,
        deployment.sender_ids(),
        Codec((*HYDRA_MESSAGES, *CONSENSUS_MESSAGES, *REPLICA_MESSAGES, *CROSS_SHARD_MESSAGES)),
        options.pace,
        packets_held_max=options.hydra.buffer,
        removed=extension.removed,
        service=spec,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
    coordinator = vary_coordinator(rng)
    return vary_replicas(rng) | {"coordinator": coordinator}


PROTOCOL = Protocol(
    name=NAME,
    summary="Transactions over shards in one round trip, over Hydra's many sequencers.",
    paper="Hydra (NSDI 2023), section 6",
    guarantees=promises(durable=False),
    options=HydraTxnOptions,
    deploy=deploy,
    roles=("replica", "client", "sequencer", "switch", "aggregator", "configuration", "coordinator"),
    serves=True,
    vary=vary,
    newcomers=("sequencer", "switch"),
    extend=extend,
    new_cluster={"hydra": {"spares": 1}},
    actions=(
        Action("add-sequencer", "Start the first spare sequencer.", frozenset({"sequencer", "switch"})),
    ),
    live=LIVE_REPLICAS | {"coordinator": LIVE_COORDINATOR},
)

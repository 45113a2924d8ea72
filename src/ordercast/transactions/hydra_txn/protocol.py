"""HydraTxn as a protocol (Hydra section 6): Eris over Hydra's groupcast."""

from functools import partial
from random import Random

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.cross_shard import MESSAGES as CROSS_SHARD_MESSAGES
from ordercast.components.cross_shard import CoordinatorOptions, FailureCoordinator, ShardReplica
from ordercast.components.execution import CallOptions
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.promises import guarantees
from ordercast.core import (
    MILLISECOND,
    Action,
    Codec,
    Consistency,
    Deployment,
    Env,
    Extension,
    GroupId,
    Guarantees,
    LocalError,
    Nanos,
    NodeId,
    Options,
    Order,
    Pace,
    Plan,
    Protocol,
    ServiceSpec,
)
from ordercast.protocols.hydra.messages import MESSAGES as HYDRA_MESSAGES
from ordercast.protocols.hydra.messages import Announce, Echo, Outcome, Stamped, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import Beside, Ends, lay_out
from ordercast.protocols.hydra.replicas import LIVE_REPLICAS, vary_replicas
from ordercast.protocols.hydra.sender import Sender
from ordercast.transactions.hydra_txn.client import ShardClient
from ordercast.transactions.hydra_txn.ordering import HydraShardOrdering

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
        decision = 8 * self.coordinator.ask_ns + 20 * delay
        recovery = self.coordinator.consensus.recovery_ns
        return Pace(pace.delivery_ns + decision, pace.recovery_ns + recovery + 2 * decision)


def _make_replica(
    env: Env,
    group: GroupId,
    members: dict[GroupId, tuple[NodeId, ...]],
    initial: dict[int, NodeId],
    service: tuple[NodeId, ...],
    aggregator: NodeId | None,
    options: HydraOptions,
    *,
    coordinators: tuple[NodeId, ...],
    spec: ServiceSpec | None,
    own: HydraTxnOptions,
) -> ShardReplica:
    """A replica of a shard."""
    shards = sum(1 for nodes in members.values() if nodes)
    ordering = partial(
        HydraShardOrdering,
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
        own.replicas,
        durable=own.durable,
        coordinators=coordinators,
        certain_ns=own.coordinator.certain_ns,
        lock_ns=own.coordinator.lock_ns,
    )


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

    def make_sender(inner: Env) -> Sender:
        return Sender(inner, groups, service, options)

    return FailureCoordinator(env, groups, peers, own, make_sender, (Announce, Steps, Echo, Stamped, Outcome))


def promises(*, durable: bool) -> Guarantees:
    """What replicas of shards promise: one order over all of them, and all of a transaction or none."""
    return msgspec.structs.replace(
        guarantees(durable=durable),
        order=Order.ACROSS,
        groups_max=None,
        consistency=Consistency.STRICT_SERIALIZABLE,
    )


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas of shards, their coordinator, clients, sequencers, and the configuration service."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with sequencers that came later, and without those that were removed."""
    if not isinstance(options, HydraTxnOptions):
        raise LocalError(f"{NAME} takes HydraTxnOptions, not {type(options).__name__}")
    spec, coordinator = deployment.service, options.coordinator
    ends = Ends(
        partial(_make_replica, spec=spec, own=options),
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
    coordinator = {
        "replicas": rng.choice((1, 3, 3)),
        "certain_ns": rng.choice((2, 20)) * MILLISECOND,
        "lock_ns": rng.choice((20, 100)) * MILLISECOND,
    }
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
    live=LIVE_REPLICAS
    | {
        "coordinator": {
            "ask_ns": 20 * MILLISECOND,
            "certain_ns": 200 * MILLISECOND,
            "lock_ns": 2000 * MILLISECOND,
            "consensus": LIVE_TIMEOUTS,
        },
    },
)

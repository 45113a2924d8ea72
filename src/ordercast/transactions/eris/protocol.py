"""Eris as a protocol (SOSP 2017): the replicas of HydraTxn behind one sequencer at a time."""

from functools import partial
from random import Random

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.cross_shard import MESSAGES as CROSS_SHARD_MESSAGES
from ordercast.components.cross_shard import CoordinatorOptions
from ordercast.components.cross_shard.options import LIVE_COORDINATOR, vary_coordinator
from ordercast.components.cross_shard.promises import promises
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.core import (
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
from ordercast.protocols.hydra.protocol import Beside, Ends, first_sequencer, lay_out
from ordercast.protocols.hydra.shard_calling import ShardClient
from ordercast.protocols.hydra.shards import make_shard_replica, sender_for
from ordercast.replication.nopaxos.controller import Controller
from ordercast.replication.nopaxos.protocol import LIVE, NoPaxosOptions
from ordercast.replication.nopaxos.protocol import vary as vary_network
from ordercast.replication.nopaxos.session import SessionSequencer
from ordercast.transactions.eris.coordinator import EpochCoordinator
from ordercast.transactions.eris.epochs import Epochs
from ordercast.transactions.eris.messages import MESSAGES
from ordercast.transactions.eris.ordering import EpochOrdering

NAME = "eris"


class ErisOptions(NoPaxosOptions, frozen=True):
    """Options of Eris: those of NOPaxos, and of the failure coordinator."""

    coordinator: CoordinatorOptions = CoordinatorOptions()
    """The failure coordinator, which also changes epochs."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencer, a leader, or the leader of the coordinator is suspected."""
        return max(super().detection_ns, self.coordinator.detection_ns)

    def pace(self, delay: Nanos) -> Pace:
        """As in NOPaxos; what is lost waits for the coordinator too."""
        return self.coordinator.pace(super().pace(delay), delay)


def _make_coordinator(
    env: Env,
    groups: dict[GroupId, tuple[NodeId, ...]],
    peers: tuple[NodeId, ...],
    service: tuple[NodeId, ...],
    options: HydraOptions,
    *,
    own: CoordinatorOptions,
    first: NodeId,
) -> EpochCoordinator:
    """A coordinator, which sends as clients do; `first` is the sequencer of the first epoch."""
    epochs = Epochs(first, len(groups), options.history)
    return EpochCoordinator(env, groups, peers, service, epochs, own, sender_for(groups, service, options))


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas of shards, their coordinator, clients, the sequencer and its spares, and the controller."""
    if not isinstance(options, ErisOptions):
        raise LocalError(f"{NAME} takes ErisOptions, not {type(options).__name__}")
    spec, coordinator = deployment.service, options.coordinator
    make_coordinator = partial(_make_coordinator, own=coordinator, first=first_sequencer(deployment))
    ends = Ends(
        partial(
            make_shard_replica,
            order=EpochOrdering,
            spec=spec,
            replicas=options.replicas,
            coordinator=coordinator,
            durable=options.durable,
        ),
        partial(ShardClient, calls=options.calls, spec=spec),
        "replica",
        "client",
        SessionSequencer,
        Controller,
        NAME,
        Beside("coordinator", coordinator.replicas, make_coordinator),
    )
    nodes, members = lay_out(deployment, options.network(), Extension(), ends)
    return Plan(
        NAME,
        promises(durable=options.durable),
        nodes,
        members,
        deployment.sender_ids(),
        Codec((*HYDRA_MESSAGES, *CONSENSUS_MESSAGES, *REPLICA_MESSAGES, *CROSS_SHARD_MESSAGES, *MESSAGES)),
        options.pace,
        packets_held_max=options.buffer,
        service=spec,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
    return vary_network(rng) | {"coordinator": vary_coordinator(rng)}


PROTOCOL = Protocol(
    name=NAME,
    summary="Transactions over shards in one round trip, behind one sequencer at a time.",
    paper="Eris (SOSP 2017)",
    guarantees=promises(durable=False),
    options=ErisOptions,
    deploy=deploy,
    roles=("replica", "client", "sequencer", "switch", "configuration", "coordinator"),
    serves=True,
    vary=vary,
    live=LIVE | {"coordinator": LIVE_COORDINATOR},
)

"""NOPaxos as a protocol (OSDI 2016): the same replicas as HydraPaxos, behind one sequencer."""

from functools import partial
from random import Random
from typing import Annotated, Literal

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.execution import CallOptions
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.options import LIVE_OPTIONS, vary_options
from ordercast.components.network_ordered.promises import GUARANTEES, guarantees
from ordercast.core import (
    MILLISECOND,
    Codec,
    Deployment,
    Extension,
    LocalError,
    Nanos,
    Options,
    Pace,
    Plan,
    Protocol,
)
from ordercast.protocols.hydra.calling import Client
from ordercast.protocols.hydra.messages import MESSAGES as HYDRA_MESSAGES
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import Ends, lay_out
from ordercast.protocols.hydra.replicas import make_replica
from ordercast.replication.nopaxos.controller import Controller
from ordercast.replication.nopaxos.session import SessionOrdering, SessionSequencer

NAME = "nopaxos"


class NoPaxosOptions(Options, frozen=True):
    """Options of NOPaxos."""

    durable: bool = False
    """Whether replicas save their log, and may restart, all at once too."""
    spares: Annotated[int, msgspec.Meta(ge=0, le=16)] = 1
    """Number of further nodes that can become the sequencer."""
    kind: Literal["host", "switch"] = "host"
    """What the sequencer runs on; it only names the role, for which a scenario can set costs."""
    controllers: int = 3
    """Replicas of the controller."""
    heartbeat_ns: Nanos = 5 * MILLISECOND
    """How often the sequencer tells its last number, so that the loss of the last message is noticed."""
    suspect_ns: Nanos = 30 * MILLISECOND
    """A replica suspects a sequencer from which nothing came for this long."""
    announce_ns: Nanos = 20 * MILLISECOND
    """How often the controller announces the session."""
    join_ns: Nanos = 20 * MILLISECOND
    """How often a node asks to become the sequencer; after a session it waits this long, doubling each
    time."""
    buffer: int = 65_536
    """How many packets a replica holds; more are dropped like packets that the network lost."""
    replicas: ReplicaOptions = ReplicaOptions()
    """Timeouts and limits of replicas."""
    calls: CallOptions = CallOptions()
    """How clients call."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Options of the controller's log."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencer or a leader is suspected."""
        return max(self.suspect_ns, self.replicas.silence_ns, self.consensus.detection_ns)

    def network(self) -> HydraOptions:
        """The options of the network: one sequencer at a time."""
        return HydraOptions(
            sequencers=1,
            spares=self.spares,
            target=1,
            kind=self.kind,
            flush="solicited",
            replicas=self.controllers,
            heartbeat_ns=self.heartbeat_ns,
            suspect_ns=self.suspect_ns,
            announce_ns=self.announce_ns,
            join_ns=self.join_ns,
            buffer=self.buffer,
            consensus=self.consensus,
            repair=False,
        )

    def pace(self, delay: Nanos) -> Pace:
        """A call waits for a retry at most; a delivery waits for synchronisation."""
        return self.replicas.pace(self.network().pace(delay), delay, 9 * self.calls.retry_ns)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas in disjoint groups, clients, the sequencer and its spares, and the controller."""
    if not isinstance(options, NoPaxosOptions):
        raise LocalError(f"{NAME} takes NoPaxosOptions, not {type(options).__name__}")
    spec = deployment.service
    ends = Ends(
        partial(
            make_replica,
            order=SessionOrdering,
            spec=spec,
            replicas=options.replicas,
            durable=options.durable,
        ),
        partial(Client, calls=options.calls, answers=spec is not None),
        "replica",
        "client",
        SessionSequencer,
        Controller,
        NAME,
    )
    nodes, members = lay_out(deployment, options.network(), Extension(), ends)
    return Plan(
        NAME,
        guarantees(durable=options.durable),
        nodes,
        members,
        deployment.sender_ids(),
        Codec((*HYDRA_MESSAGES, *CONSENSUS_MESSAGES, *REPLICA_MESSAGES)),
        options.pace,
        packets_held_max=options.buffer,
        service=spec,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
    return {
        "durable": rng.random() < 0.4,
        "spares": rng.choice((1, 1, 2)),
        "controllers": rng.choice((1, 3, 3)),
        "suspect_ns": rng.choice((30, 100)) * MILLISECOND,
        "announce_ns": rng.choice((5, 20)) * MILLISECOND,
        "buffer": rng.choice((16, 65_536)),
        "replicas": vary_options(rng),
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
    }


LIVE: dict[str, object] = {
    "heartbeat_ns": 20 * MILLISECOND,
    "suspect_ns": 500 * MILLISECOND,
    "announce_ns": 100 * MILLISECOND,
    "join_ns": 50 * MILLISECOND,
    "consensus": LIVE_TIMEOUTS,
    "replicas": LIVE_OPTIONS,
    "calls": LIVE_CALLS,
}
"""Options for real machines."""

PROTOCOL = Protocol(
    name=NAME,
    summary="Replication in one round trip behind one sequencer at a time.",
    paper="NOPaxos (OSDI 2016)",
    guarantees=GUARANTEES,
    options=NoPaxosOptions,
    deploy=deploy,
    roles=("replica", "client", "sequencer", "switch", "configuration"),
    serves=True,
    vary=vary,
    live=LIVE,
)

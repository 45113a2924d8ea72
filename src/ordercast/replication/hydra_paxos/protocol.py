"""HydraPaxos as a protocol (Hydra section 6): NOPaxos over Hydra's groupcast."""

from functools import partial
from random import Random

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.execution import CallOptions
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.promises import GUARANTEES, guarantees
from ordercast.core import (
    MILLISECOND,
    Action,
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
from ordercast.protocols.hydra.replica_ordering import HydraOrdering
from ordercast.protocols.hydra.replicas import make_replica

NAME = "hydra_paxos"


class HydraPaxosOptions(Options, frozen=True):
    """Options of HydraPaxos."""

    durable: bool = False
    """Whether replicas save their log, and may restart, all at once too."""
    hydra: HydraOptions = HydraOptions()
    """The sequencers, and how replicas get flushes. Its options for receivers and senders that keep packets
    (`repair`, `resend`, `durable`) are not used: replicas and clients do that themselves."""
    replicas: ReplicaOptions = ReplicaOptions()
    """Timeouts and limits of replicas."""
    calls: CallOptions = CallOptions()
    """How clients call."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencer or a leader is suspected."""
        return max(self.hydra.detection_ns, self.replicas.silence_ns)

    def network(self) -> HydraOptions:
        """The options of the network."""
        return msgspec.structs.replace(self.hydra, repair=False, resend=False, durable=False)

    def pace(self, delay: Nanos) -> Pace:
        """A call waits for the order, and a retry; a delivery waits for synchronisation."""
        return self.replicas.pace(self.network().pace(delay), delay, 9 * self.calls.retry_ns)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas in disjoint groups, clients, sequencers, and the configuration service."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with sequencers that came later, and without those that were removed."""
    if not isinstance(options, HydraPaxosOptions):
        raise LocalError(f"{NAME} takes HydraPaxosOptions, not {type(options).__name__}")
    spec = deployment.service
    ends = Ends(
        partial(
            make_replica,
            order=HydraOrdering,
            spec=spec,
            replicas=options.replicas,
            durable=options.durable,
        ),
        partial(Client, calls=options.calls, answers=spec is not None),
        "replica",
        "client",
        name=NAME,
    )
    nodes, members = lay_out(deployment, options.network(), extension, ends)
    return Plan(
        NAME,
        guarantees(durable=options.durable),
        nodes,
        members,
        deployment.sender_ids(),
        Codec((*HYDRA_MESSAGES, *CONSENSUS_MESSAGES, *REPLICA_MESSAGES)),
        options.pace,
        packets_held_max=options.hydra.buffer,
        removed=extension.removed,
        service=spec,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
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
        "replicas": {
            "ask_ns": rng.choice((0, 20_000, 200_000)),
            "gap_ns": rng.choice((500_000, 2_000_000)),
            "sync_ns": rng.choice((1, 5)) * MILLISECOND,
            "checkpoint_every": rng.choice((1, 3, 16, 256)),
            "keep": rng.choice((0, 4, 1024)),
            "chunk_bytes": rng.choice((64, 16_384)),
        },
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Replication in one round trip: NOPaxos over Hydra's many sequencers.",
    paper="Hydra (NSDI 2023), section 6",
    guarantees=GUARANTEES,
    options=HydraPaxosOptions,
    deploy=deploy,
    roles=("replica", "client", "sequencer", "switch", "aggregator", "configuration"),
    serves=True,
    vary=vary,
    newcomers=("sequencer", "switch"),
    extend=extend,
    new_cluster={"hydra": {"spares": 1}},
    actions=(
        Action("add-sequencer", "Start the first spare sequencer.", frozenset({"sequencer", "switch"})),
    ),
    live={
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
        "replicas": {
            "ask_ns": 1 * MILLISECOND,
            "gap_ns": 20 * MILLISECOND,
            "sync_ns": 20 * MILLISECOND,
            "silence_ns": 500 * MILLISECOND,
            "view_ns": 100 * MILLISECOND,
            "chunk_bytes": 64 << 10,
        },
        "calls": LIVE_CALLS,
    },
)

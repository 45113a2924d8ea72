"""HydraPaxos as a protocol (Hydra section 6): NOPaxos over Hydra's groupcast."""

from functools import partial

import msgspec

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.execution import CallOptions
from ordercast.components.network_ordered import MESSAGES as REPLICA_MESSAGES
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.promises import GUARANTEES, guarantees
from ordercast.core import (
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
from ordercast.protocols.hydra.replicas import LIVE_REPLICAS, make_replica, vary_replicas

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


PROTOCOL = Protocol(
    name=NAME,
    summary="Replication in one round trip: NOPaxos over Hydra's many sequencers.",
    paper="Hydra (NSDI 2023), section 6",
    guarantees=GUARANTEES,
    options=HydraPaxosOptions,
    deploy=deploy,
    roles=("replica", "client", "sequencer", "switch", "aggregator", "configuration"),
    serves=True,
    vary=vary_replicas,
    newcomers=("sequencer", "switch"),
    extend=extend,
    new_cluster={"hydra": {"spares": 1}},
    actions=(
        Action("add-sequencer", "Start the first spare sequencer.", frozenset({"sequencer", "switch"})),
    ),
    live=LIVE_REPLICAS,
)

"""Hydra as a protocol: its promises and its deployment (NSDI 2023, sections 4 and 5)."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.core import (
    MILLISECOND,
    Action,
    Agreement,
    Causality,
    Codec,
    Crashes,
    Deployment,
    Extension,
    Fault,
    Gaps,
    GroupId,
    Guarantees,
    HostId,
    LocalError,
    NewNode,
    Node,
    NodeId,
    Options,
    Order,
    Partition,
    Plan,
    Process,
    Protocol,
)
from ordercast.protocols.hydra.aggregator import Aggregator
from ordercast.protocols.hydra.limits import SEQUENCER_ROLES
from ordercast.protocols.hydra.messages import GROUPS_MAX, MESSAGES
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.protocols.hydra.service import ConfigurationReplica

NAME = "hydra"

GUARANTEES = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.NOTIFIED,
    uniform=False,
    validity=False,
    causality=Causality.NONE,
    gaps=Gaps.NOTIFIED,
    views=False,
    partition=Partition.MAJORITY_CONTINUES,
    crashes=Crashes.MINORITY,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.AMNESIA,
        Fault.PAUSE,
        Fault.CLOCK,
        Fault.DISK,
    ),
)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers in disjoint groups, senders, sequencers, aggregators if asked for, and the service."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with sequencers that came later, and without those that were removed."""
    if not isinstance(options, HydraOptions):
        raise LocalError(f"{NAME} takes HydraOptions, not {type(options).__name__}")
    nodes, members = lay_out(deployment, options, extension, Ends(Receiver, Sender))
    return Plan(
        NAME,
        _guarantees(options),
        nodes,
        members,
        deployment.sender_ids(),
        Codec((*MESSAGES, *CONSENSUS_MESSAGES)),
        options.pace,
        packets_held_max=options.buffer,
        removed=extension.removed,
    )


class Beside(NamedTuple):
    """Nodes of one more role, which receivers and they themselves know."""

    role: str
    nodes: int
    make: Callable[..., Process]
    """Called with the environment, `groups`, `peers`, `service` and `options`."""


class Ends(NamedTuple):
    """Who receives and who sends, in a network of sequencers."""

    receiver: Callable[..., Process]
    sender: Callable[..., Process]
    receiver_role: str = "receiver"
    sender_role: str = "sender"
    sequencer: Callable[..., Process] = Sequencer
    service: Callable[..., Process] = ConfigurationReplica
    name: str = NAME
    beside: Beside | None = None
    """Receivers are told of these nodes as their `coordinators`."""


def lay_out(
    deployment: Deployment, options: HydraOptions, extension: Extension, ends: Ends
) -> tuple[tuple[Node, ...], dict[GroupId, tuple[NodeId, ...]]]:
    """The nodes of a network of sequencers with its receivers and senders, and the groups."""
    members: dict[GroupId, tuple[NodeId, ...]] = dict(enumerate(deployment.groups))
    home = deployment.home_groups(ends.name)
    members |= {len(members) + index: () for index in range(options.virtual_groups)}
    if len(members) > GROUPS_MAX:
        raise LocalError(f"{ends.name} supports at most {GROUPS_MAX} groups, not {len(members)}")
    senders = deployment.sender_ids()
    ids = _Ids(first_sequencer(deployment))
    sequencers = ids.take(options.sequencers + options.spares)
    aggregators = ids.take(_racks(deployment.receivers, options))
    service = ids.take(options.replicas)
    beside = ids.take(ends.beside.nodes if ends.beside else 0)
    initial = dict(enumerate(sequencers[: options.sequencers], 1))
    receivers = tuple(range(deployment.receivers))
    audience = (*receivers, *senders, *sequencers, *aggregators, *beside)

    receiver = partial(ends.receiver, coordinators=beside) if beside else ends.receiver
    nodes = [
        Node(
            node,
            ends.receiver_role,
            node,
            partial(
                receiver,
                group=home[node],
                members=members,
                initial=initial,
                service=service,
                aggregator=aggregators[node // (options.rack or len(receivers))] if aggregators else None,
                options=options,
            ),
        )
        for node in receivers
    ]
    places = _places(deployment.receivers, sequencers, service, options)
    near = {host: node for node, host in places.items() if node in sequencers}
    sender = partial(ends.sender, groups=members, service=service, options=options)
    nodes += [
        Node(node, ends.sender_role, host, partial(sender, near=near.get(host)))
        for node, host in ((node, deployment.sender_host(node)) for node in senders)
    ]
    sequencer = partial(
        ends.sequencer, members=members, service=service, aggregators=aggregators, options=options
    )
    role = "switch" if options.kind == "switch" else "sequencer"
    nodes += [
        Node(
            node,
            role,
            places.get(node, _switch(index, sequencers, options)),
            sequencer,
            Crashes.ANY,
            spare=index >= options.sequencers,
        )
        for index, node in enumerate(sequencers)
    ]
    aggregator = partial(Aggregator, initial=initial, service=service, groups=len(members), options=options)
    nodes += [Node(node, "aggregator", node, aggregator, Crashes.ANY) for node in aggregators]
    replica = partial(
        ends.service,
        members=members,
        initial=initial,
        service=service,
        audience=audience,
        senders=senders,
        options=options,
    )
    nodes += [
        Node(node, "configuration", places.get(node, node), replica, Crashes.MINORITY) for node in service
    ]
    if ends.beside:
        make = partial(ends.beside.make, groups=members, peers=beside, service=service, options=options)
        hosts = range(deployment.receivers) if options.compact else beside
        nodes += [
            Node(node, ends.beside.role, hosts[index % len(hosts)], make, Crashes.MINORITY)
            for index, node in enumerate(beside)
        ]
    later = extension.nodes(len(nodes))
    nodes += [Node(node, _later_role(new, role), node, sequencer, Crashes.ANY) for node, new in later]
    _screen_removed(nodes, extension)
    return tuple(nodes), members


def first_sequencer(deployment: Deployment) -> NodeId:
    """The node of the first sequencer: the nodes before it receive or send."""
    return deployment.receivers + deployment.senders


def _later_role(new: NewNode, role: str) -> str:
    """The role of a sequencer that came later."""
    if new.role != role or new.groups:
        raise LocalError(f"{NAME}: only a {role}, which is in no group, can come to a running cluster")
    return role


def _screen_removed(nodes: list[Node], extension: Extension) -> None:
    """Refuse to go on without a node that others count on."""
    for node in nodes:
        if node.id in extension.removed and node.role not in SEQUENCER_ROLES:
            raise LocalError(f"{NAME}: only sequencers can be removed, and node {node.id} is a {node.role}")


class _Ids:
    """Deals out node ids."""

    def __init__(self, first: NodeId) -> None:
        self._next = first

    def take(self, count: int) -> tuple[NodeId, ...]:
        """So many more."""
        self._next += count
        return tuple(range(self._next - count, self._next))


def _guarantees(options: HydraOptions) -> Guarantees:
    """A durable receiver may restart; where all must report, none may be gone for good."""
    promised = GUARANTEES
    if options.durable:
        promised = msgspec.structs.replace(promised, tolerates=(*promised.tolerates, Fault.RESTART))
    if options.resend:
        promised = msgspec.structs.replace(promised, validity=True)
    if options.quorum == "all":
        promised = msgspec.structs.replace(promised, crashes=Crashes.NONE)
    return promised


def _racks(receivers: int, options: HydraOptions) -> int:
    if options.flush != "aggregated":
        return 0
    return -(-receivers // options.rack) if options.rack else 1


def _places(
    receivers: int, sequencers: tuple[NodeId, ...], service: tuple[NodeId, ...], options: HydraOptions
) -> dict[NodeId, HostId]:
    """The hosts of receivers on which sequencers and replicas run, if they run there."""
    if not options.compact:
        return {}
    if receivers < max(options.sequencers, options.replicas):
        raise LocalError(
            f"{NAME}: compact puts {options.sequencers} sequencers and {options.replicas} replicas of the "
            f"service on different hosts of receivers, but there are only {receivers} receivers"
        )
    first = sequencers[: options.sequencers]
    return dict(zip((*first, *service), (*range(len(first)), *range(len(service))), strict=True))


def _switch(index: int, sequencers: tuple[NodeId, ...], options: HydraOptions) -> HostId:
    """The host of a sequencer: its own, or that of its switch's first pipeline."""
    if options.kind == "switch":
        return sequencers[index - index % options.pipelines]
    return sequencers[index]


def vary(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
    flush = rng.choice(("adaptive", "solicited", "periodic", "aggregated", "nudged"))
    periods = (0, 50_000) if flush in ("adaptive", "solicited") else (2_000_000, 10_000_000)
    options: dict[str, object] = {
        "sequencers": rng.choice((1, 2, 2, 3, 4)),
        "spares": rng.choice((0, 0, 1, 2)),
        "kind": rng.choice(("host", "switch")),
        "pipelines": rng.choice((1, 1, 2)),
        "flush": flush,
        "flush_ns": rng.choice(periods),
        "rack": rng.choice((0, 2)),
        "route": rng.choice(("random", "hash", "congestion", "sticky")),
        "quorum": rng.choice(("majority", "majority", "all")),
        "durable": rng.random() < 0.3,
        "patience_ns": rng.choice((0, 0, 200_000)),
        "suspect_ns": rng.choice((30_000_000, 100_000_000)),
        "replicas": rng.choice((1, 3, 3, 5)),
        "heartbeat_ns": rng.choice((2, 5)) * MILLISECOND,
        "hold_ns": rng.choice((1, 10)) * MILLISECOND,
        "retry_ns": rng.choice((1, 3)) * MILLISECOND,
        "announce_ns": rng.choice((5, 20)) * MILLISECOND,
        "addition_ns": rng.choice((50, 100)) * MILLISECOND,
        "stick_ns": rng.choice((2, 20)) * MILLISECOND,
        "strangers": rng.choice((2, 1024)),
        "buffer": rng.choice((4, 65_536)),
    }
    if options["spares"] and rng.random() < 0.5:
        options["target"] = options["sequencers"]
    return options | {
        "repair": rng.random() < 0.7,
        "keep_bytes": rng.choice((4096, 8 << 20)),
        "keep_ns": rng.choice((20, 1000)) * MILLISECOND,
        "resend": rng.random() < 0.5,
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Network ordering with many active sequencers: order across groups, and notice of every drop.",
    paper="Hydra (NSDI 2023)",
    guarantees=GUARANTEES,
    options=HydraOptions,
    deploy=deploy,
    roles=("receiver", "sender", "sequencer", "switch", "aggregator", "configuration"),
    vary=vary,
    newcomers=("sequencer", "switch"),
    extend=extend,
    new_cluster={"spares": 1},
    with_programs={"durable": True},
    actions=(
        Action("add-sequencer", "Start the first spare sequencer.", frozenset({"sequencer", "switch"})),
    ),
    live={
        "flush": "nudged",
        "flush_ns": 5 * MILLISECOND,
        "route": "sticky",
        "heartbeat_ns": 20 * MILLISECOND,
        "suspect_ns": 500 * MILLISECOND,
        "patience_ns": 1 * MILLISECOND,
        "hold_ns": 20 * MILLISECOND,
        "keep_ns": 10_000 * MILLISECOND,
        "resend": True,
        "ack_ns": 20 * MILLISECOND,
        "retry_ns": 5 * MILLISECOND,
        "announce_ns": 100 * MILLISECOND,
        "addition_ns": 1000 * MILLISECOND,
        "join_ns": 50 * MILLISECOND,
        "consensus": LIVE_TIMEOUTS,
    },
)

"""Sequencing atoms as a user deploys them: publishers, subscribers, sequencing nodes and a store."""

from random import Random

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.sequencing_graph import GROUPINGS
from ordercast.core import (
    MILLISECOND,
    Agreement,
    Causality,
    Codec,
    Crashes,
    Deployment,
    Env,
    Fault,
    Gaps,
    Guarantees,
    HostId,
    LocalError,
    Membership,
    Node,
    NodeId,
    Options,
    Order,
    Partition,
    Plan,
    Protocol,
)
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import MESSAGES
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.parts import check_processes
from ordercast.protocols.atoms.publisher import Publisher
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sequencing_node import SequencingNode
from ordercast.protocols.atoms.store import StoreReplica
from ordercast.protocols.atoms.subscriber import Subscriber

NAME = "atoms"
TOLERATES = (
    Fault.LOSS,
    Fault.DUPLICATION,
    Fault.REORDERING,
    Fault.PARTITION,
    Fault.CRASH,
    Fault.RESTART,
    Fault.PAUSE,
    Fault.CLOCK,
    Fault.DISK,
)


def guarantees(options: AtomsOptions, *, publishers_apart: bool = True) -> Guarantees:
    """One order for all whom two groups have in common, and no order between groups that have nobody.

    Causal order is an order by hosts. Two publishers of one host do not know what the other one has sent.
    """
    return Guarantees(
        order=Order.OVERLAPS,
        agreement=Agreement.ALL,
        uniform=True,
        validity=True,
        causality=Causality.CAUSAL if options.causal and publishers_apart else Causality.NONE,
        gaps=Gaps.NEVER,
        partition=Partition.MAJORITY_CONTINUES,
        crashes=Crashes.ANY,
        groups_max=1,
        tolerates=TOLERATES,
        membership=Membership.SUBSCRIPTIONS,
    )


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Subscribers and publishers, then the sequencing nodes, then the store."""
    if not isinstance(options, AtomsOptions):
        raise LocalError(f"{NAME} takes AtomsOptions, not {type(options).__name__}")
    check_processes(deployment.receivers, deployment.senders)
    groups = dict(enumerate(deployment.groups))
    first = deployment.receivers + deployment.senders
    nodes = tuple(range(first, first + options.nodes))
    store = tuple(range(first + options.nodes, first + options.nodes + options.store))
    limits = Limits(groups, nodes, store)

    def registry() -> Registry:
        return Registry(groups, nodes, options.copies, options.grouping, options.causal)

    plans = registry().plans

    def subscriber(env: Env) -> Subscriber:
        return Subscriber(env, plans, store, limits, options)

    def publisher(env: Env) -> Publisher:
        return Publisher(env, plans, tuple(groups), nodes, store, limits, options)

    def sequencing_node(env: Env) -> SequencingNode:
        return SequencingNode(env, plans, store, limits, options)

    def replica(env: Env) -> StoreReplica:
        return StoreReplica(env, registry(), store, limits, options)

    beside = _hosts(deployment.receivers, nodes, store, options)
    everyone = [Node(node, "subscriber", node, subscriber) for node in range(deployment.receivers)]
    everyone += [
        Node(node, "publisher", deployment.sender_host(node), publisher) for node in deployment.sender_ids()
    ]
    fails = Crashes.ONE if 1 < options.copies < options.nodes else Crashes.NONE
    everyone += [
        Node(node, "sequencing node", beside.get(node, node), sequencing_node, fails) for node in nodes
    ]
    everyone += [Node(node, "store", beside.get(node, node), replica, Crashes.MINORITY) for node in store]
    apart = len({deployment.sender_host(node) for node in deployment.sender_ids()}) == deployment.senders
    return Plan(
        NAME,
        guarantees(options, publishers_apart=apart),
        tuple(everyone),
        groups,
        deployment.sender_ids(),
        Codec((*MESSAGES, *CONSENSUS_MESSAGES)),
        options.pace,
        joiners=deployment.joiner_ids(),
    )


def _hosts(
    receivers: int, nodes: tuple[NodeId, ...], store: tuple[NodeId, ...], options: AtomsOptions
) -> dict[NodeId, HostId]:
    """Where sequencing nodes and replicas of the store run, if not on hosts of their own."""
    if not options.compact:
        return dict(zip(store, nodes, strict=False))
    if receivers < max(options.nodes, options.store):
        raise LocalError(
            f"{NAME}: compact puts {options.nodes} sequencing nodes and {options.store} replicas of the store"
            f" on different hosts of receivers, but there are only {receivers} receivers"
        )
    return {node: host for those in (nodes, store) for host, node in enumerate(those)}


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: few and many nodes, short windows, all placements."""
    nodes = rng.choice((2, 3, 3, 5))
    return {
        "nodes": nodes,
        "store": rng.choice((1, 3, 3)),
        "copies": rng.choice((1, 2, 2, min(3, nodes))),
        "grouping": rng.choice(sorted(GROUPINGS)),
        "causal": rng.random() < 0.3,
        "window": rng.choice((1, 3, 64)),
        "retry_ns": rng.choice((5, 20)) * MILLISECOND,
        "suspect_ns": rng.choice((20, 40, 80)) * MILLISECOND,
        "consensus": {
            "checkpoint": rng.choice((2, 16, 1024)),
            "chunk_bytes": rng.choice((2000, 64 << 10)),
        },
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="One order for overlapping groups without a centre: an atom numbers what two groups share.",
    paper="Decentralized Message Ordering (Lumezanu)",
    guarantees=guarantees(AtomsOptions()),
    options=AtomsOptions,
    deploy=deploy,
    roles=("subscriber", "publisher", "sequencing node", "store"),
    vary=vary,
    live={
        "retry_ns": 200 * MILLISECOND,
        "heartbeat_ns": 50 * MILLISECOND,
        "suspect_ns": 500 * MILLISECOND,
        "consensus": LIVE_TIMEOUTS,
    },
)

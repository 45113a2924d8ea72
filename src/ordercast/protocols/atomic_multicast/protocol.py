"""Atomic multicast as a protocol: its promises and its deployment (Hydra section 7.1).

Receivers 0 to R-1 are in disjoint groups, each group runs a consensus log of its own, and clients
follow them. Genuine: only the client and the receivers of a message's groups take part in its
delivery.
"""

from random import Random

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
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
    LocalError,
    Node,
    Options,
    Order,
    Partition,
    Plan,
    Protocol,
)
from ordercast.protocols.atomic_multicast.client import Client
from ordercast.protocols.atomic_multicast.messages import MESSAGES
from ordercast.protocols.atomic_multicast.options import AtomicMulticastOptions
from ordercast.protocols.atomic_multicast.receiver import Receiver

NAME = "atomic_multicast"

GUARANTEES = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    causality=Causality.NONE,
    gaps=Gaps.NEVER,
    views=False,
    partition=Partition.MAJORITY_CONTINUES,
    crashes=Crashes.MINORITY,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.RESTART,
        Fault.PAUSE,
        Fault.CLOCK,
        Fault.DISK,
    ),
)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers in disjoint groups, and clients."""
    if not isinstance(options, AtomicMulticastOptions):
        raise LocalError(f"{NAME} takes AtomicMulticastOptions, not {type(options).__name__}")
    members = dict(enumerate(deployment.groups))
    home = deployment.home_groups(NAME)
    senders = deployment.sender_ids()

    def receiver(env: Env) -> Receiver:
        return Receiver(env, home[env.me], members, senders, options)

    def client(env: Env) -> Client:
        return Client(env, members, options)

    nodes = [Node(node, "receiver", node, receiver) for node in range(deployment.receivers)]
    nodes += [Node(node, "client", deployment.sender_host(node), client) for node in senders]
    codec = Codec((*MESSAGES, *CONSENSUS_MESSAGES))
    return Plan(NAME, GUARANTEES, tuple(nodes), members, senders, codec, options.pace)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: windows of one, queues that overflow, snapshots at every turn."""
    window = rng.choice((1, 3, 64))
    return {
        "window": window,
        "backlog": rng.choice((window, 1024)),
        "queue": rng.choice((2, 4096)),
        "early": rng.choice((2, 4096)),
        "retry_ns": rng.choice((5, 20)) * MILLISECOND,
        "confirm_ns": rng.choice((20, 100)) * MILLISECOND,
        "patience_ns": rng.choice((1, 10)) * MILLISECOND,
        "recovery_ns": rng.choice((10, 40)) * MILLISECOND,
        "consensus": {
            "window": rng.choice((1, 4, 1024)),
            "checkpoint": rng.choice((2, 16, 1024)),
            "chunk_bytes": rng.choice((1, 2000, 64 << 10)),
            "burst": rng.choice((1, 64)),
        },
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Total order within and across disjoint groups: a consensus round a group and message.",
    paper="Hydra (NSDI 2023), section 7.1",
    guarantees=GUARANTEES,
    options=AtomicMulticastOptions,
    deploy=deploy,
    roles=("receiver", "client"),
    vary=vary,
    live={
        "retry_ns": 200 * MILLISECOND,
        "confirm_ns": 500 * MILLISECOND,
        "patience_ns": 50 * MILLISECOND,
        "recovery_ns": 400 * MILLISECOND,
        "consensus": LIVE_TIMEOUTS,
    },
)

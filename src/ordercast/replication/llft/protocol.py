"""LLFT as a protocol: leader-follower replication of services over group-to-group connections."""

from random import Random

import msgspec

from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.execution.promises import PROMISES
from ordercast.core import (
    MILLISECOND,
    SECOND,
    Codec,
    Crashes,
    Deployment,
    Env,
    Fault,
    Guarantees,
    LocalError,
    Membership,
    Node,
    NodeId,
    Options,
    Partition,
    Plan,
    Process,
    Protocol,
)
from ordercast.replication.llft.client import Client
from ordercast.replication.llft.messages import MESSAGES
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.receiver import GroupReceiver
from ordercast.replication.llft.setting import Setting

NAME = "llft"

WITH_MAJORITY = msgspec.structs.replace(
    PROMISES,
    membership=Membership.VIEWS,
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
"""What is promised if a view needs a majority."""
GUARANTEES = msgspec.structs.replace(
    WITH_MAJORITY,
    uniform=False,
    partition=Partition.SIDE_BRANCHES_DISCARDED,
    crashes=Crashes.ALL_BUT_ONE,
)
"""What is promised of the surviving branch, if one replica is enough."""


def guarantees(options: LlftOptions) -> Guarantees:
    """What is promised with these options."""
    return WITH_MAJORITY if options.require_majority else GUARANTEES


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas in disjoint groups, and clients."""
    if not isinstance(options, LlftOptions):
        raise LocalError(f"{NAME} takes LlftOptions, not {type(options).__name__}")
    home = deployment.home_groups(NAME)
    members = dict(enumerate(deployment.groups))
    clients = deployment.sender_ids()
    joiners = deployment.joiner_ids()
    home |= {node: index % len(members) for index, node in enumerate(joiners)}
    spare = {group: tuple(node for node in joiners if home[node] == group) for group in members}
    setting = Setting(options, deployment.service, members, clients, deployment.receivers, spare)

    def replica(env: Env) -> Process:
        return GroupReceiver(env, setting, home[env.me])

    def client(env: Env) -> Process:
        return Client(env, setting)

    def receiver(node: NodeId) -> Node:
        return Node(node, "replica", node, replica)

    nodes = [receiver(node) for node in range(deployment.receivers)]
    nodes += [Node(node, "client", deployment.sender_host(node), client) for node in clients]
    return Plan(
        NAME,
        guarantees(options),
        tuple(nodes),
        members,
        clients,
        Codec(MESSAGES),
        options.pace,
        joiners=joiners,
        homes=home,
        service=deployment.service,
        asks=True,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm."""
    return {
        "require_majority": rng.random() < 0.5,
        "replication": rng.choice(("semi-active", "semi-passive")),
        "update_every": rng.choice((1, 4, 16)),
        "window": rng.choice((1, 4, 256)),
        "fragment_bytes": rng.choice((64, 100, 60_000)),
        "behind_max": rng.choice((4, 1024)),
        "slow_backup": rng.choice(("wait", "remove")),
        "checkpoint_every": rng.choice((1, 3, 16)),
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Leader and followers: the primary answers at once, and one replica is enough to go on.",
    paper="LLFT (Zhao, Melliar-Smith, Moser), sections II to IV",
    guarantees=GUARANTEES,
    options=LlftOptions,
    deploy=deploy,
    roles=("replica", "client"),
    serves=True,
    vary=vary,
    live={
        "calls": LIVE_CALLS,
        "heartbeat_ns": 20 * MILLISECOND,
        "detect_ns": 300 * MILLISECOND,
        "query_ns": 300 * MILLISECOND,
        "regroup_ns": 3 * SECOND,
        "close_ns": 10 * SECOND,
        "retransmit_ns": 50 * MILLISECOND,
        "ack_ns": 5 * MILLISECOND,
        "progress_ns": 5 * MILLISECOND,
    },
)

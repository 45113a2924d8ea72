"""Granola as a protocol: a shard a group, each with a log of what it proposes and what was agreed."""

from random import Random

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.logged_service import GUARANTEES
from ordercast.components.logged_shards import deploy_shards, vary_shards
from ordercast.core import (
    MILLISECOND,
    SECOND,
    Consistency,
    Deployment,
    Options,
    Order,
    Plan,
    Protocol,
)
from ordercast.replication.multi_paxos import PROTOCOL as MULTI_PAXOS
from ordercast.transactions.granola.client import GranolaClient
from ordercast.transactions.granola.messages import MESSAGES
from ordercast.transactions.granola.options import GranolaOptions
from ordercast.transactions.granola.server import GranolaServer

NAME = "granola"
PROMISES = msgspec.structs.replace(
    GUARANTEES, order=Order.ACROSS, groups_max=None, consistency=Consistency.SERIALIZABLE
)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas of the shards, and clients."""
    return deploy_shards(
        NAME, deployment, options, GranolaOptions, GranolaServer, GranolaClient, MESSAGES, PROMISES
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm."""
    own = {"vote_ns": rng.choice((2, 10)) * MILLISECOND, "conflicts_max": rng.choice((0, 2, 5, 64))}
    return vary_shards(rng, MULTI_PAXOS.vary) | own


PROTOCOL = Protocol(
    name=NAME,
    summary="Transactions over shards by timestamps on which the shards vote, over a log for each shard.",
    paper="Granola (USENIX ATC 2012); Hydra (NSDI 2023), section 7.3",
    guarantees=PROMISES,
    options=GranolaOptions,
    deploy=deploy,
    roles=("replica", "client"),
    serves=True,
    vary=vary,
    live={
        "calls": LIVE_CALLS,
        "consensus": LIVE_TIMEOUTS,
        "lock_ns": 2 * SECOND,
        "vote_ns": 100 * MILLISECOND,
    },
)

"""Lock-Store as a protocol: a shard a group, each with a log of commands (Hydra section 7.3)."""

from random import Random

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.logged_service import GUARANTEES
from ordercast.components.logged_shards import deploy_shards, vary_shards
from ordercast.core import (
    SECOND,
    Consistency,
    Deployment,
    Options,
    Plan,
    Protocol,
)
from ordercast.replication.multi_paxos import PROTOCOL as MULTI_PAXOS
from ordercast.transactions.lock_store.client import TransactionClient
from ordercast.transactions.lock_store.commands import MESSAGES
from ordercast.transactions.lock_store.options import LockStoreOptions
from ordercast.transactions.lock_store.server import ShardServer

NAME = "lock_store"
PROMISES = msgspec.structs.replace(GUARANTEES, groups_max=None, consistency=Consistency.STRICT_SERIALIZABLE)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas of the shards, and clients."""
    return deploy_shards(
        NAME, deployment, options, LockStoreOptions, ShardServer, TransactionClient, MESSAGES, PROMISES
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm."""
    return vary_shards(rng, MULTI_PAXOS.vary)


PROTOCOL = Protocol(
    name=NAME,
    summary="Transactions over shards by two-phase commit and locks, over a log for each shard.",
    paper="Hydra (NSDI 2023), section 7.3; Spanner (OSDI 2012)",
    guarantees=PROMISES,
    options=LockStoreOptions,
    deploy=deploy,
    roles=("replica", "client"),
    serves=True,
    vary=vary,
    live={"calls": LIVE_CALLS, "consensus": LIVE_TIMEOUTS, "lock_ns": 2 * SECOND},
)

"""Fast Paxos as a protocol: a service a group, with votes of replicas for what clients send them."""

from collections.abc import Mapping
from random import Random

from ordercast.components.consensus import LIVE_TIMEOUTS
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.logged_service import GUARANTEES, LogClient, deploy_logged
from ordercast.components.logged_service.logged_replica import Place
from ordercast.core import (
    MILLISECOND,
    Deployment,
    Env,
    GroupId,
    LocalError,
    NodeId,
    Options,
    Plan,
    Protocol,
)
from ordercast.replication.fast_paxos.messages import MESSAGES
from ordercast.replication.fast_paxos.options import FastPaxosOptions
from ordercast.replication.fast_paxos.server import Server

NAME = "fast_paxos"


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Replicas in disjoint groups, and clients."""
    if not isinstance(options, FastPaxosOptions):
        raise LocalError(f"{NAME} takes FastPaxosOptions, not {type(options).__name__}")

    def replica(env: Env, place: Place) -> Server:
        return Server(env, place, options)

    def client(env: Env, members: Mapping[GroupId, tuple[NodeId, ...]], answers: bool) -> LogClient:
        return LogClient(env, members, options.calls, answers=answers, broadcasts=True)

    return deploy_logged(NAME, deployment, options, replica, client, MESSAGES)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: windows of one, queues that overflow, snapshots at every turn.

    A durable log that may have no service is long: nobody can do without the messages that it missed.
    """
    durable = rng.random() < 0.6
    return {
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
        "durable": durable,
        "queue": rng.choice((2, 4096)),
        "checkpoint_every": rng.choice((1, 4, 16)),
        "consensus": {
            "window": rng.choice((1, 4, 1024)),
            "log_limit": 65_536 if durable else rng.choice((32, 65_536)),
            "checkpoint": rng.choice((1, 4, 16)),
            "chunk_bytes": rng.choice((100, 2000, 64 << 10)),
            "burst": rng.choice((1, 64)),
        },
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="A service whose replicas vote for the calls of clients at once: fast while they agree.",
    paper="Hydra (NSDI 2023), section 7.2; Fast Paxos (Lamport 2006)",
    guarantees=GUARANTEES,
    options=FastPaxosOptions,
    deploy=deploy,
    roles=("replica", "client"),
    serves=True,
    vary=vary,
    live={"calls": LIVE_CALLS, "consensus": LIVE_TIMEOUTS},
)

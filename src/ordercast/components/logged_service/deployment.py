"""The plan of a protocol with a log for a service: replicas in disjoint groups, and clients."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.execution.messages import MESSAGES as CALL_MESSAGES
from ordercast.components.execution.promises import PROMISES
from ordercast.components.logged_service.logged_replica import LoggedReplica, Place
from ordercast.components.logged_service.messages import MESSAGES
from ordercast.components.logged_service.options import LogOptions
from ordercast.core import (
    Caller,
    Codec,
    Deployment,
    Env,
    Fault,
    GroupId,
    Guarantees,
    Message,
    Node,
    NodeId,
    Plan,
)

GUARANTEES = msgspec.structs.replace(
    PROMISES,
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
"""What is promised of a durable log, with a service or without."""


def guarantees(options: LogOptions, promises: Guarantees, *, serves: bool) -> Guarantees:
    """What is promised with these options.

    A replica that lost its memory gets a state from others, which needs a service: without one, messages that
    it missed are gone. One that keeps nothing on a disk loses its memory whenever it restarts.
    """
    tolerates: tuple[Fault, ...] = promises.tolerates
    if not options.durable:
        tolerates = tuple(fault for fault in tolerates if fault not in (Fault.RESTART, Fault.DISK))
    if serves or not options.durable:
        tolerates += (Fault.AMNESIA,)
    return msgspec.structs.replace(promises, tolerates=tolerates)


def deploy_logged(
    name: str,
    deployment: Deployment,
    options: LogOptions,
    replica: Callable[[Env, Place], LoggedReplica],
    client: Callable[[Env, Mapping[GroupId, tuple[NodeId, ...]], bool], Caller],
    messages: Sequence[type[Message]] = (),
    promises: Guarantees = GUARANTEES,
) -> Plan:
    """The plan; `replica` and `client` make the processes, `messages` are those of the protocol, and
    `promises` is what a durable log promises."""
    members = dict(enumerate(deployment.groups))
    home = deployment.home_groups(name)
    service = deployment.service

    def make_replica(env: Env) -> LoggedReplica:
        group = home[env.me]
        return replica(env, Place(group, members[group], service))

    def make_client(env: Env) -> Caller:
        return client(env, members, service is not None)

    clients = deployment.sender_ids()
    nodes = [Node(node, "replica", node, make_replica) for node in range(deployment.receivers)]
    nodes += [Node(node, "client", deployment.sender_host(node), make_client) for node in clients]
    return Plan(
        name,
        guarantees(options, promises, serves=service is not None),
        tuple(nodes),
        members,
        clients,
        Codec((*messages, *MESSAGES, *CALL_MESSAGES, *CONSENSUS_MESSAGES)),
        options.pace,
        service=service,
    )

"""View-synchronous multicast as a user deploys it."""

from functools import partial
from random import Random

from ordercast.components.application_state import with_application_state
from ordercast.components.membership import LIVE_TIMEOUTS, MESSAGES, ROLES, ViewOptions, assemble
from ordercast.core import (
    MILLISECOND,
    Agreement,
    Causality,
    Codec,
    Crashes,
    Deployment,
    Env,
    Extension,
    Fault,
    Gaps,
    Guarantees,
    LocalError,
    Membership,
    Nanos,
    Options,
    Order,
    Pace,
    Partition,
    Plan,
    Protocol,
)
from ordercast.protocols.view_synchronous.options import ViewSynchronousOptions
from ordercast.protocols.view_synchronous.peer import Peer

NAME = "view_synchronous"

GUARANTEES = Guarantees(
    order=Order.NONE,
    agreement=Agreement.ALL,
    validity=True,
    causality=Causality.FIFO,
    gaps=Gaps.NEVER,
    views=True,
    partition=Partition.MAJORITY_CONTINUES,
    crashes=Crashes.MINORITY_OF_ALL,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.RESTART,
        Fault.AMNESIA,
        Fault.PAUSE,
        Fault.CLOCK,
        Fault.DISK,
    ),
    membership=Membership.VIEWS,
)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders form one view; co-located, a receiver is the sender itself."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with members and senders that came later, and without those that were removed."""
    if not isinstance(options, ViewSynchronousOptions):
        raise LocalError(f"{NAME} takes ViewSynchronousOptions, not {type(options).__name__}")
    assembly = assemble(deployment, extension)

    def make(env: Env) -> Peer:
        return Peer(env, assembly.groups, assembly.seating, env.me in assembly.senders, options)

    plan = Plan(
        NAME,
        GUARANTEES,
        assembly.nodes(make),
        assembly.groups,
        assembly.senders,
        Codec(MESSAGES),
        partial(pace, options),
        joiners=extension.left(deployment.joiner_ids()),
        removed=extension.removed,
    )
    return with_application_state(plan, make, options) if options.application_state else plan


def pace(options: ViewOptions, delay: Nanos) -> Pace | None:
    """A message takes one way; in a change it waits for three rounds, each asked for again at a heartbeat.

    After a fault, members are suspected, excluded, heard again and taken in again.
    """
    if options.suspect_ns < 4 * delay + 2 * options.heartbeat_ns:
        return None  # members that are only slow would be excluded again and again
    change = 10 * delay + 8 * options.heartbeat_ns + 2 * options.retry_ns
    return Pace(2 * change + 10 * MILLISECOND, 3 * options.detection_ns + 4 * change)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: small windows too, and suspicion that is quick or slow."""
    return {
        "heartbeat_ns": rng.choice((5, 10, 10, 20)) * MILLISECOND,
        "suspect_ns": rng.choice((40, 60, 100)) * MILLISECOND,
        "window": rng.choice((2, 16, 1024)),
        "chunk_bytes": rng.choice((100, 1 << 18)),
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Groups with agreed members: reliable FIFO multicast, the same messages between two views.",
    paper="Totally Ordered Multicast in Large-Scale Systems (ICDCS 1996), section 5",
    guarantees=GUARANTEES,
    options=ViewSynchronousOptions,
    deploy=deploy,
    roles=ROLES,
    vary=vary,
    live=LIVE_TIMEOUTS,
    newcomers=ROLES,
    extend=extend,
)

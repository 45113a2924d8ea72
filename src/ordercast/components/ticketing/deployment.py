"""Plans of protocols with tickets: who is a member, and how a member is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from ordercast.components.application_state import with_application_state
from ordercast.components.membership import LIVE_TIMEOUTS, ViewMember, ViewSynchrony, assemble
from ordercast.components.membership import MESSAGES as VIEW_MESSAGES
from ordercast.components.ticketing.messages import MESSAGES
from ordercast.components.ticketing.options import TicketOptions
from ordercast.components.ticketing.participant import MakeViews, Setting
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
    GroupId,
    Guarantees,
    Membership,
    NodeId,
    Order,
    Partition,
    Plan,
)

VIEWS_GROUP: GroupId = 0
"""The view-synchronous layer has one group of all members; the groups of the deployment are only
addresses."""


TOLERATES = (
    Fault.LOSS,
    Fault.DUPLICATION,
    Fault.REORDERING,
    Fault.PARTITION,
    Fault.CRASH,
    Fault.PAUSE,
    Fault.CLOCK,
)
RETURNS = (Fault.RESTART, Fault.AMNESIA, Fault.DISK)
"""Faults after which a member comes back."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Who begins as active, and which sequencers are preferred."""

    actives: frozenset[NodeId] | None
    """None if all members are active when they come in, also those that the plan does not know yet."""
    sequencers: Mapping[NodeId, NodeId] = field(default_factory=dict)


MakeMember: TypeAlias = Callable[[Env, Setting, MakeViews], ViewMember]
ChooseRoles: TypeAlias = Callable[[tuple[NodeId, ...]], Roles]
"""The roles of these members. All of them must come to the same roles, whichever nodes came later."""


def promises(options: TicketOptions) -> Guarantees:
    """What all protocols with tickets promise.

    A member that restarts comes back without the messages that it had. So uniform delivery, which counts on
    those that have a message, is promised only if members that crash do not come back.
    """
    return Guarantees(
        order=Order.ACROSS,
        agreement=Agreement.ALL,
        uniform=options.uniform,
        validity=True,
        causality=Causality.FIFO,
        gaps=Gaps.NEVER,
        views=True,
        partition=Partition.MAJORITY_CONTINUES,
        crashes=Crashes.MINORITY_OF_ALL,
        tolerates=TOLERATES if options.uniform else (*TOLERATES, *RETURNS),
        membership=Membership.VIEWS,
    )


def member_plan(
    name: str,
    deployment: Deployment,
    extension: Extension,
    options: TicketOptions,
    choose: ChooseRoles,
    make: MakeMember,
    *,
    probes: bool = True,
) -> Plan:
    """Every receiver is a member, and so is every sender; co-located, a receiver is the sender itself."""
    assembly = assemble(deployment, extension)
    roles = choose(assembly.first)
    groups, senders = tuple(assembly.groups), frozenset(assembly.senders)
    setting = Setting(groups, options, roles.actives, roles.sequencers, probes, senders)

    def make_views(
        env: Env, snapshot: Callable[[], bytes], restore: Callable[[bytes], None]
    ) -> ViewSynchrony:
        return ViewSynchrony(env, VIEWS_GROUP, assembly.seating, options.views, snapshot, restore)

    def make_member(env: Env) -> ViewMember:
        return make(env, setting, make_views)

    plan = Plan(
        name,
        promises(options),
        assembly.nodes(make_member),
        assembly.groups,
        assembly.senders,
        Codec((*MESSAGES, *VIEW_MESSAGES)),
        options.pace,
        joiners=extension.left(deployment.joiner_ids()),
        removed=extension.removed,
    )
    return with_application_state(plan, make_member, options.views) if options.application_state else plan


LIVE_OPTIONS: Mapping[str, object] = {
    "silence_ns": 5 * MILLISECOND,
    "confirm_ns": 5 * MILLISECOND,
    "probe_ns": 1000 * MILLISECOND,
    "views": LIVE_TIMEOUTS,
}
"""Options for real machines, where a member may have to wait for a CPU."""


def vary_tickets(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: windows of one, tickets that wait, and members that are soon
    suspected."""
    heartbeat = rng.choice((10, 20))
    return {
        "window": rng.choice((1, 3, 256)),
        "uniform": rng.random() < 0.4,
        "ticket_wait_ns": rng.choice((0, 0, 1, 5)) * MILLISECOND,
        "silence_ns": rng.choice((0, 1, 10)) * MILLISECOND,
        "views": {
            "heartbeat_ns": heartbeat * MILLISECOND,
            "suspect_ns": rng.choice((3, 6, 12)) * heartbeat * MILLISECOND,
            "window": rng.choice((1, 4, 1024)),
        },
    }

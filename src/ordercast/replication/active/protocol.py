"""Active replication as a protocol: a service on any order with agreement, by the name of that protocol.

Every replica executes every call in the order in which the protocol below delivers it (Schneider's state
machine approach). What is needed below: total order, uniform agreement, no gaps, and members that stay the
same.
"""

from dataclasses import replace
from functools import partial
from random import Random

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.components.execution.messages import MESSAGES
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.core import (
    MILLISECOND,
    Agreement,
    Causality,
    Codec,
    Consistency,
    Deployment,
    Extension,
    Fault,
    Gaps,
    Guarantees,
    LocalError,
    Membership,
    Nanos,
    Node,
    OptionError,
    Options,
    Order,
    Pace,
    Plan,
    Protocol,
)
from ordercast.protocols.layer import find_below, plan_below
from ordercast.replication.active.options import ActiveOptions
from ordercast.replication.active.participant import Participant, Setting

NAME = "active"
_BELOW = find_protocol(ActiveOptions().over)


def guarantees(below: Guarantees) -> Guarantees:
    """What is promised over a protocol with these promises.

    A replica that lost its state does not come back: nobody gives it another.
    """
    return msgspec.structs.replace(
        below,
        order=Order.GROUP,
        causality=Causality.NONE,  # of the calls under way, any may be executed first
        groups_max=1,
        consistency=Consistency.LINEARIZABLE,
        tolerates=tuple(fault for fault in below.tolerates if fault is not Fault.AMNESIA),
    )


def check_below(name: str, promised: Guarantees) -> None:
    """Raise `OptionError` if replicas over a protocol with these promises could differ."""
    lacking = {
        "a total order": promised.order is Order.NONE,
        "agreement among all receivers": promised.agreement is not Agreement.ALL,
        "uniform agreement": not promised.uniform,
        "delivery without gaps": promised.gaps is not Gaps.NEVER,
        # Views have a majority of all members, perhaps without a single replica that has the state.
        "fixed members": promised.membership is not Membership.FIXED,
    }
    for what, missing in lacking.items():
        if missing:
            raise OptionError(
                "over",
                f"active cannot stand on {name} with these options: replicas need {what}, which it does not"
                " promise",
            )


def deploy(deployment: Deployment, options: Options) -> Plan:
    """The plan of the protocol below, with a replica or a client on each receiver and sender."""
    if not isinstance(options, ActiveOptions):
        raise LocalError(f"active takes ActiveOptions, not {type(options).__name__}")
    deployment.home_groups(NAME)  # refuses groups that overlap
    plan = plan_below(NAME, deployment, options, Extension())
    check_below(options.over, plan.guarantees)
    setting = Setting(deployment.service, plan.groups, options)
    return replace(
        plan,
        protocol=NAME,
        guarantees=guarantees(plan.guarantees),
        nodes=tuple(_stacked(node, plan, setting) for node in plan.nodes),
        codec=Codec((*MESSAGES, *plan.codec.types)),
        pace=partial(_pace, plan, options),
        service=deployment.service,
    )


def _stacked(node: Node, plan: Plan, setting: Setting) -> Node:
    """A receiver or a sender with its part of the service; any other node as it is."""
    if node.id not in plan.participants():
        return node
    make = partial(
        Participant,
        make=node.factory,
        messages=plan.codec.types,
        setting=setting,
    )
    return replace(node, factory=make)


def _pace(plan: Plan, options: ActiveOptions, delay: Nanos) -> Pace | None:
    below = plan.pace(delay)
    if below is None:
        return None
    again = 9 * options.calls.retry_ns
    return Pace(below.delivery_ns + again, below.recovery_ns + again)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm."""
    common = {
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((20, 50)) * MILLISECOND},
        "checkpoint_every": rng.choice((1, 4, 16)),
        "snapshot_every": rng.choice((1, 5, 1024)),
    }
    return {**common, "below": _BELOW.vary(rng)}


PROTOCOL = Protocol(
    name=NAME,
    summary="Replicas execute what another protocol delivers: a service on any order with agreement.",
    paper=f"the state machine approach (Schneider 1990) on any protocol, by default {_BELOW.name}",
    guarantees=guarantees(_BELOW.guarantees),
    options=ActiveOptions,
    deploy=deploy,
    roles=_BELOW.roles,
    serves=True,
    vary=vary,
    live={"calls": LIVE_CALLS},
    stands_on=lambda chosen: find_below(chosen, _BELOW.name),
)

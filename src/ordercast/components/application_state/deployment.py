"""Plans whose members bring the states of their applications to newcomers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec

from ordercast.components.application_state.member import StatefulMember
from ordercast.components.application_state.messages import MESSAGES
from ordercast.components.membership import ViewMember, ViewOptions
from ordercast.core import Codec, Env, Nanos, Node, Pace, Plan


def with_application_state(plan: Plan, make: Callable[[Env], ViewMember], options: ViewOptions) -> Plan:
    """The same plan, with the layer for application states on each member; `make` makes a member."""
    stacked = partial(
        StatefulMember, make=make, messages=plan.codec.types, groups=tuple(plan.groups), options=options
    )
    return replace(
        plan,
        guarantees=msgspec.structs.replace(plan.guarantees, state_transfer=True),
        nodes=tuple(_with_factory(node, stacked) for node in plan.nodes),
        codec=Codec((*plan.codec.types, *MESSAGES)),
        pace=partial(_pace, plan.pace, options),
    )


def _with_factory(node: Node, make: Callable[[Env], StatefulMember]) -> Node:
    return replace(node, factory=make)


def _pace(below: Callable[[Nanos], Pace | None], options: ViewOptions, delay: Nanos) -> Pace | None:
    """After a fault, a member that comes back needs another view, and its state.

    A donor may be lost on the way; then it needs a further one.
    """
    pace = below(delay)
    if pace is None:
        return None
    more = 2 * (pace.delivery_ns + 4 * options.heartbeat_ns + 8 * delay)
    return Pace(pace.delivery_ns, pace.recovery_ns + more)

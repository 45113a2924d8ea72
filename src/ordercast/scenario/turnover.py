"""Draws the changes of members of a swarm's scenario: who joins and leaves which group, and when.

Where members agree on views, only receivers that were in no group at the start come and go: what is enough of
a group to go on then depends on its members at the start. Otherwise all do, but the first member of each
group stays. A group without members has none that stays.
"""

from random import Random

from ordercast.core import GroupId, Membership, NodeId, Plan
from ordercast.scenario.changes import ChangeSpec, Join, Leave
from ordercast.scenario.crashes import Phase

SHARE = 0.4
"""The share of seeds in which receivers join and leave, if the protocol allows it."""
CHANGES = (1, 2, 4, 8)
"""How many changes a seed has; a seed takes one of them."""
JOINERS = (0, 1, 1, 2)
"""How many receivers are in no group at the start."""


def draw_joiners(plan: Plan, rng: Random) -> int | None:
    """How many receivers join later; None if nobody joins or leaves in this seed."""
    if plan.guarantees.membership is Membership.FIXED or rng.random() >= SHARE:
        return None
    count = rng.choice(JOINERS)
    return max(1, count) if plan.guarantees.membership is Membership.VIEWS else count


def draw_changes(plan: Plan, phase: Phase, rng: Random) -> list[ChangeSpec]:
    """Joins and leaves in order of time, each of which makes sense after the others."""
    inside = {(node, group) for group, members in plan.groups.items() for node in members}
    movable = _movable(plan)
    changes: list[ChangeSpec] = []
    for at_ms in sorted(phase.strike(rng) for _ in range(rng.choice(CHANGES) if movable else 0)):
        node, group = rng.choice(movable)
        kind = Leave if (node, group) in inside else Join
        changes.append(kind(at_ms=at_ms, node=node, group=group))
        inside ^= {(node, group)}
    return changes


def _movable(plan: Plan) -> list[tuple[NodeId, GroupId]]:
    """The receivers that may join or leave a group."""
    receivers = set(plan.joiners)
    if plan.guarantees.membership is Membership.SUBSCRIPTIONS:
        receivers.update(*plan.groups.values())
    return [
        (node, group)
        for node in sorted(receivers)
        for group, members in plan.groups.items()
        if (not members or node != members[0]) and plan.homes.get(node, group) == group
    ]

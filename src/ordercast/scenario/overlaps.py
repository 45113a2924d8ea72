"""Draws the groups of a swarm's scenario, for protocols that promise one order where groups overlap."""

from random import Random

from ordercast.core import Membership, NodeId, Order, Plan

SHARE = 0.8
"""The share of seeds with such groups; the others have those of any protocol."""
GROUPS_MAX = 6
RECEIVERS_MAX = 8
EMPTY_SHARE = 0.2
"""The share of these seeds in which a group has no receiver at the start, if receivers subscribe."""


def draw_overlaps(plan: Plan, rng: Random) -> tuple[tuple[NodeId, ...], ...]:
    """The receivers of each group; nothing if the seed keeps the groups that it has."""
    if plan.guarantees.order is not Order.OVERLAPS or rng.random() >= SHARE:
        return ()
    everyone = range(rng.randint(2, RECEIVERS_MAX))
    count = rng.randint(2, GROUPS_MAX)
    groups = [set(rng.sample(everyone, rng.randint(1, len(everyone)))) for _ in range(count)]
    if plan.guarantees.membership is Membership.SUBSCRIPTIONS and rng.random() < EMPTY_SHARE:
        groups[rng.randrange(count)].clear()
    receiving = [members for members in groups if members]
    for node in sorted(set(everyone).difference(*groups)):
        rng.choice(receiving).add(node)
    return tuple(tuple(sorted(members)) for members in groups)

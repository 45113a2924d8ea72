"""Which members should be active, if all rates and delays are known: the heuristic of Figure 2."""

from collections.abc import Mapping
from typing import NamedTuple

from ordercast.core import LocalError, Nanos, NodeId

Delays = Mapping[tuple[NodeId, NodeId], Nanos]
"""The delay from one node to another; symmetric pairs need only one direction."""


class Assignment(NamedTuple):
    """The active members, and the sequencer of each passive one."""

    actives: tuple[NodeId, ...]
    sequencers: dict[NodeId, NodeId]


def prefers_active(interval: Nanos, delay: Nanos) -> bool:
    """Whether a member should be active: D + t < 2 D, so it sends faster than a ticket would come back."""
    return delay + interval < 2 * delay


def assign(intervals: Mapping[NodeId, Nanos], delays: Delays) -> Assignment:
    """The roles of members with these times between two messages, and these delays between them.

    The fastest sender begins as the only active member. Each passive member for which it is better to be
    active becomes active, until none is left.
    """
    if not intervals:
        raise LocalError("an assignment of roles needs at least one member")
    actives = [min(intervals, key=lambda node: (intervals[node], node))]
    sequencers: dict[NodeId, NodeId] = {}
    changed = True
    while changed:
        changed = False
        for node in sorted(set(intervals).difference(actives)):
            nearest = min(actives, key=lambda active: (_delay(delays, node, active), active))
            if prefers_active(intervals[node], _delay(delays, node, nearest)):
                actives.append(node)
                sequencers.pop(node, None)
                changed = True
            else:
                sequencers[node] = nearest
    return Assignment(tuple(sorted(actives)), sequencers)


def _delay(delays: Delays, one: NodeId, other: NodeId) -> Nanos:
    found = delays.get((one, other), delays.get((other, one)))
    if found is None:
        raise LocalError(f"the delay between nodes {one} and {other} is not given")
    return found

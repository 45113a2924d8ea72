"""When a member should change its mode: the local heuristic of section 6.2.

A member whose messages come faster than the delay to the closest active member should be active; one whose
messages come slower should be passive. Nothing is done while the two are closer than a share of the delay.
"""

from enum import Enum

from ordercast.core import Nanos


class Wish(Enum):
    """What a member wants to be."""

    STAY = "stay"
    ACTIVE = "active"
    PASSIVE = "passive"
    NEARER = "nearer sequencer"


def wish(active: bool, interval: Nanos | None, delay: Nanos | None, threshold: float) -> Wish:
    """What to do, by the time between own messages and the delay to the closest other active member."""
    if interval is None or delay is None:
        return Wish.STAY
    margin = int(threshold * delay)
    if active:
        return Wish.PASSIVE if interval > delay + margin else Wish.STAY
    return Wish.ACTIVE if interval < delay - margin else Wish.STAY


def is_nearer(delay: Nanos | None, current: Nanos | None, threshold: float) -> bool:
    """Whether another sequencer is so much nearer than the current one that a change is worth it."""
    return delay is not None and current is not None and delay < current - int(threshold * current)

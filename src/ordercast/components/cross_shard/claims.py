"""What a coordinator may claim: clocks that there can be.

A message with a clock in the far future would come behind all others for ever, and a promise or a decision
about one would never be forgotten.
"""

from ordercast.components.cross_shard.messages import Floors, FoundMessages, Gone, Question
from ordercast.core import SECOND, Message, Nanos, NodeId, RemoteError, named

NEVER = (1 << 63) - 1
"""A group without replicas lacks nothing up to this clock."""
CLOCK_AHEAD_MAX: Nanos = 366 * 86_400 * SECOND
"""Clocks are wrong, but not by more than a year."""


def check_rulings(source: NodeId, message: Message, now: Nanos) -> None:
    """Refuse a message that no correct coordinator sends."""
    latest = now + CLOCK_AHEAD_MAX
    match message:
        case FoundMessages():
            clocks = [entry.clock for entry in message.entries]
        case Gone() | Question():
            clocks = [loss.bound for loss in message.losses]
        case Floors():
            clocks = [clock for clock in message.clocks if clock != NEVER]
        case _:
            clocks = []
    far = max(clocks, default=0)
    if far > latest:
        raise RemoteError(f"node {source} sent {named(message)} up to {far}, too far ahead of {now}")

"""Holes: who lacks what others delivered, where agreement is promised with a probability only.

A hole breaks no promise of such a run, but whoever runs it wants to know how many there are, and where. So
they are counted at the end of a run that is complete, or not complete only because nodes were missing at its
end, and never condemned. A receiver of a message's groups has a hole if it never delivered the message, in
its place or tagged as out of order, in any of its lives, and another receiver did. Holes of receivers that
were down at the end, or that came back without their state, are told apart: those were not there all the
time, and owe only what was broadcast while they were, which a trace without the protocol's own knowledge
cannot tell exactly.
"""

from typing import Literal

import msgspec

from ordercast.core import MessageId, NodeId

NAMED_MAX = 5
"""How many of its holes are named for a node; the others are counted."""

Standing = Literal["stayed", "down", "lost"]
"""Of a receiver: it was up at the end and never lost its state; it was down; it had come back without it."""


class NodeHoles(msgspec.Struct, frozen=True):
    """The holes of one receiver."""

    node: NodeId
    standing: Standing
    count: int
    messages: tuple[MessageId, ...]
    """The first ones, by submission."""


class Holes(msgspec.Struct, frozen=True):
    """All holes of a run: receivers that have any, ascending."""

    nodes: tuple[NodeHoles, ...] = ()
    nowhere: int = 0
    """Messages that no receiver delivered: their senders crashed, or they came too late everywhere."""

    @property
    def count(self) -> int:
        """The holes of receivers that stayed."""
        return sum(found.count for found in self.nodes if found.standing == "stayed")

    @property
    def elsewhere(self) -> int:
        """The holes of the others."""
        return sum(found.count for found in self.nodes) - self.count

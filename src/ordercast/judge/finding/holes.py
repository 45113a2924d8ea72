"""Holes: messages that a receiver never delivered but another did, where agreement is only probabilistic.

A hole breaks no promise of such a run, but users want to know how many there are, and where. So holes are
counted, and never reported as violations. They are counted at the end of a run that is complete, or that is
not complete only because nodes were missing at its end. A receiver of a message's groups has a hole if it
never delivered the message, in its place or tagged as out of order, in any of its lives, and another receiver
did. Receivers that were down at the end, or that came back without their state, are listed separately: they
owe only messages that were broadcast while they took part, and a trace does not say exactly which those are.
"""

from typing import Literal

import msgspec

from ordercast.core import MessageId, NodeId

NAMED_MAX = 5
"""How many holes are named for a node; the others are only counted."""

Standing = Literal["stayed", "down", "lost"]
"""A receiver stayed (up at the end, state never lost), was down at the end, or had lost its state."""


class NodeHoles(msgspec.Struct, frozen=True):
    """The holes of one receiver."""

    node: NodeId
    standing: Standing
    count: int
    messages: tuple[MessageId, ...]
    """The first missing messages, in order of submission."""


class Holes(msgspec.Struct, frozen=True):
    """All holes of a run: the receivers that have holes, in ascending order."""

    nodes: tuple[NodeHoles, ...] = ()
    nowhere: int = 0
    """Number of messages that no receiver delivered: the sender crashed, or they came too late everywhere."""

    @property
    def count(self) -> int:
        """The number of holes of receivers that stayed."""
        return sum(found.count for found in self.nodes if found.standing == "stayed")

    @property
    def elsewhere(self) -> int:
        """The number of holes of all other receivers."""
        return sum(found.count for found in self.nodes) - self.count

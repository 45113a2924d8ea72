"""Holes: who lacks what others delivered, where agreement is promised with a probability only.

A hole breaks no promise of such a run, but whoever runs it wants to know how many there are, and where. So
they are counted at the end of a run that is complete, or not complete only because nodes were missing at its
end, and never condemned. A receiver of a message's groups has a
hole if it never delivered the message, in its place or tagged as out of order, in any of its lives, and
another receiver did. Holes of receivers that were down at the end, or that came back without their state, are
told apart: those were not there all the time, and owe only what was broadcast while they were (EpTO, section
5.4), which a trace without the protocol's own knowledge cannot tell exactly.
"""

from typing import Literal

import msgspec

from ordercast.core import MessageId, NodeId
from ordercast.judge.online.ledger import Ledger
from ordercast.judge.online.oracle import Handler
from ordercast.trace import Kind, RunDescription

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


class HoleCount:
    """Counts the holes of a run, fed event by event like an oracle behind the gate."""

    def __init__(self, description: RunDescription) -> None:
        self._description = description
        self._ledger = Ledger(description)

    def handlers(self) -> dict[Kind, Handler]:
        """Whatever the account needs."""
        return self._ledger.handlers()

    def holes(self) -> Holes:
        """What is missing where, as of now."""
        ledger = self._ledger
        lacked: dict[NodeId, list[MessageId]] = {node.id: [] for node in self._description.nodes}
        nowhere = 0
        for message, submission in ledger.submissions.items():
            receivers = ledger.receivers(submission.groups)
            without = [node for node in receivers if message not in ledger.delivered[node]]
            if len(without) == len(receivers):
                nowhere += 1
                continue
            for node in without:
                lacked[node].append(message)
        found = (
            NodeHoles(node, self._standing(node), len(messages), tuple(messages[:NAMED_MAX]))
            for node, messages in sorted(lacked.items())
            if messages
        )
        return Holes(tuple(found), nowhere)

    def _standing(self, node: NodeId) -> Standing:
        population = self._ledger.population
        if node in population.down:
            return "down"
        return "lost" if node in population.lost else "stayed"

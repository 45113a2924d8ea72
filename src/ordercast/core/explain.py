"""Explanations: why a process has not delivered something yet.

A wait says what waits (the *subject*), what it waits for (the *blocker*), and since when. The blocker is a
phrase that reads well after "waits for": "a timestamp from group 1", "the clock of sequencer 2, which is at 8
and must reach 10". A sentence such as "node 0 has not said it" does not: "waits for node 0 has not said it".
If other nodes can end the wait, `on` names them. Their own waits say why they have not, so that one can go
from a receiver that waits to the cause (`chain.py`).
"""

import msgspec

from ordercast.core.delivery import Stamp
from ordercast.core.ids import Groups, NodeId
from ordercast.core.time import Nanos


class Wait(msgspec.Struct, frozen=True):
    """One thing that waits, what it waits for, and since when on the node's own clock."""

    subject: str
    blocker: str
    """A phrase that reads well after "waits for"."""
    since: Nanos
    payload: bytes | None = None
    """The bundle that waits, if the process holds it. A driver can unpack its messages."""
    stable: float | None = None
    """The probability that all nodes that should know it do know it, if the process can tell."""
    groups: Groups | None = None
    """The groups of the bundle, if it may be for other nodes than this one."""
    stamp: Stamp | None = None
    """The place of the bundle in the order, if it is known before the delivery."""
    on: tuple[NodeId, ...] = ()
    """The nodes that can end the wait, if the process knows them."""


class Explanation(msgspec.Struct, frozen=True):
    """A process's state in words, and everything in it that waits, oldest first."""

    state: dict[str, str | int]
    waits: tuple[Wait, ...] = ()
    behind: str = ""
    """What the process lacks before it takes full part, as after a restart: a leader, or missed messages. A
    phrase that reads well after "waits for"; empty if it lacks nothing. A rolling restart waits for that."""

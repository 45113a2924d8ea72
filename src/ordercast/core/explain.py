"""Explanations: why a process has not delivered something yet."""

import msgspec

from ordercast.core.delivery import Stamp
from ordercast.core.ids import Groups
from ordercast.core.time import Nanos


class Wait(msgspec.Struct, frozen=True):
    """One thing that waits, what it waits for, and since when on the node's own clock."""

    subject: str
    blocker: str
    since: Nanos
    payload: bytes | None = None
    """The bundle that waits, if the process holds it. A driver can unpack its messages."""
    stable: float | None = None
    """The probability that all nodes that should know it do know it, if the process can tell."""
    groups: Groups | None = None
    """The groups of the bundle, if it may be for other nodes than this one."""
    stamp: Stamp | None = None
    """The place of the bundle in the order, if it is known before the delivery."""


class Explanation(msgspec.Struct, frozen=True):
    """A process's state in words, and everything in it that waits, oldest first."""

    state: dict[str, str | int]
    waits: tuple[Wait, ...] = ()

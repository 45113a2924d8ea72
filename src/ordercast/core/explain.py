"""What a process says of itself when asked why something is not delivered yet."""

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
    """The packet that waits, where the process holds it: a driver can unpack which messages it carries."""
    stable: float | None = None
    """The probability that all who should know of it do, where the process can tell."""
    groups: Groups | None = None
    """Where the packet goes, if it may be for others than this node."""
    stamp: Stamp | None = None
    """The packet's place in the order, where it is known before the delivery."""


class Explanation(msgspec.Struct, frozen=True):
    """A process's state in words, and everything in it that waits, oldest first."""

    state: dict[str, str | int]
    waits: tuple[Wait, ...] = ()

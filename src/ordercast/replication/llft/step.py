"""What a performer keeps of the operations of its group: those to be performed."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.replication.llft.connection import Kept
from ordercast.replication.llft.names import Link
from ordercast.replication.llft.orders import AnyEntry


class Step(NamedTuple):
    """An operation that is to be performed."""

    place: int
    entry: AnyEntry
    link: Link | None
    """The connection of the message that is delivered."""
    kept: Kept | None
    """This message."""
    ends: tuple[Link, ...]
    """The connections that end here."""


def assemble(partial: list[bytes], kept: Kept) -> bytes | None:
    """The whole message, with its fragments before this one; None if more follow."""
    partial.append(kept.payload)
    if kept.more:
        return None
    whole = b"".join(partial)
    partial.clear()
    return whole

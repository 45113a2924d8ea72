"""What a member knows of and has not delivered yet, for applications that need not always wait.

Where an order takes long to become certain, much of it is certain early: EpTO (section 8.4) tells for each
known event how probable it is that all peers know it. An application that can undo, or to which that much is
enough, looks at what is pending and acts on it before it is delivered.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ordercast.core import (
    Explanation,
    GroupId,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Stamp,
    Wait,
    message_name,
    message_sender,
)
from ordercast.core.bundle import unpack

PENDING_MAX = 1_000
"""Messages that are told of, unless more are asked for."""


class Pending(NamedTuple):
    """A message that has come and is not delivered yet."""

    message: MessageId
    payload: bytes
    sender: NodeId
    stamp: Stamp | None
    """Its place in the protocol's order, where that is known already."""
    submitted_ns: Nanos
    """When it was sent, by the clock of its sender."""
    stable: float | None
    """The probability that all who should know of it do, at least; None where the protocol cannot tell."""
    blocker: str
    """What its delivery waits for, in words."""

    @property
    def name(self) -> str:
        """Its identity as people write it: ``3#17``."""
        return message_name(self.message)


def pending_messages(explanation: Explanation, group: GroupId, limit: int) -> list[Pending]:
    """The messages to a group that wait at a node, the first ones."""
    held = [wait for wait in explanation.waits if wait.payload is not None and _is_for(wait, group)]
    found: list[Pending] = []
    for wait in sorted(held, key=_place):
        found += _messages(wait)
        if len(found) >= limit:
            break
    return found[: max(0, limit)]


def _is_for(wait: Wait, group: GroupId) -> bool:
    return wait.groups is None or group in wait.groups


def _place(wait: Wait) -> tuple[bool, int, int]:
    """What has a place comes by its place, then the rest as it was told."""
    stamp = wait.stamp
    return (True, 0, 0) if stamp is None else (False, stamp.clock, stamp.issuer)


def _messages(wait: Wait) -> Iterator[Pending]:
    assert wait.payload is not None
    try:
        items = unpack(wait.payload)
    except RemoteError:  # a peer may have sent what is no bundle; it will be counted when it is delivered
        return
    for message, submitted, payload in items:
        sender = message_sender(message)
        yield Pending(message, payload, sender, wait.stamp, submitted, wait.stable, wait.blocker)

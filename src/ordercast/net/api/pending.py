"""Messages that a member knows and has not delivered yet, for applications that need not always wait.

An order may take long to become certain while much of it is nearly certain early: EpTO (section 8.4) tells
for each known event how probable it is that all peers know it. An application that can undo its actions, or
that accepts this probability, can act on pending messages before they are delivered.
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
"""How many messages are returned by default."""


class Pending(NamedTuple):
    """A message that has arrived and is not delivered yet."""

    message: MessageId
    payload: bytes
    sender: NodeId
    stamp: Stamp | None
    """Its place in the protocol's order, if that is known already."""
    submitted_ns: Nanos
    """When it was sent, by the clock of its sender."""
    stable: float | None
    """The least probability that all who should know it do; None if the protocol cannot tell."""
    blocker: str
    """What its delivery waits for, in words."""

    @property
    def name(self) -> str:
        """Its identity as people write it: ``3#17``."""
        return message_name(self.message)


def pending_messages(explanation: Explanation, group: GroupId, limit: int) -> list[Pending]:
    """The first messages to a group that wait at a node."""
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
    """Messages with a place in the order come first, by place; then the others as they came."""
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

"""What EpTO's peers send each other."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Groups, Message, NodeId, Payload, message_types
from ordercast.core.ids import NODE_MAX

CLOCK_MAX = 1 << 62
EVENTS_MAX = 1 << 16
TTL_MAX = 250
"""More rounds than any size of system needs; the array engine keeps ages in bytes."""
BALL_BYTES = 1 << 20
"""A larger ball is sent in several parts; a payload of the largest size still fits into one."""
EVENT_OVERHEAD_BYTES = 64

Timestamp: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=CLOCK_MAX)]
Ttl: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=TTL_MAX)]
Source: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NODE_MAX)]

Key: TypeAlias = tuple[int, NodeId, int]
"""An event's place in the order, and its identity: timestamp, source, and the source's own number.

The paper orders by timestamp and source. The number decides where one source uses a timestamp twice, which
one that came back without its memory may do.
"""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A broadcast event. Its age differs between peers, so the age travels beside it."""

    ts: Timestamp
    source: Source
    number: Timestamp
    groups: Groups
    payload: Payload

    @property
    def key(self) -> Key:
        """Its place in the order."""
        return (self.ts, self.source, self.number)


class Ball(Message, frozen=True, tag=1):
    """Events that a peer received in its last round, each with the number of its relays."""

    ttls: Annotated[tuple[Ttl, ...], msgspec.Meta(max_length=EVENTS_MAX)]
    events: Annotated[tuple[Event, ...], msgspec.Meta(max_length=EVENTS_MAX)]


class Hello(Message, frozen=True, tag=2):
    """A peer that has just started asks for the logical time."""


class LogicalTime(Message, frozen=True, tag=3):
    """The answer: the logical time."""

    clock: Timestamp


MESSAGES = message_types(Ball, Hello, LogicalTime)

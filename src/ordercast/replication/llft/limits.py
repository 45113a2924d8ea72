"""What another node may claim: places, indexes, timestamps, views and births that there can be.

A claim beyond is refused before it changes anything. Otherwise one message about a place or a view in the far
future would keep a group from ever going on.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.core import Message, Nanos, NodeId, RemoteError
from ordercast.replication.llft.messages import (
    FirstAck,
    Head,
    KeepAlive,
    Letter,
    ProposeBackup,
    StateOffer,
)
from ordercast.replication.llft.names import Link
from ordercast.replication.llft.orders import MessageOrder, RoundOrder, SendOrder, Slice

COUNT_AHEAD_MAX = 1 << 32
"""No correct node is so many messages, places, views or members ahead."""
TIME_AHEAD_MAX: Nanos = 1 << 56
"""Connection numbers and births come from clocks, which may be wrong, but not by more than two years."""
STATE_BYTES_MAX = 1 << 34
"""No service has a larger state."""


def check_claims(source: NodeId, message: Message, known: int, now: Nanos) -> None:
    """Refuse a message that no correct node sends; `known` is the highest count that this node knows of."""
    most = known + COUNT_AHEAD_MAX
    match message:
        case Letter():
            _check(source, message, (message.index, message.timestamp), most)
            _check_head(source, message.head, most, now)
        case FirstAck() | KeepAlive():
            _check_head(source, message.head, most, now)
        case ProposeBackup():
            _check(source, message, (*message.known, message.birth - now - TIME_AHEAD_MAX), most)
        case StateOffer():
            _check(source, message, (*message.view, message.place), most)
            if message.size > STATE_BYTES_MAX:
                raise RemoteError(f"node {source} offers a state of {message.size} bytes")
        case _:
            _walk(source, message, message, most, now)


def _check(source: NodeId, message: object, counts: Iterable[int], most: int) -> None:
    if max(counts) > most:
        raise RemoteError(f"node {source} claims {max(counts)} in a {type(message).__name__}: too far ahead")


def _check_head(source: NodeId, head: Head, most: int, now: Nanos) -> None:
    counts = (head.base, head.last, head.ack, head.room, head.back, head.timestamp, *head.view)
    _check(source, head, counts if head.ack_view is None else (*counts, *head.ack_view), most)
    for part in (head.orders, head.reflected):
        if part is not None:
            check_part(source, part, most, now)


def check_part(source: NodeId, part: Slice, most: int, now: Nanos) -> None:
    """Refuse ordering information that no correct member makes: too far ahead, or at odds with itself."""
    end = part.after
    latest = now + TIME_AHEAD_MAX
    for entry in part.entries:
        if isinstance(entry, MessageOrder):
            end += entry.count
            if entry.first > most or (isinstance(entry.link, Link) and entry.link.number > latest):
                raise RemoteError(f"node {source} sent ordering information about {entry}, too far ahead")
        elif isinstance(entry, RoundOrder):
            end += len(entry.links)
        else:
            end += 1
            _walk(source, part, entry, most, now)
            if isinstance(entry, SendOrder) and entry.time_ns > latest:
                raise RemoteError(f"node {source} sent ordering information about {entry}, too far ahead")
    _check(source, part, (part.begin, end, part.safe, part.settled, *part.view), most)
    if part.begin > end + 1 or part.safe > end:
        raise RemoteError(f"node {source} sent ordering information that is at odds with itself")


def _walk(source: NodeId, message: object, value: object, most: int, now: Nanos) -> None:
    """Check all counts inside a value."""
    match value:
        case Slice():
            check_part(source, value, most, now)
        case Link():
            if value.number > now + TIME_AHEAD_MAX:
                raise RemoteError(f"node {source} names connection {value}, which is far in the future")
        case bool() | bytes() | str() | None:
            pass
        case int():
            _check(source, message, (value,), most)
        case tuple():
            for part in value:
                _walk(source, message, part, most, now)
        case msgspec.Struct():
            for name in value.__struct_fields__:
                if name not in _OTHERS:
                    _walk(source, message, getattr(value, name), most, now)


_OTHERS = ("birth", "check", "message", "time_ns")
"""Fields that are no counts."""

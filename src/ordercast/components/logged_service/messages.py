"""What clients and replicas say besides calls and answers, and what a slot of the log holds."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import MALFORMED, Message, NodeId, Payload, RemoteError, Stamp, message_types

BATCH_BITS = 10
BATCH_MAX = (1 << BATCH_BITS) - 1
"""Calls in a slot. The place after the last of them belongs to no call: it is that of a restored state."""

Node: TypeAlias = Annotated[NodeId, msgspec.Meta(ge=0)]


class Forward(Message, frozen=True, tag=300):
    """Replica to leader: the call of a client that may not reach the leader. The sender will answer it."""

    call: Payload


class Redirect(Message, frozen=True, tag=301):
    """Replica to client: another replica leads. The call was forwarded."""

    leader: Node


MESSAGES = message_types(Forward, Redirect)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[bytes])


def pack_batch(calls: list[bytes]) -> bytes:
    """The value of a slot."""
    return _encoder.encode(calls)


def unpack_batch(value: bytes) -> list[bytes]:
    """The calls in a slot, or `RemoteError`."""
    try:
        calls = _decoder.decode(value)
    except MALFORMED as error:
        raise RemoteError(f"a slot holds no batch of calls: {error}") from error
    if len(calls) > BATCH_MAX:
        raise RemoteError(f"a slot holds {len(calls)} calls; the limit is {BATCH_MAX}")
    return calls


def place_in(slot: int, index: int, group: int) -> Stamp:
    """The place of a call in a slot."""
    return Stamp(slot << BATCH_BITS | index, group)


def place_before(slot: int, group: int) -> Stamp:
    """The place behind all calls of earlier slots."""
    return Stamp((slot << BATCH_BITS) - 1, group)


def slot_after(clock: int) -> int:
    """The slot that follows such a place."""
    return (clock + 1) >> BATCH_BITS

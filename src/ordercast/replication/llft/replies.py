"""What a reply carries: the results of a call, and the place at which it was executed."""

from __future__ import annotations

import msgspec

from ordercast.components.execution.messages import Place, place_of_stamp
from ordercast.core import MALFORMED, MessageId, Payload, RemoteError, Stamp


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a call."""

    first: int
    results: Payload
    place: Place


_decoder = msgspec.msgpack.Decoder(Answer)
_encoder = msgspec.msgpack.Encoder()


def pack_answer(first: MessageId, results: bytes, stamp: Stamp) -> bytes:
    """The bytes of an answer."""
    return _encoder.encode((first, results, place_of_stamp(stamp)))


def unpack_answer(payload: bytes) -> Answer:
    """The answer in some bytes, or `RemoteError`."""
    try:
        return _decoder.decode(payload)
    except MALFORMED as error:
        raise RemoteError(f"a malformed answer: {error}") from error

"""What processes send each other: immutable typed messages and their codec.

A message type is a frozen, slotted structure with a numeric tag, unique within its protocol. The codec
is built from the types alone: it accepts just what they declare, within their limits, and nothing else.
"""

from collections.abc import Sequence
from typing import Annotated, TypeAlias, Union

import msgspec

from ordercast.core.errors import MALFORMED, LocalError, RemoteError
from ordercast.core.ids import Groups

PAYLOAD_BYTES_MAX = 1 << 20
MESSAGE_DATA_MAX = 4 << 20

Payload: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
"""Opaque bytes of an application, bounded."""


Numbered: TypeAlias = tuple[int, int, Groups, tuple[int, ...]]
"""What a stamped message carries: its issuer, its clock, its groups, and the issuer's number for each."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of all protocol messages: ``class Flush(Message, frozen=True, tag=3): clock: int``.

    A protocol that notifies of drops overrides the two methods below where they apply. From them the
    simulator knows which packet a notification is about, and whether that packet had come. A protocol that
    overrides neither runs as well, but then the reasons of its notifications cannot be checked.
    """

    def numbered(self) -> Numbered | None:
        """For a message that receivers deliver: its stamp. None for all others."""
        return None

    def closes(self) -> tuple[int, ...]:
        """Issuers that are being removed: whoever hears this may refuse what comes from them."""
        return ()


class Codec:
    """Messages of one protocol to bytes and back."""

    __slots__ = ("_decoder", "_encoder", "types")

    def __init__(self, types: Sequence[type[Message]]) -> None:
        tags = [kind.__struct_config__.tag for kind in types]
        if not types or None in tags or len(set(tags)) != len(tags):
            names = ", ".join(f"{kind.__name__}={tag}" for kind, tag in zip(types, tags, strict=True))
            raise LocalError(f"a codec needs message types with different tags, got: {names}")
        self.types = tuple(types)
        self._encoder = msgspec.msgpack.Encoder()
        try:
            self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(
                Union[self.types]  # noqa: UP007  (a union made at run time cannot be written with |)
            )
        except (TypeError, ValueError) as error:
            raise LocalError(
                f"cannot build a codec for these message types: {_culprit(self.types) or error}"
            ) from error

    def encode(self, message: Message) -> bytes:
        """The bytes of a message; refuses types that the protocol did not declare."""
        if type(message) not in self.types:
            raise LocalError(f"{type(message).__name__} is not a message of this protocol")
        return self._encoder.encode(message)

    def decode(self, data: bytes | bytearray | memoryview) -> Message:
        """The message in some bytes of a peer, or `RemoteError`."""
        if len(data) > MESSAGE_DATA_MAX:
            raise RemoteError(
                f"protocol message of {len(data)} bytes is too large; the limit is {MESSAGE_DATA_MAX} bytes"
            )
        try:
            return self._decoder.decode(data)
        except MALFORMED as error:
            raise RemoteError(f"malformed packet: {error}") from error


def _culprit(types: Sequence[type[Message]]) -> str:
    """The first of some message types that has no codec, and why; empty if each alone has one."""
    for kind in types:
        try:
            msgspec.msgpack.Decoder(kind)
        except (TypeError, ValueError) as error:
            return f"{kind.__module__}.{kind.__qualname__}: {error}"
    return ""

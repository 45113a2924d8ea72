"""The requests of the control socket, as they are written and read."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import LocalError, MessageId, NodeId
from ordercast.net.transports.impair import Impairment

LINE_BYTES_MAX = 2 << 20
"""Room for the largest application message in base64."""
PAYLOADS_MAX = 10_000

GroupName: TypeAlias = str | int


class Request(msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True):
    """Base of all requests; the field `do` says which."""


class Status(Request, frozen=True, tag="status"):
    """Who are you, and how are you?"""


class ReadMetrics(Request, frozen=True, tag="metrics"):
    """What have you counted?"""


class Stop(Request, frozen=True, tag="stop"):
    """End in good order."""


class Explain(Request, frozen=True, tag="explain"):
    """What waits at your nodes, and what do you know of this message?"""

    message: MessageId | None = None


class Submit(Request, frozen=True, tag="submit"):
    """Take these messages, all or none."""

    groups: Annotated[tuple[GroupName, ...], msgspec.Meta(min_length=1)]
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=PAYLOADS_MAX)]
    """In base64."""
    node: NodeId | None = None
    """Which sender; the host's first if it is not said."""


class Tail(Request, frozen=True, tag="tail"):
    """Tell what is delivered from now on."""

    groups: tuple[GroupName, ...] = ()
    node: NodeId | None = None
    """Which receiver; the host's first of these groups if it is not said."""
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """End after so many messages."""


class Impair(Request, frozen=True, tag="impair"):
    """Let datagrams come to harm from now on; only a host that was started for that does."""

    impairment: Impairment


AnyRequest: TypeAlias = Status | ReadMetrics | Stop | Explain | Submit | Tail | Impair

_decoder: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_encoder = msgspec.json.Encoder()


def decode_request(line: bytes) -> AnyRequest:
    """The request on a line, or `LocalError`."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LocalError(f"not a request: {error}") from error


def encode_line(content: object) -> bytes:
    """One line."""
    return _encoder.encode(content) + b"\n"

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
    """Asks for the identity and the state of the host."""


class ReadMetrics(Request, frozen=True, tag="metrics"):
    """Asks for the metrics of the host."""


class Stop(Request, frozen=True, tag="stop"):
    """Stops the host in good order."""


class Explain(Request, frozen=True, tag="explain"):
    """Asks what waits at the host's nodes, and what they know of a message."""

    message: MessageId | None = None


class Submit(Request, frozen=True, tag="submit"):
    """Submits messages, all or none."""

    groups: Annotated[tuple[GroupName, ...], msgspec.Meta(min_length=1)]
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=PAYLOADS_MAX)]
    """Payloads, in base64."""
    node: NodeId | None = None
    """The sending node; by default the host's first sender."""


class Tail(Request, frozen=True, tag="tail"):
    """Asks for all deliveries from now on."""

    groups: tuple[GroupName, ...] = ()
    node: NodeId | None = None
    """The receiving node; by default the host's first receiver of these groups."""
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Number of messages after which the answer ends."""


class Impair(Request, frozen=True, tag="impair"):
    """Impairs the host's datagrams from now on, if it was started with --impair."""

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
    except RecursionError as error:
        raise LocalError("not a request: it is nested too deeply") from error


def encode_line(content: object) -> bytes:
    """A value as one line of JSON."""
    return _encoder.encode(content) + b"\n"

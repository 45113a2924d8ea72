"""The requests and lines of the control socket, as they are written and read."""

import base64
from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import (
    Dropped,
    GroupId,
    LocalError,
    MessageId,
    NodeId,
    OutOfOrder,
    Stamp,
    View,
    message_name,
)
from ordercast.net.feed import Lost
from ordercast.net.host import Batch, Heard

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


AnyRequest: TypeAlias = Status | ReadMetrics | Stop | Explain | Submit | Tail

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


def feed_lines(
    heard: Heard | Lost, group_names: Mapping[GroupId, str], limit: int | None = None
) -> Iterator[tuple[bytes, int]]:
    """The lines of something delivered, each with the number of messages that it tells of."""
    if isinstance(heard, Lost):
        yield encode_line({"lost": int(heard)}), 0
    elif isinstance(heard, Dropped):
        place = {"issuer": heard.issuer, "number": heard.number, "config": heard.config}
        yield encode_line({"dropped": {"group": _name(heard.group, group_names), **place}}), 0
    elif isinstance(heard, View):
        yield encode_line({"view": _view(heard, group_names)}), 0
    else:
        for content in _messages(heard, group_names, limit):
            yield encode_line(content), 1


def _messages(
    batch: Batch, group_names: Mapping[GroupId, str], limit: int | None
) -> Iterator[dict[str, object]]:
    delivery, bundle = batch.delivery, batch.bundle
    common: dict[str, object] = {
        "groups": [_name(group, group_names) for group in delivery.groups],
        "config": delivery.config,
        **_stamp(delivery.stamp),
    }
    if isinstance(delivery, OutOfOrder):
        common["out_of_order"] = True
    for index, (time, payload) in enumerate(zip(bundle.times, bundle.payloads, strict=True)):
        if limit is not None and index >= limit:
            return
        yield {
            "message": message_name(bundle.first + index),
            "sender": delivery.sender,
            "payload": base64.b64encode(payload).decode("ascii"),
            "latency_ns": max(0, batch.now - time),
            **common,
        }


def _view(view: View, group_names: Mapping[GroupId, str]) -> dict[str, object]:
    return {
        "group": _name(view.group, group_names),
        "config": view.config,
        "members": view.members,
        "note": view.note,
        "change": view.change,
        **_stamp(view.stamp),
    }


def _stamp(stamp: Stamp | None) -> dict[str, object]:
    return {} if stamp is None else {"clock": stamp.clock, "issuer": stamp.issuer, "numbers": stamp.numbers}


def _name(group: GroupId, group_names: Mapping[GroupId, str]) -> GroupName:
    return group_names.get(group, group)

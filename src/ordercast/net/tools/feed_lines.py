"""What a receiver delivers, as lines of JSON."""

import base64
from collections.abc import Iterator, Mapping

import msgspec

from ordercast.core import GroupId, Notice, Stamp, message_name
from ordercast.net.host.heard import Batch, Heard
from ordercast.net.tools.feed import Lost
from ordercast.net.tools.requests import GroupName, encode_line
from ordercast.trace import KIND_OF, ORDERED


def feed_lines(
    heard: Heard | Lost, group_names: Mapping[GroupId, str], limit: int | None = None
) -> Iterator[tuple[bytes, int]]:
    """The lines of something delivered, each with the number of messages that it tells of."""
    if isinstance(heard, Lost):
        yield encode_line({"lost": int(heard)}), 0
    elif isinstance(heard, Notice):
        yield encode_line({type(heard).__name__.lower(): _notice(heard, group_names)}), 0
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
    kind = KIND_OF[type(delivery)]
    if kind not in ORDERED:
        common[kind.replace("-", "_")] = True
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


def _notice(notice: Notice, group_names: Mapping[GroupId, str]) -> dict[str, object]:
    """The fields of a notice, its group by name and its stamp taken apart."""
    fields: dict[str, object] = msgspec.structs.asdict(notice)
    stamp = fields.pop("stamp", None)
    fields["group"] = _name(notice.group, group_names)
    return fields | (_stamp(stamp) if isinstance(stamp, Stamp) else {})


def _stamp(stamp: Stamp | None) -> dict[str, object]:
    return {} if stamp is None else {"clock": stamp.clock, "issuer": stamp.issuer, "numbers": stamp.numbers}


def _name(group: GroupId, group_names: Mapping[GroupId, str]) -> GroupName:
    return group_names.get(group, group)

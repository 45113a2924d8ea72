"""Deliveries as lines of JSON."""

import base64
from collections.abc import Iterator, Mapping

import msgspec

from ordercast.core import GroupId, Notice, Stamp, message_name
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.tools.feed import Lost
from ordercast.net.tools.requests import GroupName, encode_line
from ordercast.trace import KIND_OF, ORDERED

SHOWN_BYTES_MAX = 1 << 20
"""Of larger bytes, such as a state, a line has only the size."""


def feed_lines(
    delivered: BundleOrNotice | Lost, group_names: Mapping[GroupId, str], limit: int | None = None
) -> Iterator[tuple[bytes, int]]:
    """The lines of a delivery, each with the number of messages on it."""
    if isinstance(delivered, Lost):
        yield encode_line({"lost": int(delivered)}), 0
    elif isinstance(delivered, Notice):
        yield encode_line({type(delivered).__name__.lower(): _notice(delivered, group_names)}), 0
    else:
        for content in _messages(delivered, group_names, limit):
            yield encode_line(content), 1


def _messages(
    delivered: DeliveredBundle, group_names: Mapping[GroupId, str], limit: int | None
) -> Iterator[dict[str, object]]:
    delivery, bundle = delivered.delivery, delivered.bundle
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
            "latency_ns": max(0, delivered.now - time),
            **common,
        }


def _notice(notice: Notice, group_names: Mapping[GroupId, str]) -> dict[str, object]:
    """The fields of a notice, its group by name and its stamp taken apart."""
    fields: dict[str, object] = {
        name: f"{len(value)} bytes" if isinstance(value, bytes) and len(value) > SHOWN_BYTES_MAX else value
        for name, value in msgspec.structs.asdict(notice).items()
    }
    stamp = fields.pop("stamp", None)
    fields["group"] = _name(notice.group, group_names)
    return fields | (_stamp(stamp) if isinstance(stamp, Stamp) else {})


def _stamp(stamp: Stamp | None) -> dict[str, object]:
    return {} if stamp is None else {"clock": stamp.clock, "issuer": stamp.issuer, "numbers": stamp.numbers}


def _name(group: GroupId, group_names: Mapping[GroupId, str]) -> GroupName:
    return group_names.get(group, group)

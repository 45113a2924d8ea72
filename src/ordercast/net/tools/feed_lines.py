"""What a receiver delivers, as lines of JSON."""

import base64
from collections.abc import Iterator, Mapping

from ordercast.core import Dropped, GroupId, OutOfOrder, Stamp, View, message_name
from ordercast.net.host.heard import Batch, Heard
from ordercast.net.tools.feed import Lost
from ordercast.net.tools.requests import GroupName, encode_line


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

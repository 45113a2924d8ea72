"""Application messages inside the payload that a protocol orders.

The unit a protocol orders is a packet, and a packet may carry many application messages: the driver
packs what piled up while it was busy, and unpacks after delivery. Layout, little-endian: version (1
byte), count (2 bytes), a table of (identity, time of submission, length) and then the messages' bytes
end to end. One table at the head reads faster than a header before each message.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from ordercast.core.errors import LocalError, RemoteError
from ordercast.core.ids import MessageId
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.core.time import Nanos

VERSION = 1
BUNDLE_MESSAGES_MAX = 0xFFFF

_HEAD = Struct("<BH")
_ENTRY = Struct("<QQI")
_SINGLE = Struct("<BHQQI")

MESSAGE_BYTES_MAX = PAYLOAD_BYTES_MAX - _SINGLE.size
"""The largest application message: one that fills a packet alone."""


# The constructor of a named tuple costs twice as much as that of the tuple it is.
_item = tuple.__new__


class Item(NamedTuple):
    """One application message."""

    message: MessageId
    submitted_ns: Nanos
    payload: bytes


def bundle_size(payload_bytes: int) -> int:
    """How many bytes a message of this size takes in a bundle, the bundle's head not counted."""
    return _ENTRY.size + payload_bytes


def pack(items: Sequence[Item]) -> bytes:
    """Put messages into one payload."""
    if len(items) == 1:
        message, submitted, payload = items[0]
        packed = _SINGLE.pack(VERSION, 1, message, submitted, len(payload)) + payload
    else:
        if not 0 < len(items) <= BUNDLE_MESSAGES_MAX:
            raise LocalError(f"a bundle holds 1 to {BUNDLE_MESSAGES_MAX} messages, not {len(items)}")
        table = [_ENTRY.pack(item.message, item.submitted_ns, len(item.payload)) for item in items]
        packed = b"".join((_HEAD.pack(VERSION, len(items)), *table, *(item.payload for item in items)))
    if len(packed) > PAYLOAD_BYTES_MAX:
        raise LocalError(f"bundle of {len(packed)} bytes, the limit is {PAYLOAD_BYTES_MAX}")
    return packed


def unpack(packed: bytes) -> list[Item]:
    """Take the messages out of a payload, or raise `RemoteError`."""
    if len(packed) >= _SINGLE.size:  # one message alone is the common case, and has a short way
        version, count, message, submitted, length = _SINGLE.unpack_from(packed)
        if count == 1 and version == VERSION and len(packed) == _SINGLE.size + length:
            return [_item(Item, (message, submitted, packed[_SINGLE.size :]))]
    if len(packed) < _HEAD.size:
        raise RemoteError(f"bundle of {len(packed)} bytes is shorter than its head")
    version, count = _HEAD.unpack_from(packed)
    if version != VERSION or count == 0:
        raise RemoteError(f"bundle of version {version} with {count} messages")
    start = _HEAD.size + count * _ENTRY.size
    if len(packed) < start:
        raise RemoteError(f"bundle of {count} messages is cut off in its table")
    items = []
    for message, submitted, length in _ENTRY.iter_unpack(memoryview(packed)[_HEAD.size : start]):
        items.append(Item(message, submitted, packed[start : start + length]))
        start += length
    if start != len(packed):
        raise RemoteError(f"bundle of {len(packed)} bytes, its table says {start}")
    return items

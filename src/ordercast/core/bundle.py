"""Application messages inside the payload that a protocol orders.

A protocol orders payloads, and one payload may carry many application messages. The driver packs the messages
that piled up while it was busy into a bundle, and unpacks the bundle after delivery. The messages of a bundle
come from one sender and have consecutive identities. Layout, little-endian: version (1 byte), flags (1),
count (2), the first identity (8), the earliest time of submission (8); then a table of lengths (one entry if
all are equal), a table of times after the earliest (none if all are equal), and the messages' bytes end to
end. Tables at the head read faster than a header before each message.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct, unpack_from
from struct import pack as pack_struct
from typing import NamedTuple, overload

from ordercast.core.errors import LocalError, RemoteError
from ordercast.core.ids import MessageId
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.core.time import Nanos

VERSION = 2
BUNDLE_MESSAGES_MAX = 0xFFFF

_HEAD = Struct("<BBHQQ")
HEAD_BYTES = _HEAD.size
_LENGTH = Struct("<I")
_SINGLE = Struct("<BBHQQI")
_LENGTHS = 1  # flag: messages of different lengths
_TIMES = 2  # flag: different times, 4 bytes each
_LONG_TIMES = 4  # flag: different times, 8 bytes each, where 4.3 seconds are not enough
_LATEST = (1 << 63) - 1
_SHORT = 1 << 32

MESSAGE_BYTES_MAX = PAYLOAD_BYTES_MAX - _SINGLE.size
"""The size of the largest application message, which fills a bundle alone."""


# The constructor of a named tuple costs twice as much as that of the tuple it is.
_new = tuple.__new__


class Item(NamedTuple):
    """One application message."""

    message: MessageId
    submitted_ns: Nanos
    payload: bytes


class Times(Sequence[Nanos]):
    """Times, stored as differences from the earliest. They are added up on access, which is rare."""

    __slots__ = ("_after", "_earliest")

    def __init__(self, earliest: Nanos, after: tuple[Nanos, ...]) -> None:
        self._earliest = earliest
        self._after = after

    def __len__(self) -> int:
        """The number of times."""
        return len(self._after)

    @overload
    def __getitem__(self, index: int) -> Nanos: ...

    @overload
    def __getitem__(self, index: slice) -> list[Nanos]: ...

    def __getitem__(self, index: int | slice) -> Nanos | list[Nanos]:
        """One time, or a slice of them."""
        if isinstance(index, slice):
            return [self._earliest + time for time in self._after[index]]
        return self._earliest + self._after[index]

    def __iter__(self) -> Iterator[Nanos]:
        """All times, in order."""
        return iter([self._earliest + time for time in self._after])

    def count(self, value: Nanos) -> int:
        """How many of the times are equal to `value`."""
        return self._after.count(value - self._earliest)


class Bundle(NamedTuple):
    """Consecutive messages of one sender."""

    first: MessageId
    times: Sequence[Nanos]
    """When each message was submitted."""
    payloads: list[bytes]

    def items(self) -> list[Item]:
        """The messages one by one."""
        numbered = enumerate(zip(self.times, self.payloads, strict=True), self.first)
        return [_new(Item, (message, time, payload)) for message, (time, payload) in numbered]


def bundle_size(payload_bytes: int) -> int:
    """The most bytes that a message of this size takes in a bundle, without the bundle's head."""
    return 8 + payload_bytes


def pack(items: Sequence[Item]) -> bytes:
    """Put messages with consecutive identities into one payload."""
    if any(item.message != items[0].message + index for index, item in enumerate(items)):
        raise LocalError("the messages of a bundle must have consecutive identities")
    return pack_bundle(
        items[0].message if items else 0,
        [item.submitted_ns for item in items],
        [item.payload for item in items],
    )


def pack_bundle(first: MessageId, times: Sequence[Nanos], payloads: Sequence[bytes]) -> bytes:
    """Put messages into one payload. `first` is the identity of the first message; the others follow."""
    count = len(payloads)
    if count == 1:
        payload = payloads[0]
        packed = _SINGLE.pack(VERSION, 0, 1, first, times[0], len(payload)) + payload
    else:
        if not 0 < count <= BUNDLE_MESSAGES_MAX:
            raise LocalError(f"a bundle must have 1 to {BUNDLE_MESSAGES_MAX} messages, not {count}")
        flags, length_table = _pack_lengths(list(map(len, payloads)))
        earliest = min(times)
        time_flags, time_table = _pack_times(times, earliest)
        head = _HEAD.pack(VERSION, flags | time_flags, count, first, earliest)
        packed = b"".join((head, length_table, time_table, *payloads))
    if len(packed) > PAYLOAD_BYTES_MAX:
        raise LocalError(
            f"bundle of {len(packed)} bytes is too large; the limit is {PAYLOAD_BYTES_MAX} bytes"
        )
    return packed


def unpack(packed: bytes) -> list[Item]:
    """Take the messages out of a payload, or raise `RemoteError`."""
    return unpack_bundle(packed).items()


def bundle_span(packed: bytes) -> tuple[MessageId, int]:
    """The first identity and the number of messages in a payload by its head, or raise `RemoteError`."""
    if len(packed) < HEAD_BYTES:
        raise RemoteError(f"bundle of {len(packed)} bytes is shorter than its head")
    version, _, count, first, _ = _HEAD.unpack_from(packed)
    if version != VERSION:
        raise RemoteError(f"bundle has version {version}, expected {VERSION}")
    return first, count


def unpack_bundle(packed: bytes) -> Bundle:
    """Take the messages out of a payload, or raise `RemoteError`."""
    if len(packed) < HEAD_BYTES:
        raise RemoteError(f"bundle of {len(packed)} bytes is shorter than its head")
    version, flags, count, first, earliest = _HEAD.unpack_from(packed)
    if version != VERSION or count == 0 or flags & ~(_LENGTHS | _TIMES | _LONG_TIMES):
        raise RemoteError(f"bundle has an invalid head: version {version}, flags {flags}, {count} messages")
    if first + count - 1 > _LATEST or earliest > _LATEST:
        raise RemoteError("bundle has an out-of-range message id or time")
    start = HEAD_BYTES + (4 * count if flags & _LENGTHS else 4)
    end = start + _time_bytes(flags) * count
    if len(packed) < end:
        raise RemoteError(f"bundle of {count} messages ends within its tables")
    times = _unpack_times(packed, start, flags, count, earliest)
    if flags & _LENGTHS:
        return _new(Bundle, (first, times, _unequal(packed, count, end)))
    (length,) = _LENGTH.unpack_from(packed, HEAD_BYTES)
    if count == 1 and len(packed) == end + length:
        return _new(Bundle, (first, times, [packed[end:]]))
    if len(packed) != end + count * length:
        raise RemoteError(f"bundle has {len(packed)} bytes, but its table says {end + count * length}")
    if not length:
        return _new(Bundle, (first, times, [b""] * count))
    return _new(Bundle, (first, times, [packed[at : at + length] for at in range(end, len(packed), length)]))


def _pack_lengths(lengths: list[int]) -> tuple[int, bytes]:
    if lengths.count(lengths[0]) == len(lengths):
        return 0, _LENGTH.pack(lengths[0])
    return _LENGTHS, pack_struct(f"<{len(lengths)}I", *lengths)


def _pack_times(times: Sequence[Nanos], earliest: Nanos) -> tuple[int, bytes]:
    latest = max(times)
    if latest == earliest:
        return 0, b""
    after = [time - earliest for time in times]
    if latest - earliest < _SHORT:
        return _TIMES, pack_struct(f"<{len(after)}I", *after)
    return _LONG_TIMES, pack_struct(f"<{len(after)}Q", *after)


def _time_bytes(flags: int) -> int:
    return 8 if flags & _LONG_TIMES else 4 if flags & _TIMES else 0


def _unpack_times(packed: bytes, start: int, flags: int, count: int, earliest: Nanos) -> Sequence[Nanos]:
    width = _time_bytes(flags)
    if not width:
        return (earliest,) * count
    after = unpack_from(f"<{count}{'Q' if width == 8 else 'I'}", packed, start)
    # There is one way to write the times: the earliest is in the head, and the table is no wider than needed.
    # The search mostly ends at the first entries.
    needed = max(after) >= _SHORT if width == 8 else any(after)
    if 0 not in after or not needed or (flags & _TIMES and width == 8):
        raise RemoteError("bundle has an invalid table of times")
    if (width == 8 or earliest > _LATEST - _SHORT) and earliest + max(after) > _LATEST:
        raise RemoteError("bundle has an out-of-range message id or time")
    return Times(earliest, after)


def _unequal(packed: bytes, count: int, start: int) -> list[bytes]:
    lengths = unpack_from(f"<{count}I", packed, HEAD_BYTES)
    if lengths.count(lengths[0]) == count:
        raise RemoteError("bundle has a table of lengths, although all lengths are equal")
    ends = list(accumulate(lengths, initial=start))
    if ends[-1] != len(packed):
        raise RemoteError(f"bundle has {len(packed)} bytes, but its table says {ends[-1]}")
    return [packed[begin:end] for begin, end in pairwise(ends)]

"""Bundles: many application messages in the payload that a protocol orders."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core import LocalError, RemoteError
from ordercast.core.bundle import (
    BUNDLE_MESSAGES_MAX,
    HEAD_BYTES,
    MESSAGE_BYTES_MAX,
    Item,
    bundle_size,
    bundle_span,
    pack,
    unpack,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX

WORDS = st.integers(0, (1 << 63) - 10)
TIMES = st.one_of(WORDS, st.integers(5, 9))
PAYLOADS = st.one_of(st.binary(max_size=30), st.just(b"same"))


@st.composite
def _consecutive(draw: st.DrawFn) -> list[Item]:
    first, base = draw(WORDS), draw(WORDS)
    near = st.integers(0, 9).map(lambda after: base + after)
    times = draw(st.sampled_from((TIMES, near, st.just(base))))
    parts = draw(st.lists(st.tuples(times, PAYLOADS), min_size=1, max_size=6))
    return [Item(message, time, payload) for message, (time, payload) in enumerate(parts, first)]


ITEMS = _consecutive()


@given(ITEMS)
def test_what_is_packed_is_unpacked(items: list[Item]) -> None:
    assert unpack(pack(items)) == items


@given(ITEMS)
def test_unpacked_items_have_names(items: list[Item]) -> None:
    for found, item in zip(unpack(pack(items)), items, strict=True):
        assert (found.message, found.submitted_ns, found.payload) == tuple(item)


@given(ITEMS)
def test_the_span_of_a_bundle_is_read_without_its_messages(items: list[Item]) -> None:
    assert bundle_span(pack(items)) == (items[0].message, len(items))


@pytest.mark.parametrize("packed", [b"", bytes(HEAD_BYTES - 1), bytes(HEAD_BYTES)], ids=len)
def test_what_has_no_head_has_no_span(packed: bytes) -> None:
    with pytest.raises(RemoteError):
        bundle_span(packed)


@given(ITEMS)
def test_the_size_of_a_bundle_is_known_before(items: list[Item]) -> None:
    most = HEAD_BYTES + sum(bundle_size(len(item.payload)) for item in items)
    far_apart = max(item.submitted_ns for item in items) - min(item.submitted_ns for item in items) >= 1 << 32
    assert len(pack(items)) <= most + 4 * len(items) * far_apart


@given(ITEMS)
def test_every_truncation_is_refused(items: list[Item]) -> None:
    packed = pack(items)
    for length in range(len(packed)):
        with pytest.raises(RemoteError):
            unpack(packed[:length])


@given(ITEMS, st.binary(min_size=1, max_size=40))
def test_trailing_bytes_are_refused(items: list[Item], more: bytes) -> None:
    with pytest.raises(RemoteError):
        unpack(pack(items) + more)


@given(st.binary(max_size=120))
def test_random_bytes_are_a_bundle_or_the_peers_fault(data: bytes) -> None:
    _parses_or_blames(data)


@given(ITEMS, st.data())
@settings(max_examples=300)
def test_mangled_bytes_are_another_bundle_or_the_peers_fault(items: list[Item], data: st.DataObject) -> None:
    mangled = bytearray(pack(items))
    for _ in range(data.draw(st.integers(1, 3))):
        mangled[data.draw(st.integers(0, len(mangled) - 1))] = data.draw(st.integers(0, 255))
    _parses_or_blames(bytes(mangled))


def _parses_or_blames(data: bytes) -> None:
    try:
        items = unpack(data)
    except RemoteError:
        return
    # Only one sequence of bytes stands for a list of messages, so nothing was read past or made up.
    assert pack(items) == data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "0 bytes is shorter than its head"),
        (b"\x02\x00", "2 bytes is shorter than its head"),
        (b"\x01\x00\x01" + bytes(17), "version 1, flags 0, 1 messages"),
        (b"\x02\x00\x00" + bytes(17), "version 2, flags 0, 0 messages"),
        (b"\x02\x80\x01" + bytes(17), "version 2, flags 128, 1 messages"),
        (b"\x02\x01\xff\xff" + bytes(100), "65535 messages ends within its tables"),
        (b"\x02\x00\x01\x00" + bytes(16) + b"\xff\xff\xff\xff", "its table says"),
        (b"\x02\x00\x01\x00" + b"\xff" * 16 + bytes(4), "an out-of-range message id or time"),
        (b"\x02\x01\x02\x00" + bytes(16) + b"\x01\x00\x00\x00" * 2 + b"ab", "although all lengths are equal"),
        (b"\x02\x02\x02\x00" + bytes(16 + 4 + 8), "an invalid table of times"),
    ],
)
def test_the_complaint_says_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(RemoteError, match=complaint):
        unpack(data)


def test_an_empty_bundle_is_the_callers_fault() -> None:
    with pytest.raises(LocalError, match="not 0"):
        pack([])


def test_a_bundle_holds_so_many_messages_and_not_one_more() -> None:
    items = [Item(number, 0, b"") for number in range(BUNDLE_MESSAGES_MAX + 1)]
    with pytest.raises(LocalError, match=f"not {BUNDLE_MESSAGES_MAX + 1}"):
        pack(items)
    with pytest.raises(LocalError, match=f"limit is {PAYLOAD_BYTES_MAX}"):
        pack([item._replace(payload=bytes(32)) for item in items[:-1]])  # as many as may be, but too large
    assert unpack(pack(items[:-1])) == items[:-1]


def test_the_messages_of_a_bundle_are_consecutive() -> None:
    with pytest.raises(LocalError, match="consecutive"):
        pack([Item(1, 0, b""), Item(3, 0, b"")])


def test_the_largest_message_just_fits() -> None:
    largest = Item(1, 2, bytes(MESSAGE_BYTES_MAX))
    assert unpack(pack([largest])) == [largest]
    with pytest.raises(LocalError, match=f"limit is {PAYLOAD_BYTES_MAX}"):
        pack([Item(1, 2, bytes(MESSAGE_BYTES_MAX + 1))])

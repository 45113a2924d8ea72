"""Messages put together from fragments: any order, copies, limits, and peers that never finish."""

from random import Random

import pytest

from ordercast.core import RemoteError
from ordercast.core.message import MESSAGE_DATA_MAX
from ordercast.net.links.datagram import Fragment, read_fragment, write_fragments
from ordercast.net.links.fragments import UNFINISHED_BYTES_MAX, UNFINISHED_MAX, UNFINISHED_NS, Fragments

ROOM = 1_400


def fragments_of(message: int, body: bytes) -> list[Fragment]:
    return [read_fragment(memoryview(part)) for part in write_fragments(message, body, ROOM)]


def fragment(message: int, place: int, parts: int, part: bytes = b"x") -> Fragment:
    return Fragment(message, place, parts, memoryview(part))


@pytest.mark.parametrize("size", [1, ROOM, 5_000, 100_000, MESSAGE_DATA_MAX])
def test_fragments_in_any_order_make_the_message_once(size: int) -> None:
    rng = Random(size)
    body = rng.randbytes(size)
    parts = fragments_of(7, body)
    rng.shuffle(parts)
    made = Fragments()
    whole = [made.add(part, 0) for part in parts]
    assert whole[:-1] == [None] * (len(parts) - 1)
    assert whole[-1] == body
    assert made._size == 0 and made.given_up == 0


def test_copies_change_nothing() -> None:
    body = Random(1).randbytes(5_000)
    first, *others = fragments_of(1, body)
    made = Fragments()
    assert [made.add(first, 0) for _ in range(3)] == [None] * 3
    assert [made.add(part, 0) for part in others][-1] == body


def test_messages_are_kept_apart() -> None:
    bodies = {number: Random(number).randbytes(4_000) for number in range(5)}
    parts = [part for number, body in bodies.items() for part in fragments_of(number, body)]
    Random(3).shuffle(parts)
    made = Fragments()
    whole = {part.message: body for part in parts if (body := made.add(part, 0)) is not None}
    assert whole == bodies


def test_fragments_that_do_not_agree_on_their_number_are_refused() -> None:
    made = Fragments()
    made.add(fragment(1, 0, 3), 0)
    with pytest.raises(RemoteError, match="fragment belongs to 4 fragments; earlier ones belong to 3"):
        made.add(fragment(1, 1, 4), 0)


def test_a_message_that_is_too_large_is_refused_and_forgotten() -> None:
    made = Fragments()
    half = b"x" * (MESSAGE_DATA_MAX // 2 + 1)
    made.add(fragment(1, 0, 3, half), 0)
    with pytest.raises(RemoteError, match="have more than"):
        made.add(fragment(1, 1, 3, half), 0)
    assert made._size == 0


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    made = Fragments()
    part = b"x" * (MESSAGE_DATA_MAX // 4)
    for message in range(40):
        made.add(fragment(message, 0, 2, part), 0)
        assert made._size <= UNFINISHED_BYTES_MAX
    assert made.given_up > 0
    assert made.add(fragment(39, 1, 2, b"y"), 0) == part + b"y", "the latest is here"
    assert made.add(fragment(0, 1, 2, b"y"), 0) is None, "the first is not"


def test_no_more_messages_are_begun_than_the_limit() -> None:
    made = Fragments()
    for message in range(3 * UNFINISHED_MAX):
        made.add(fragment(message, 0, 2), 0)
    assert len(made._assemblies) <= UNFINISHED_MAX
    assert made.given_up == 3 * UNFINISHED_MAX - len(made._assemblies)


def test_what_is_not_finished_in_time_is_given_up_when_the_next_begins() -> None:
    made = Fragments()
    made.add(fragment(1, 0, 2), 0)
    made.add(fragment(2, 0, 2), UNFINISHED_NS - 1)
    assert made.given_up == 0
    made.add(fragment(3, 0, 2), UNFINISHED_NS)
    assert made.given_up == 1
    assert made.add(fragment(2, 1, 2), UNFINISHED_NS) == b"xx"

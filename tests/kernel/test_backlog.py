"""What applications hand over becomes bundles: few and full under load, one message alone when idle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import Explanation, Groups, LocalError, Member, Message, NodeId, message_id
from ordercast.core.bundle import (
    BUNDLE_MESSAGES_MAX,
    HEAD_BYTES,
    Bundle,
    bundle_size,
    pack_bundle,
    unpack_bundle,
)
from ordercast.core.general import pack_prepare
from ordercast.kernel.backlog import ALONE, Backlog, OpenBundle

FIRST = message_id(3, 100)
PACKET_BYTES = 1_000


class Taker(Member):
    """Takes bundles, as long as its window is open."""

    def __init__(self) -> None:
        self.taken: list[Bundle] = []
        self.open: bool | None = True

    def submit(self, groups: Groups, payload: bytes) -> bool:
        if self.open:
            self.taken.append(unpack_bundle(payload))
        return self.open  # type: ignore[return-value]

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("nobody sends anything here")

    def explain(self) -> Explanation:
        raise AssertionError("nobody asks")


def backlog(bytes_max: int = 1 << 20) -> Backlog:
    return Backlog(FIRST, PACKET_BYTES, bytes_max=bytes_max)


def test_identities_are_consecutive_whatever_packet_they_are_in() -> None:
    made = backlog()
    assert made.add((0,), 1, [b"a", b"b"]) == FIRST
    assert made.add((1,), 2, [b"c"]) == FIRST + 2
    assert made.add((0,), 3, [b"d"]) == FIRST + 3
    assert made.next_message == FIRST + 4
    assert [(bundle.groups, bundle.first, bundle.payloads) for bundle in made.bundles] == [
        ((0,), FIRST, [b"a", b"b"]),
        ((1,), FIRST + 2, [b"c"]),
        ((0,), FIRST + 3, [b"d"]),
    ], "messages to other groups in between keep their place"


def test_messages_to_the_same_groups_share_a_packet_with_their_times() -> None:
    made = backlog()
    for time in range(5):
        made.add((0, 1), time, [b"x" * time])
    (bundle,) = made.bundles
    assert bundle.times == [0, 1, 2, 3, 4]
    assert bundle.payloads == [b"", b"x", b"xx", b"xxx", b"xxxx"]


@pytest.mark.parametrize("size", [0, 1, 7, 100, 483, 484, 485, 900])
def test_no_packet_is_larger_than_it_may_be_unless_one_message_is(size: int) -> None:
    made = backlog()
    made.add((0,), 5, [b"x" * size] * 50)
    for number in range(50):
        made.add((0,), 10**12 * number, [b"y" * size])
    packed = [pack_bundle(bundle.first, bundle.times, bundle.payloads) for bundle in made.bundles]
    # A table of times that lie far apart is wider than is reckoned with: 8 bytes a message and not 4.
    slack = max(8 * len(bundle.payloads) for bundle in made.bundles)
    assert max(map(len, packed)) <= PACKET_BYTES + slack
    assert sum(len(bundle.payloads) for bundle in made.bundles) == 100
    fit = (PACKET_BYTES - HEAD_BYTES) // bundle_size(size)
    assert len(made.bundles) == -(-100 // fit)


def test_a_message_larger_than_a_packet_has_one_of_its_own() -> None:
    made = backlog()
    made.add((0,), 1, [b"small", b"x" * 5_000, b"small"])
    assert [len(bundle.payloads) for bundle in made.bundles] == [1, 1, 1]


def test_a_packet_holds_no_more_messages_than_a_bundle_can() -> None:
    made = Backlog(FIRST, 1 << 22)
    made.add((0,), 1, [b""] * (BUNDLE_MESSAGES_MAX + 10))
    assert [len(bundle.payloads) for bundle in made.bundles] == [BUNDLE_MESSAGES_MAX, 10]


def test_it_is_full_when_so_many_bytes_wait_and_not_when_they_have_gone() -> None:
    made = backlog(bytes_max=2 * bundle_size(400))
    full = [made.full]
    for group in (0, 1):
        made.add((group,), 1, [b"x" * 400])
        full.append(made.full)
    made.offer(Taker())
    full.append(made.full)
    assert full == [False, False, True, False]
    assert (made.messages, made.waiting) == (1, bundle_size(400))


def test_nothing_is_left_when_all_have_gone() -> None:
    made = backlog()
    for number in range(100):
        made.add((number % 2,), number, [b"x" * (number % 40)] * (1 + number % 7))
    taker = Taker()
    while made.bundles:
        assert made.offer(taker) is not None
    assert (made.messages, made.waiting) == (0, 0)
    numbers = [bundle.first + place for bundle in taker.taken for place in range(len(bundle.payloads))]
    assert numbers == list(range(FIRST, made.next_message))


def test_what_comes_after_the_last_packet_has_gone_begins_a_new_one() -> None:
    made = backlog()
    made.add((0,), 1, [b"a"])
    made.offer(Taker())
    assert made.add((0,), 2, [b"b"]) == FIRST + 1
    assert [bundle.first for bundle in made.bundles] == [FIRST + 1]


def test_a_packet_that_is_refused_stays_the_first_and_still_fills_up() -> None:
    made, taker = backlog(), Taker()
    made.add((0,), 1, [b"a"])
    made.add((1,), 1, [b"b"])
    taker.open = False
    assert made.offer(taker) is None
    assert [bundle.first for bundle in made.bundles] == [FIRST, FIRST + 1]
    assert (made.messages, made.waiting) == (2, 2 * bundle_size(1))
    taker.open = True
    made.add((1,), 2, [b"c"])
    while made.bundles:
        made.offer(taker)
    assert [bundle.payloads for bundle in taker.taken] == [[b"a"], [b"b", b"c"]]


def test_what_is_handed_over_while_a_packet_is_taken_goes_into_another() -> None:
    made = backlog()

    class Answering(Taker):
        def submit(self, groups: Groups, payload: bytes) -> bool:
            if not self.taken:
                made.add(groups, 2, [b"answer"])
            return super().submit(groups, payload)

    taker = Answering()
    made.add((0,), 1, [b"question"])
    while made.bundles:
        made.offer(taker)
    assert [bundle.payloads for bundle in taker.taken] == [[b"question"], [b"answer"]]


def test_a_protocol_that_says_neither_yes_nor_no_is_told_so() -> None:
    made, taker = backlog(), Taker()
    taker.open = None
    made.add((0,), 1, [b"a"])
    with pytest.raises(LocalError, match="Taker must return True or False, not None"):
        made.offer(taker)


def test_packets_can_be_made_of_one_message_each() -> None:
    made = Backlog(FIRST, ALONE)
    made.add((0,), 1, [b"", b"a", b"b"])
    made.add((0,), 1, [b""])
    assert [bundle.payloads for bundle in made.bundles] == [[b""], [b"a"], [b"b"], [b""]]


def test_identities_of_messages_that_were_forgotten_are_not_used_again() -> None:
    made = Backlog(FIRST, PACKET_BYTES, messages_max=2)
    made.add((0,), 1, [b"a", b"b"])
    full = [made.full]
    made.clear()
    assert [*full, made.full] == [True, False]
    assert (made.messages, made.waiting, len(made.bundles)) == (0, 0, 0)
    assert made.add((0,), 2, [b"c"]) == FIRST + 2


def test_messages_are_withdrawn_up_to_an_identity() -> None:
    made = backlog()
    made.add((0,), 1, [b"a", b"bb"])
    made.add((0,), 2, [b"ccc"])
    made.add((1,), 3, [b"d"])
    assert made.withdraw(FIRST - 1) is None
    before = made.waiting
    found = made.withdraw(FIRST + 1)
    assert found is not None
    groups, packed = found
    assert (groups, unpack_bundle(packed)) == ((0,), Bundle(FIRST, (1, 1), [b"a", b"bb"]))
    assert made.withdraw(FIRST + 1) is None
    assert made.messages == 2
    assert before - made.waiting == 2 * bundle_size(0) + 3
    assert made.add((1,), 4, [b"e"]) == FIRST + 4, "identities are not used again"
    taker = Taker()
    while made.bundles:
        made.offer(taker)
    assert [bundle.first for bundle in taker.taken] == [FIRST + 2, FIRST + 3]
    assert (made.messages, made.waiting) == (0, 0)


def test_a_bundle_that_lost_messages_has_room_for_others() -> None:
    made = backlog()
    made.add((0,), 1, [b"x" * 400, b"y" * 400])
    made.withdraw(FIRST)
    made.add((0,), 2, [b"z" * 400])
    (bundle,) = made.bundles
    assert bundle.payloads == [b"y" * 400, b"z" * 400]


def test_nothing_is_withdrawn_from_nothing() -> None:
    made = backlog()
    assert made.withdraw(FIRST) is None
    made.add((0,), 1, [b"a"])
    assert made.withdraw(FIRST + 5) is not None
    assert made.withdraw(FIRST + 5) is None and not made.bundles


@pytest.mark.parametrize("at_once", [True, False])
def test_what_locks_keys_is_alone_in_its_bundle(at_once: bool) -> None:
    """Others in its bundle could wait for its locks, and its client for their answers."""
    held = Backlog(FIRST, PACKET_BYTES, locks=lambda operation: operation == b"lock")
    assert bundles_of(held, [b"x", b"y", b"lock", b"lock", b"z", b"z"], at_once=at_once) == [
        [b"x", b"y"],
        [b"lock"],
        [b"lock"],
        [b"z", b"z"],
    ]


@pytest.mark.parametrize("at_once", [True, False])
def test_messages_that_look_like_locks_share_bundles_where_nothing_locks(at_once: bool) -> None:
    payloads = [b"x", pack_prepare(["a"]), b"z"]
    assert bundles_of(backlog(), payloads, at_once=at_once) == [payloads]


def bundles_of(held: Backlog, payloads: list[bytes], *, at_once: bool) -> list[list[bytes]]:
    """What is in each bundle that a taker gets; nothing is left."""
    taker = Taker()
    if at_once:
        held.add((0,), 5, payloads)
    for payload in () if at_once else payloads:
        held.add_one((0,), 5, payload)
    while held.bundles:
        held.offer(taker)
    assert (held.messages, held.waiting) == (0, 0)
    return [bundle.payloads for bundle in taker.taken]


@given(
    st.lists(st.lists(st.integers(0, 1_200), max_size=40), min_size=1, max_size=6),
    st.sampled_from([ALONE, 60, PACKET_BYTES, 1 << 22]),
)
def test_many_at_once_make_the_bundles_that_one_by_one_would(batches: list[list[int]], room: int) -> None:
    one_by_one, at_once = Backlog(FIRST, room), Backlog(FIRST, room)
    for now, sizes in enumerate(batches):
        payloads = [bytes(size) for size in sizes]
        for payload in payloads:
            one_by_one.add_one((now % 2,), now, payload)
        at_once.add((now % 2,), now, payloads)
        assert (one_by_one.messages, one_by_one.waiting) == (at_once.messages, at_once.waiting)
    assert list(map(contents, one_by_one.bundles)) == list(map(contents, at_once.bundles))


def contents(bundle: OpenBundle) -> tuple[object, ...]:
    return bundle.first, bundle.groups, bundle.room, bundle.times, bundle.payloads

"""Cyclon's rules, one a test."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.components.sampling import Cyclon, CyclonOptions, choose, draw, stream
from ordercast.components.sampling.cyclon import ANSWERS, OFFERS, SHUFFLE_TIMER, WAITS
from ordercast.components.sampling.messages import AGE_MAX, MESSAGES, Entry, ShuffleAnswer, ShuffleRequest
from ordercast.components.sampling.sampler import TARGETS
from ordercast.core import Codec, LocalError, Message
from ordercast.testing import RecordingEnv

ME = 100
SEED = 77
OPTIONS = CyclonOptions(view=6, length=3, period_ns=1000, jitter_ns=10, patience=2)


class Foreign(Message, frozen=True, tag=1):
    """A message of the protocol around a sampler."""


class Node:
    """One node, and what it sent."""

    def __init__(self, contacts: Sequence[int], options: CyclonOptions = OPTIONS) -> None:
        self.env = RecordingEnv(ME)
        self.cyclon = Cyclon(self.env, SEED, contacts, options)
        self.cyclon.on_start({})

    @property
    def entries(self) -> list[Entry]:
        return self.cyclon.entries()

    def shuffle(self) -> tuple[int, ShuffleRequest]:
        """The next shuffle: whom it asks, and what."""
        self.cyclon.on_timer(SHUFFLE_TIMER)
        node, message = self.env.sent.pop()
        assert not self.env.sent
        assert isinstance(message, ShuffleRequest)
        return node, message

    def ask(self, source: int, *entries: Entry, number: int = 0) -> ShuffleAnswer:
        """What it answers to a request."""
        self.cyclon.on_message(source, ShuffleRequest(number, entries))
        node, message = self.env.sent.pop()
        assert node == source and isinstance(message, ShuffleAnswer)
        return message

    def answer(self, source: int, number: int, *entries: Entry) -> None:
        """It gets an answer, and sends nothing for it."""
        self.cyclon.on_message(source, ShuffleAnswer(number, entries))
        assert not self.env.sent


def aged(*ages: int, options: CyclonOptions = OPTIONS) -> Node:
    """A node that knows the nodes 0, 1, 2... of these ages."""
    node = Node([], options)
    node.cyclon._view = list(range(len(ages)))
    node.cyclon._ages = list(ages)
    return node


def test_the_view_begins_with_the_contacts() -> None:
    assert Node([4, 2, 9]).entries == [(4, 0), (2, 0), (9, 0)]


def test_contacts_are_taken_once_without_oneself_and_no_more_than_the_view_holds() -> None:
    assert Node([4, ME, 4, 2]).entries == [(4, 0), (2, 0)]
    assert [node for node, _ in Node(range(20)).entries] == [0, 1, 2, 3, 4, 5]


def test_the_first_shuffle_comes_after_a_random_part_of_a_period() -> None:
    waits = set()
    for seed in range(300):
        env = RecordingEnv(ME)
        Cyclon(env, seed, [1], OPTIONS).on_start({})
        assert env.timers == {SHUFFLE_TIMER: draw(stream(seed, WAITS), 0, 0) % 1000}
        waits.add(env.timers[SHUFFLE_TIMER])
    assert min(waits) < 50 and max(waits) >= 950


def test_others_come_after_a_period_within_the_jitter() -> None:
    node = Node([1])
    waits = []
    for _ in range(300):
        node.cyclon.on_timer(SHUFFLE_TIMER)
        waits.append(node.env.timers[SHUFFLE_TIMER])
    assert waits == [990 + draw(stream(SEED, WAITS), number, 0) % 21 for number in range(1, 301)]
    assert min(waits) == 990 and max(waits) == 1010


def test_without_jitter_a_period_is_a_period() -> None:
    node = Node([1], CyclonOptions(period_ns=5, jitter_ns=0))
    node.shuffle()
    assert node.env.timers == {SHUFFLE_TIMER: 5}


def test_a_shuffle_makes_all_older_and_takes_out_the_oldest() -> None:
    node = aged(1, 4, 2)
    asked, _ = node.shuffle()
    assert asked == 1
    assert node.entries == [(0, 2), (2, 3)]


def test_of_the_oldest_the_one_at_the_lowest_place_is_asked() -> None:
    node = aged(1, 4, 2, 4)
    assert node.shuffle()[0] == 1
    assert node.shuffle()[0] == 3


def test_a_request_carries_others_at_random_and_never_more_than_the_length() -> None:
    node = aged(0, 9, 1, 2, 3)
    _, request = node.shuffle()
    rest = [(0, 1), (2, 2), (3, 3), (4, 4)]
    assert list(request.entries) == [rest[place] for place in choose(stream(SEED, OFFERS), 0, 2, 4)]
    assert request.number == 0
    assert node.entries == rest


def test_a_request_of_length_1_carries_the_asker_alone() -> None:
    node = Node([1, 2], CyclonOptions(view=4, length=1, period_ns=10, jitter_ns=0))
    assert node.shuffle() == (1, ShuffleRequest(0, ()))


def test_shuffles_are_numbered() -> None:
    node = aged(0, 1, 2)
    assert [node.shuffle()[1].number for _ in range(3)] == [0, 1, 2]
    assert node.cyclon.shuffles == 3


def test_an_answer_carries_own_neighbours_at_random_and_the_number_of_the_request() -> None:
    node = aged(0, 1, 2, 3, 4)
    for number in range(4):
        before = node.entries
        answer = node.ask(50, number=number + 7)
        others = [entry for entry in before if entry[0] != 50]
        places = choose(stream(SEED, ANSWERS), number, 3, len(others))
        assert answer == ShuffleAnswer(number + 7, tuple(others[place] for place in places))
    assert node.cyclon.answers == 4


def test_an_answer_never_contains_the_asker() -> None:
    node = aged(0, 1, 2, 3)
    for number in range(50):
        answer = node.ask(2, number=number)
        assert 2 not in [entry[0] for entry in answer.entries]
        assert len(answer.entries) == 3


def test_a_node_that_knows_nobody_answers_with_nothing_and_learns() -> None:
    node = Node([])
    assert node.ask(8, (5, 2)) == ShuffleAnswer(0, ())
    assert node.entries == [(8, 0), (5, 2)]
    assert node.ask(5, (8, 1)) == ShuffleAnswer(0, ((8, 0),))


def test_the_asker_is_taken_in_with_age_0() -> None:
    node = aged(3, 4)
    node.ask(50)
    assert node.entries == [(0, 3), (1, 4), (50, 0)]
    node.shuffle()
    node.ask(50)
    assert (50, 0) in node.entries


def test_entries_go_to_free_places_first() -> None:
    node = aged(3, 4, 5, 6)
    node.ask(50, (60, 7))
    assert node.entries == [(0, 3), (1, 4), (2, 5), (3, 6), (50, 0), (60, 7)]


def test_then_they_replace_what_was_sent_in_the_order_it_was_sent() -> None:
    node = aged(3, 4, 5, 6, 7)
    before = node.entries
    answer = node.ask(50, (60, 7), (61, 8))
    first, second, third = answer.entries
    expected = {first: (60, 7), second: (61, 8)}
    assert node.entries == [*(expected.get(entry, entry) for entry in before), (50, 0)]
    assert third in node.entries


def test_an_asker_fills_the_place_of_the_asked_one_and_then_those_it_sent() -> None:
    node = aged(9, 1, 2, 3, 4, 5)
    asked, request = node.shuffle()
    before = node.entries
    node.answer(asked, 0, (60, 1), (61, 2), (62, 3))
    expected = dict(zip(request.entries, [(61, 2), (62, 3)], strict=True))
    assert node.entries == [*(expected.get(entry, entry) for entry in before), (60, 1)]


def test_of_a_neighbour_that_is_known_the_lower_age_is_kept() -> None:
    node = aged(3, 4, 5)
    node.ask(50, (1, 2), (2, 9))
    assert node.entries == [(0, 3), (1, 2), (2, 5), (50, 0)]


def test_an_entry_that_was_sent_and_came_in_too_stays() -> None:
    node = aged(9, 1, 2, 3, 4, 5)
    asked, request = node.shuffle()
    (same, age), (other, _) = request.entries
    node.answer(asked, 0, (same, age + 5), (61, 2), (62, 3))
    known = node.cyclon.known()
    assert same in known and other not in known
    assert {61, 62} <= set(known) and len(known) == 6


def test_what_finds_no_place_is_dropped() -> None:
    node = aged(9, 1, 2, 3, 4, 5)
    asked, request = node.shuffle()
    node.ask(50, number=0)  # takes the free place
    node.answer(asked, 0, (60, 1), (61, 2), (62, 3))
    known = node.cyclon.known()
    assert len(known) == 6
    assert {60, 61} <= set(known) and 62 not in known
    assert not {entry[0] for entry in request.entries} & set(known)


OVER_OLDEST = replace(OPTIONS, replaces="oldest")


def test_if_the_oldest_make_room_what_comes_takes_their_places() -> None:
    """As in the simulator of EpTO's authors."""
    node = aged(4, 9, 2, 9, 0, 1, options=OVER_OLDEST)
    node.ask(50, (51, 3), (52, 7))
    assert node.entries == [(52, 7), (50, 0), (2, 2), (51, 3), (4, 0), (5, 1)]


def test_if_the_oldest_make_room_free_places_still_come_first() -> None:
    node = aged(4, 9, options=OVER_OLDEST)
    node.ask(50, (51, 3))
    assert node.entries == [(0, 4), (1, 9), (50, 0), (51, 3)]


def test_if_the_oldest_make_room_the_age_that_came_counts() -> None:
    node = aged(4, 9, 2, options=OVER_OLDEST)
    node.ask(50, (0, 6), (1, 1))
    assert node.entries == [(0, 6), (1, 1), (2, 2), (50, 0)]


def test_if_the_oldest_make_room_an_asker_does_so_too() -> None:
    node = aged(4, 9, 2, 3, 0, 1, options=OVER_OLDEST)
    asked, request = node.shuffle()
    assert asked == 1
    node.answer(1, request.number, (50, 0), (51, 0), (52, 0))
    assert node.entries == [(51, 0), (2, 3), (52, 0), (4, 1), (5, 2), (50, 0)]


def test_what_was_sent_and_left_meanwhile_gives_no_place() -> None:
    node = aged(9, 1, 2, 3, 4, 5)
    asked, request = node.shuffle()
    node.cyclon._view = [70, 71, 72, 73, 74, 75]
    node.cyclon._ages = [0] * 6
    node.answer(asked, 0, (60, 1))
    assert node.cyclon.known() == (70, 71, 72, 73, 74, 75)
    assert len(request.entries) == 2


def test_one_that_does_not_answer_is_gone_and_counted_when_patience_is_over() -> None:
    node = aged(1, 4, 2, 3)
    assert node.shuffle()[0] == 1
    assert 1 not in [peer for peer, _ in node.cyclon.entries()]
    assert node.cyclon.known()[-1] == 1, "it may be alive, and is known until it has been silent too long"
    assert 1 not in node.cyclon.sample(1, 3), "but is sent to only where there are too few others"
    assert node.cyclon.sample(1, 9)[-1] == 1
    node.shuffle()
    assert node.cyclon.purged == 0
    node.shuffle()
    assert node.cyclon.purged == 1


def test_one_that_answers_is_not_counted() -> None:
    node = aged(1, 4, 2, 3, 5)
    for number in range(5):
        asked, _ = node.shuffle()
        node.answer(asked, number)
    assert node.cyclon.purged == node.cyclon.ignored == 0


def test_an_answer_counts_for_as_long_as_patience_says() -> None:
    node = aged(1, 4, 2, 3)
    asked, _ = node.shuffle()
    node.shuffle()
    node.answer(asked, 0, (60, 1))
    assert 60 in node.cyclon.known()


@pytest.mark.parametrize("shuffles", [3, 4, 5])
def test_an_answer_that_comes_later_is_ignored(shuffles: int) -> None:
    node = aged(1, 6, 2, 3, 4, 5)
    asked = [node.shuffle()[0] for _ in range(shuffles)]
    before = node.entries
    node.answer(asked[0], 0, (60, 1))
    assert node.entries == before
    assert node.cyclon.ignored == 1


def test_an_answer_counts_once() -> None:
    node = aged(1, 4, 2, 3)
    asked, _ = node.shuffle()
    node.answer(asked, 0, (60, 1))
    before = node.entries
    node.answer(asked, 0, (61, 1))
    assert node.entries == before
    assert node.cyclon.ignored == 1


def test_an_answer_from_somebody_else_is_ignored_and_the_right_one_still_counts() -> None:
    node = aged(1, 4, 2, 3)
    asked, _ = node.shuffle()
    node.answer(66, 0, (60, 1))
    assert 60 not in node.cyclon.known()
    node.answer(asked, 0, (61, 1))
    assert 61 in node.cyclon.known()


def test_an_answer_to_a_shuffle_that_never_was_is_ignored() -> None:
    node = aged(1, 4, 2, 3)
    asked, _ = node.shuffle()
    for number in (1, 2, 1 << 62):
        node.answer(asked, number, (60, 1))
    assert node.cyclon.ignored == 3
    assert 60 not in node.cyclon.known()


def test_ages_stop_where_no_peer_would_accept_more() -> None:
    node = aged(AGE_MAX, AGE_MAX, 0)
    node.shuffle()
    assert node.entries == [(1, AGE_MAX), (2, 1)]


def test_a_node_that_lost_all_its_neighbours_returns_to_its_contacts() -> None:
    node = Node([4, 2])
    asked = [node.shuffle()[0] for _ in range(5)]
    assert asked == [4, 2, 4, 2, 4]
    assert node.cyclon.purged == 3


def test_a_node_without_contacts_waits_until_somebody_asks_it() -> None:
    node = Node([ME])
    for _ in range(5):
        del node.env.timers[SHUFFLE_TIMER]
        node.cyclon.on_timer(SHUFFLE_TIMER)
        assert SHUFFLE_TIMER in node.env.timers
    assert not node.env.sent
    node.ask(9)
    assert node.shuffle()[0] == 9


def test_targets_are_neighbours_at_random() -> None:
    node = aged(1, 2, 3, 4, 5)
    for step in range(50):
        places = choose(stream(SEED, TARGETS), step, 3, 5)
        assert node.cyclon.sample(step, 3) == places  # node 0 is at place 0, and so on
    assert sorted(node.cyclon.sample(0, 9)) == [0, 1, 2, 3, 4]
    assert Node([]).cyclon.sample(0, 3) == []


def test_messages_fit_into_the_codec_of_a_protocol() -> None:
    codec = Codec((Foreign, *MESSAGES))
    for message in (ShuffleRequest(3, ((1, 2), (4, 5))), ShuffleAnswer(0, ()), Foreign()):
        assert codec.decode(codec.encode(message)) == message


def test_a_new_life_begins_anew() -> None:
    first, second = Node([1, 2, 3]), Node([1, 2, 3])
    first.shuffle()
    first.ask(50)
    restarted = Cyclon(first.env, SEED, [1, 2, 3], OPTIONS)
    restarted.on_start({})
    assert restarted.entries() == second.entries
    assert first.env.timers == second.env.timers


@pytest.mark.parametrize(
    ("options", "lesson"),
    [
        ({"view": 0}, "view must be 1 to 1024 neighbours, not 0"),
        ({"view": 2000}, "not 2000"),
        ({"length": 0}, "at least 1 entry"),
        ({"length": 21}, "at most 20 for a view of 20"),
        ({"view": 500, "length": 129}, "at most 128 for a view of 500"),
        ({"period_ns": 0}, "at least 1 ns, not 0"),
        ({"jitter_ns": -1}, "at least 0 and less than period_ns"),
        ({"period_ns": 50, "jitter_ns": 50}, "less than period_ns, which is 50"),
        ({"patience": 0}, "patience must be 1 to 64 shuffles"),
        ({"patience": 65}, "not 65"),
        ({"replaces": "youngest"}, "'sent' or 'oldest', not 'youngest'"),
    ],
)
def test_options_that_cannot_be_are_refused_with_a_reason(options: dict[str, Any], lesson: str) -> None:
    with pytest.raises(LocalError, match=lesson):
        CyclonOptions(**options)


def test_contacts_that_are_no_nodes_are_refused() -> None:
    with pytest.raises(LocalError, match="contact 10 is not one of the nodes 0 to 9"):
        Cyclon(RecordingEnv(0), 1, [3, 10], OPTIONS, range(10))

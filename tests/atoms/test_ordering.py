"""A subscriber by itself: what it delivers at once, what it holds, and for which number it waits."""

from ordercast.protocols.atoms.ordering import HELD_MAX, Ordering, Stream
from tests.atoms.streams import Streams, begin, message

SHARED = {7: (0, 1)}
"""Atom 7 numbers groups 0 and 1."""


def two_groups() -> Streams:
    """A subscriber of groups 0 and 1, which share atom 7, in epoch 1."""
    streams = Streams(0, 1)
    assert streams.gives(0, 0, begin(1, SHARED)) == ["0:1"]
    assert streams.gives(1, 0, begin(1, SHARED)) == ["1:1"]
    return streams


# Numbers


def test_a_message_whose_numbers_are_next_is_delivered_when_it_comes() -> None:
    streams = two_groups()
    assert streams.gives(0, 1, message("a", q7=0)) == ["a"]
    assert streams.gives(1, 1, message("b", q7=1)) == ["b"]


def test_a_message_with_a_later_number_is_held_until_the_earlier_one_comes() -> None:
    streams = two_groups()
    assert streams.gives(0, 1, message("b", q7=1)) == []
    assert streams.misses(0) == (7, 0)
    assert streams.gives(0, 2, message("c", q7=2)) == []
    assert streams.gives(1, 1, message("a", q7=0)) == ["a", "b", "c"]


def test_the_entries_of_a_group_are_delivered_in_their_places() -> None:
    streams = two_groups()
    assert streams.gives(0, 2, message("b", q7=1)) == []
    assert streams.gives(0, 1, message("a", q7=0)) == ["a", "b"]


def test_the_same_entry_again_changes_nothing() -> None:
    streams = two_groups()
    assert streams.gives(0, 1, message("a", q7=0)) == ["a"]
    assert not streams.ordering.streams[0].take(1, message("a", q7=0))
    assert streams.gives(0, 3, message("c", q7=2)) == []
    assert not streams.ordering.streams[0].take(3, message("c", q7=2))
    assert streams.gives(0, 2, message("b", q7=1)) == ["b", "c"]


def test_an_entry_too_far_ahead_is_not_held() -> None:
    stream = Streams(0).ordering.streams[0]
    assert not stream.take(HELD_MAX, message("far"))
    assert stream.take(HELD_MAX - 1, message("near"))


def test_all_relevant_atoms_must_have_their_turn() -> None:
    streams = Streams(0, 1, 2)
    for group, atoms in ((0, {7: (0, 1), 8: (0, 2)}), (1, {7: (0, 1)}), (2, {8: (0, 2)})):
        streams.gives(group, 0, begin(1, atoms))
    assert streams.gives(0, 1, message("c", q7=1, q8=1)) == []
    assert streams.misses(0) == (7, 0)
    assert streams.gives(1, 1, message("a", q7=0)) == ["a"]
    assert streams.misses(0) == (8, 0)
    assert streams.gives(2, 1, message("b", q8=0)) == ["b", "c"]


# Relevance


def test_the_numbers_of_an_atom_do_not_matter_to_one_who_is_in_one_of_its_groups_only() -> None:
    streams = Streams(0)
    streams.gives(0, 0, begin(1, SHARED))
    assert streams.gives(0, 1, message("a", q7=4), message("b", q7=9)) == ["a", "b"]


def test_an_atom_of_three_groups_does_not_matter_to_one_who_is_in_two_of_them() -> None:
    streams = Streams(0, 1)
    for group in (0, 1):
        streams.gives(group, 0, begin(1, {7: (0, 1, 2)}))
    assert streams.gives(0, 1, message("a", q7=3)) == ["a"]
    assert streams.gives(1, 1, message("b", q7=1)) == ["b"]


def test_a_group_that_is_left_in_an_epoch_counts_in_those_before() -> None:
    streams = Streams(0, 1)
    streams.ordering.streams[1].out, streams.ordering.streams[1].stop = 2, 2
    streams.gives(0, 0, begin(1, SHARED))
    streams.gives(1, 0, begin(1, SHARED))
    assert streams.ordering.streams[0].relevant == {7}
    streams.gives(1, 1, begin(2))
    assert streams.gives(0, 1, begin(2, SHARED)) == ["0:2"]
    assert streams.ordering.streams[0].relevant == frozenset()


def test_what_is_left_of_a_group_comes_before_a_group_that_is_joined_later() -> None:
    streams = Streams(0)
    streams.ordering.streams[0].out, streams.ordering.streams[0].stop = 2, 3
    streams.gives(0, 0, begin(1))
    streams.add(1, 3)
    assert streams.gives(1, 0, begin(3), message("late", 3)) == [], "others may be in both groups"
    assert streams.gives(0, 1, message("early", 1), begin(2)) == ["early", "left 0", "1:3", "late"]


def test_a_group_that_is_joined_later_does_not_count_before() -> None:
    streams = Streams(0)
    streams.add(1, first=2, start=5)
    streams.gives(0, 0, begin(1, SHARED))
    assert streams.ordering.streams[0].relevant == frozenset()
    assert streams.gives(0, 1, message("a", q7=3), begin(2, SHARED)) == ["a", "0:2"]
    assert streams.ordering.streams[0].relevant == {7}


# The end of an epoch


def test_a_missing_number_is_passed_over_only_when_all_groups_of_its_atom_are_complete() -> None:
    streams = two_groups()
    assert streams.gives(0, 1, message("b", q7=1)) == []
    assert streams.gives(0, 2, begin(2, SHARED)) == []
    assert streams.gives(1, 2, begin(2, SHARED)) == []  # entry 1 of group 1 may have number 0
    assert streams.gives(1, 1, message("c", q7=2)) == ["b", "0:2", "c", "1:2"]


def test_what_is_left_of_an_epoch_goes_in_the_order_of_its_numbers() -> None:
    streams = two_groups()
    streams.gives(0, 1, message("c", q7=5), begin(2, SHARED))
    assert streams.gives(1, 1, message("b", q7=3), message("d", q7=8), begin(2, SHARED)) == [
        "b", "c", "0:2", "d", "1:2",
    ]  # fmt: skip


def test_a_missing_number_is_not_passed_over_while_the_own_group_goes_on() -> None:
    streams = two_groups()
    assert streams.gives(1, 1, begin(2, SHARED)) == ["1:2"]
    assert streams.gives(0, 1, message("b", q7=1)) == []
    assert streams.gives(0, 2, begin(2, SHARED)) == ["b", "0:2"]


def test_numbers_begin_at_0_in_each_epoch() -> None:
    streams = two_groups()
    streams.gives(0, 1, message("a", q7=0), begin(2, SHARED))
    assert streams.gives(1, 1, begin(2, SHARED), message("b", 2, q7=0)) == ["1:2", "b"]
    assert streams.gives(0, 3, message("c", 2, q7=1)) == ["c"]


# From one epoch to the next


def test_an_epoch_begins_after_the_earlier_ones_of_its_kin() -> None:
    """Two trees merge: a message of the new epoch may have been sent after one of the other old tree."""
    streams = Streams(0)
    streams.add(1, first=2)
    streams.gives(0, 0, begin(1))
    streams.gives(1, 0, begin(2))
    assert streams.gives(0, 1, begin(3, SHARED, kin=(1,))) == []
    blockers = streams.ordering.blockers(streams.ordering.streams[0], begin(3, SHARED, kin=(1,)))
    assert [one.group for one in blockers] == [1]
    assert streams.gives(1, 1, message("late", 2)) == ["late"]
    assert streams.gives(1, 2, begin(3, SHARED, kin=(0,))) == ["1:3", "0:3"]


def test_groups_that_are_no_kin_are_not_waited_for() -> None:
    streams = Streams(0, 1)
    streams.gives(0, 0, begin(1))
    assert streams.gives(0, 1, begin(2)) == ["0:2"]


def test_kin_that_begins_later_in_the_same_change_is_not_waited_for() -> None:
    """A change makes epochs 3 and 4; whoever has come to one of them has finished those before the change."""
    streams = Streams(0, 1)
    streams.gives(0, 0, begin(1))
    streams.gives(1, 0, begin(1))
    assert streams.gives(0, 1, begin(4, kin=(1,), floor=3)) == []
    assert streams.gives(1, 1, begin(3, kin=(0,), floor=3)) == ["1:3", "0:4"]


def test_a_group_that_the_change_brought_is_not_waited_for() -> None:
    streams = Streams(0)
    streams.gives(0, 0, begin(1))
    streams.add(1, first=2, start=0)
    assert streams.gives(0, 1, begin(2, SHARED, kin=(1,))) == ["0:2"]


def test_an_epoch_at_the_horizon_is_not_entered() -> None:
    streams = two_groups()
    streams.ordering.horizon = 2
    assert streams.gives(0, 1, message("a", q7=0), begin(2, SHARED)) == ["a"]
    streams.ordering.horizon = 3
    assert streams.advances(0) == ["0:2"]
    streams.ordering.horizon = None
    assert streams.gives(0, 3, begin(9, SHARED)) == ["0:9"]


# Coming and going


def test_a_stream_ends_with_the_entry_in_front_of_its_stop() -> None:
    streams = two_groups()
    streams.ordering.streams[0].out = 2
    streams.ordering.streams[0].stop = 3
    assert streams.gives(0, 1, message("a", q7=0), begin(2), message("not for us", 2)) == ["a", "left 0"]
    assert list(streams.ordering.streams) == [1]


def test_an_entry_behind_the_stop_is_not_kept() -> None:
    streams = two_groups()
    stream = streams.ordering.streams[0]
    stream.stop = 3
    assert not stream.take(3, message("later"))


def test_a_lost_group_still_counts_in_its_epochs() -> None:
    """Its numbers never come, so what has them waits for the end of the epoch, and is not taken for free."""
    streams = two_groups()
    streams.ordering.streams[1].out = 3
    streams.ordering.remove(1)
    assert streams.gives(0, 1, message("b", q7=1)) == []
    assert streams.gives(0, 2, begin(2, SHARED)) == ["b", "0:2"]
    assert streams.ordering.streams[0].relevant == {7}
    assert streams.gives(0, 3, begin(3, SHARED)) == ["0:3"]
    assert streams.ordering.streams[0].relevant == frozenset()


def test_numbers_are_forgotten_with_the_last_stream_of_their_epoch() -> None:
    streams = two_groups()
    streams.gives(0, 1, begin(2, SHARED))
    assert set(streams.ordering._expected) == {1, 2}
    streams.gives(1, 1, begin(2, SHARED))
    assert set(streams.ordering._expected) == {2}


# A restart


def resumed(old: Ordering) -> Streams:
    """A new life of a subscriber, with what the earlier one had saved of each stream."""
    streams = Streams()
    for group, one in old.streams.items():
        stream = Stream(group, one.first, one.next, one.founder)
        stream.label, stream.last = one.label, one.last
        stream.atoms, stream.relevant = one.atoms, one.relevant
        streams.ordering.resume(stream)
    return streams


def test_a_new_life_goes_on_with_the_numbers_of_the_last_messages() -> None:
    streams = two_groups()
    streams.gives(0, 1, message("a", q7=0))
    streams.gives(1, 1, message("b", q7=1))
    streams = resumed(streams.ordering)
    assert streams.gives(1, 2, message("d", q7=3)) == []
    assert streams.misses(1) == (7, 2)
    assert streams.gives(0, 2, message("c", q7=2)) == ["c", "d"]


def test_a_new_life_expects_the_first_number_of_an_epoch_that_has_just_begun() -> None:
    streams = resumed(two_groups().ordering)
    assert streams.gives(0, 1, message("b", q7=1)) == []
    assert streams.gives(1, 1, message("a", q7=0)) == ["a", "b"]

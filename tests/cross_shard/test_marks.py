"""Marks: what a message is known by outside of its group."""

import pytest

from ordercast.components.cross_shard import CoordinatorOptions
from ordercast.components.cross_shard.marks import find, marks_of, taken, told
from ordercast.components.network_ordered import LogEntry
from ordercast.core import LocalError

ALONE = LogEntry(50, 1, 4, 9, b"alone")
BOTH = LogEntry(60, 1, 5, 9, b"both", (0, 2), (5, 7))


def test_a_message_has_a_mark_for_each_of_its_groups() -> None:
    assert marks_of(ALONE, 3) == ((1, 3, 4),)
    assert marks_of(BOTH, 0) == marks_of(BOTH, 2) == ((1, 0, 5), (1, 2, 7))


def test_others_are_told_all_groups_of_a_message() -> None:
    assert told(ALONE, 3) == LogEntry(50, 1, 4, 9, b"alone", (3,), (4,))
    assert told(BOTH, 0) == BOTH


def test_each_group_takes_a_message_with_its_own_number() -> None:
    assert taken(BOTH, 0) == BOTH
    assert taken(BOTH, 2) == LogEntry(60, 1, 7, 9, b"both", (0, 2), (5, 7))
    assert taken(BOTH, 1) is None


def test_what_was_told_of_one_group_is_taken_back_as_it_was() -> None:
    assert taken(told(ALONE, 3), 3) == ALONE
    assert taken(told(ALONE, 3), 0) is None


def test_a_message_is_found_by_any_of_its_marks() -> None:
    assert find([ALONE, BOTH], (1, 2, 7), 0) == BOTH
    assert find([ALONE, BOTH], (1, 0, 4), 0) == ALONE
    assert find([ALONE, BOTH], (1, 2, 4), 0) is None
    assert find([ALONE, BOTH], (2, 0, 4), 0) is None


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_a_coordinator_has_an_odd_number_of_replicas(replicas: int) -> None:
    with pytest.raises(LocalError, match=f"an odd number of replicas, not {replicas}"):
        CoordinatorOptions(replicas=replicas)
    assert CoordinatorOptions(replicas=replicas + 1).replicas == replicas + 1

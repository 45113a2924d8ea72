"""The sliding window: new once, and never new again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import LocalError, Seen


def admitted(window: int, *numbers: int) -> list[bool]:
    seen = Seen(window)
    return [seen.admit(number) for number in numbers]


def test_a_number_is_new_once() -> None:
    assert admitted(8, 5, 5, 6, 5, 6) == [True, False, True, False, False]


def test_numbers_may_come_in_any_order_within_the_window() -> None:
    assert admitted(4, 10, 7, 9, 8, 7, 8, 9) == [True, True, True, True, False, False, False]


def test_what_is_older_than_the_window_counts_as_seen() -> None:
    assert admitted(4, 10, 6, 7) == [True, False, True]


def test_a_window_of_one_takes_only_what_is_higher() -> None:
    assert admitted(1, 1, 3, 2, 3, 4) == [True, True, False, False, True]


def test_a_leap_forgets_what_lies_behind_the_window_but_not_that_it_is_old() -> None:
    assert admitted(4, 1, 2, 10**15, 2, 10**15 - 3) == [True, True, True, False, True]


def test_memory_is_bounded() -> None:
    seen = Seen(64)
    for number in range(10_000):
        assert seen.admit(number)
    assert seen._bits.bit_length() <= 64


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_has_a_width(window: int) -> None:
    with pytest.raises(LocalError, match=f"at least 1, not {window}"):
        Seen(window)


@given(st.integers(1, 12), st.lists(st.integers(0, 40)))
def test_it_agrees_with_a_set_of_all_numbers(window: int, numbers: list[int]) -> None:
    seen, known = Seen(window), set[int]()
    for number in numbers:
        new = number not in known and number > max(known, default=number) - window
        assert seen.admit(number) == new
        known.add(number)

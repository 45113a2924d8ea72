"""Durations as people write them."""

import pytest

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, format_ns


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (-999, "-999 ns"),
        (MICROSECOND, "1 us"),
        (1_250 * MICROSECOND, "1.25 ms"),
        (1_500, "1.5 us"),
        (SECOND, "1 s"),
        (-2 * SECOND, "-2 s"),
        (90 * SECOND + 500 * MILLISECOND, "90.5 s"),
        (123_456_789, "123.457 ms"),
    ],
)
def test_a_duration_gets_the_unit_that_a_person_would_choose(duration: int, text: str) -> None:
    assert format_ns(duration) == text


def test_units_are_whole_numbers_of_nanoseconds() -> None:
    assert (MICROSECOND, MILLISECOND, SECOND) == (10**3, 10**6, 10**9)
    assert all(type(unit) is int for unit in (MICROSECOND, MILLISECOND, SECOND))

"""Virtual time: in order of time, ties in order of asking, never back."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import LocalError
from ordercast.sim.scheduler import Scheduler


def test_a_run_in_which_time_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.sim.scheduler.INSTANT_MAX", 100)
    scheduler = Scheduler()

    def again() -> None:
        scheduler.after(0, again)

    scheduler.at(5, again)
    with pytest.raises(LocalError, match="100 events at 5 ns"):
        scheduler.run(10)


@given(st.lists(st.integers(0, 5), max_size=20))
def test_actions_run_in_order_of_time_and_ties_in_order_of_asking(times: list[int]) -> None:
    scheduler, ran = Scheduler(), list[tuple[int, int]]()
    for index, time in enumerate(times):
        scheduler.at(time, lambda index, time: ran.append((time, index)), index, time)
    scheduler.run(10)
    assert ran == sorted((time, index) for index, time in enumerate(times))


def test_now_is_the_time_of_the_action() -> None:
    scheduler, seen = Scheduler(), list[int]()
    for time in (7, 3):
        scheduler.at(time, lambda: seen.append(scheduler.now))
    scheduler.run(100)
    assert seen == [3, 7]
    assert scheduler.now == 100


def test_a_run_goes_up_to_and_including_its_end() -> None:
    scheduler, ran = Scheduler(), list[int]()
    for time in (9, 10, 11):
        scheduler.at(time, ran.append, time)
    scheduler.run(10)
    assert ran == [9, 10]
    assert scheduler.pending == 1


def test_an_action_asked_for_at_the_present_instant_still_runs_in_it() -> None:
    scheduler, ran = Scheduler(), list[str]()
    scheduler.at(5, lambda: scheduler.after(0, ran.append, "second"))
    scheduler.at(5, ran.append, "first")
    scheduler.run(5)
    assert ran == ["first", "second"]


def test_the_past_is_refused() -> None:
    scheduler = Scheduler()
    scheduler.run(10)
    with pytest.raises(LocalError, match="cannot schedule for 9 ns: it is already 10 ns"):
        scheduler.at(9, print)
    with pytest.raises(LocalError):
        scheduler.after(-1, print)
    assert scheduler.pending == 0


def test_a_run_to_the_past_changes_nothing() -> None:
    scheduler = Scheduler()
    scheduler.run(10)
    scheduler.run(5)
    assert scheduler.now == 10


def test_an_action_that_fails_stops_the_run_and_leaves_the_rest() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    scheduler, ran = Scheduler(), list[int]()
    scheduler.at(1, fail)
    scheduler.at(2, ran.append, 2)
    with pytest.raises(ZeroDivisionError):
        scheduler.run(10)
    assert gc.isenabled()
    assert (scheduler.now, ran) == (1, [])
    scheduler.run(10)
    assert ran == [2]

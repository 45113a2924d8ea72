"""The timers of a host, by a clock that the test moves; and an event loop whose waits are short enough."""

import asyncio
import time
from collections.abc import Iterator
from random import Random

import pytest

from ordercast.core import MICROSECOND, MILLISECOND, Nanos, NodeId
from ordercast.net.host.loop import new_event_loop
from ordercast.net.host.timers import Timers
from tests.live.processes import PATIENCE_S

LOOP = asyncio.new_event_loop


class TimersByHand:
    """Timers on a clock of their own, and what went off."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now: Nanos = 1_000
        self.fired: list[tuple[Nanos, NodeId, str]] = []
        self.done = 0
        self.timers = Timers(loop, self._fire, self._done, lambda: self.now)

    def _fire(self, node: NodeId, name: str) -> None:
        self.fired.append((self.now, node, name))

    def _done(self) -> None:
        self.done += 1

    def at(self, now: Nanos) -> list[tuple[NodeId, str]]:
        """What goes off at a time."""
        self.now, self.fired = now, []
        self.timers.run()
        return [(node, name) for _, node, name in self.fired]


@pytest.fixture
def hand() -> Iterator[TimersByHand]:
    loop = LOOP()
    yield TimersByHand(loop)
    loop.close()


def test_timers_go_off_in_the_order_of_their_times(hand: TimersByHand) -> None:
    for node, after in ((1, 300), (2, 100), (3, 200)):
        hand.timers.set(node, "a", after)
    assert hand.at(1_099) == []
    assert hand.at(1_250) == [(2, "a"), (3, "a")]
    assert hand.at(1_300) == [(1, "a")]
    assert hand.at(9_000) == []


def test_a_timer_that_is_set_again_goes_off_once_and_at_the_later_time(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 100)
    hand.timers.set(1, "a", 500)
    assert hand.at(1_499) == []
    assert hand.at(1_500) == [(1, "a")]
    assert hand.at(9_000) == []


def test_a_timer_that_is_set_sooner_goes_off_once_and_sooner(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 500)
    hand.timers.set(1, "a", 100)
    assert hand.at(1_100) == [(1, "a")]
    assert hand.at(9_000) == []


def test_a_cancelled_timer_does_not_go_off_unless_it_is_set_again(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 100)
    hand.timers.set(2, "a", 100)
    hand.timers.cancel(1, "a")
    hand.timers.cancel(7, "never set")
    assert hand.at(1_100) == [(2, "a")]
    hand.timers.set(1, "a", 100)
    hand.timers.cancel(1, "a")
    hand.timers.set(1, "a", 50)
    assert hand.at(1_150) == [(1, "a")]
    assert hand.at(9_000) == []


def test_names_are_those_of_a_node(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 100)
    hand.timers.set(1, "b", 100)
    hand.timers.set(2, "a", 100)
    hand.timers.cancel(1, "a")
    assert sorted(hand.at(1_100)) == [(1, "b"), (2, "a")]


def test_after_cancel_all_nothing_is_left_and_others_can_be_set(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 100)
    hand.timers.cancel_all()
    assert hand.at(5_000) == []
    hand.timers.set(1, "a", 100)
    assert hand.at(5_100) == [(1, "a")]


def test_the_end_of_the_turn_is_told_once_and_only_if_something_went_off(hand: TimersByHand) -> None:
    hand.timers.set(1, "a", 100)
    hand.timers.set(2, "a", 100)
    hand.at(1_050)
    assert hand.done == 0
    hand.at(1_100)
    assert hand.done == 1


def test_a_handler_may_set_its_own_timer_again(hand: TimersByHand) -> None:
    loop = LOOP()
    times: list[Nanos] = []
    now = 0

    def fire(node: NodeId, name: str) -> None:
        times.append(now)
        timers.set(node, name, 10)

    timers = Timers(loop, fire, lambda: None, lambda: now)
    timers.set(1, "tick", 10)
    for now in range(1, 51):  # noqa: B007 - the clock reads it
        timers.run()
    timers.cancel_all()
    loop.close()
    assert times == [10, 20, 30, 40, 50]


def test_they_do_what_a_plain_table_of_times_does(hand: TimersByHand) -> None:
    rng, due = Random(1), dict[tuple[NodeId, str], Nanos]()
    for _ in range(20_000):
        key = (rng.randrange(4), rng.choice("abc"))
        if rng.random() < 0.6:
            after = rng.choice((0, 1, 10, 100, 1_000))
            hand.timers.set(*key, after)
            due[key] = hand.now + after
        elif rng.random() < 0.5:
            hand.timers.cancel(*key)
            due.pop(key, None)
        else:
            expected = sorted(key for key, at in due.items() if at <= hand.now + 20)
            assert sorted(hand.at(hand.now + 20)) == expected
            for key in expected:
                del due[key]
    # One that is set again and again leaves outdated entries only where it was set to go off sooner.
    assert len(hand.timers._heap) < 200


TRIES = 300
"""However busy a machine is, it is on time once in so many."""


def in_loop(delay_ns: Nanos, times: int) -> list[Nanos]:
    """How much later than it should each of so many timers goes off, in a host's event loop."""
    late: list[Nanos] = []
    due = 0

    async def wait() -> None:
        gone = asyncio.Event()

        def fire(node: NodeId, name: str) -> None:
            late.append(time.monotonic_ns() - due)
            gone.set()

        timers = Timers(asyncio.get_running_loop(), fire, lambda: None)
        nonlocal due
        for _ in range(times):
            due = time.monotonic_ns() + delay_ns
            timers.set(1, "a", delay_ns)
            await asyncio.wait_for(gone.wait(), PATIENCE_S)
            gone.clear()
        timers.cancel_all()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(wait())
    return late


def test_no_timer_goes_off_early_and_short_ones_are_not_rounded_up_to_a_millisecond() -> None:
    late = in_loop(100 * MICROSECOND, TRIES)
    assert len(late) == TRIES
    assert min(late) >= 0
    assert min(late) < 800 * MICROSECOND, "the usual loop would wait for a millisecond every time"


def test_long_waits_end_too() -> None:
    late = in_loop(3 * MILLISECOND, 5)
    assert len(late) == 5
    assert min(late) >= 0


def test_an_event_ends_a_short_wait_early() -> None:
    async def wait() -> float:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        loop.call_later(0.0009, lambda: None)  # so that the loop waits for a short time
        loop.run_in_executor(None, lambda: loop.call_soon_threadsafe(woken.set_result, loop.time()))
        return float(await asyncio.wait_for(woken, PATIENCE_S))

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(wait()) > 0

"""What was handed over is remembered in bounded room: never twice, never out of order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import Delivered
from ordercast.protocols.epto.memory import Memory
from ordercast.protocols.epto.messages import Key
from ordercast.protocols.epto.ordering import START
from tests.epto.lab import Bench, event, key

LIMIT = 8
Heard = tuple[int, int, int, int]
"""Of an event: rounds before it is heard of, timestamp, source and age."""
heard = st.tuples(st.integers(0, 2), st.integers(1, 40), st.integers(1, 2), st.integers(1, 3))


def test_what_is_added_is_remembered_or_below_the_floor() -> None:
    memory = Memory(LIMIT, START)
    for ts in range(100):
        memory.add(key(ts))
        assert key(ts) in memory
        assert len(memory) <= LIMIT
    assert all(key(ts) in memory for ts in range(100))
    assert key(100) not in memory


def test_a_late_event_between_two_delivered_ones_is_new_as_long_as_the_floor_is_below_it() -> None:
    memory = Memory(LIMIT, START)
    for ts in range(0, 12, 2):
        memory.add(key(ts))
    assert key(5) not in memory
    memory.add_late(key(5))
    assert key(5) in memory
    for ts in range(12, 60, 2):
        memory.add(key(ts))
    assert memory.floor > key(5)
    assert key(7) in memory  # it was not, but nobody knows any more


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=150))
def test_nothing_that_was_handed_over_is_forgotten_and_the_floor_only_rises(
    steps: list[tuple[bool, int]],
) -> None:
    memory, handed_over, last = Memory(LIMIT, START), set[Key](), START
    for late, ts in steps:
        floor = memory.floor
        if late and key(ts) < last and key(ts) not in memory:
            memory.add_late(key(ts))
        elif not late and key(ts) > last:
            last = key(ts)
            memory.add(last)
        else:
            continue
        handed_over.add(key(ts))
        assert len(memory) <= LIMIT
        assert floor <= memory.floor <= last
        assert all(old in memory for old in handed_over)


def run(balls: list[Heard], memory: int) -> Bench:
    """A peer that tags late events and hears of these, each in a ball of its own."""
    bench = Bench(tags=True, memory=memory, ttl=4)
    for rounds, ts, source, age in balls:
        bench.round(rounds)
        bench.hear((event(f"{ts}/{source}", ts, source), age))
    bench.round(20)
    return bench


@given(st.lists(heard, max_size=120))
def test_a_peer_that_forgets_delivers_like_one_that_does_not_but_for_some_late_events(
    balls: list[Heard],
) -> None:
    bounded, unbounded = run(balls, LIMIT), run(balls, 1 << 30)
    for bench in (bounded, unbounded):
        assert len(set(bench.words())) == len(bench.words())
        words = [word.strip("()") for word in bench.words()]
        assert len(set(words)) == len(words)
    places = [
        [delivery.stamp for delivery in bench.env.delivered if isinstance(delivery, Delivered)]
        for bench in (bounded, unbounded)
    ]
    assert places[0] == places[1]
    order = [(stamp.clock, stamp.issuer) for stamp in places[0] if stamp]
    assert order == sorted(order)
    remaining = iter(unbounded.words())
    assert all(word in remaining for word in bounded.words())


@pytest.mark.parametrize("late", [True, False])
def test_a_late_event_is_handed_over_once_and_tagged_or_dropped(late: bool) -> None:
    bench = Bench(tags=late, ttl=2)
    bench.hear((event("second", 2), 1))
    bench.round(3)
    for _ in range(3):
        bench.hear((event("first", 1), 1))
        bench.round(3)
    assert bench.words() == (["second", "(first)"] if late else ["second"])
    assert bench.peer.explain().state.get("came too late") == (1 if late else None)

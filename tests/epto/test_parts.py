"""The parts of a peer: the next ball, the ordering component, the clocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, RemoteError
from ordercast.protocols.epto.clocks import JUMP_MAX, GlobalClock, LogicalClock
from ordercast.protocols.epto.dissemination import NextBall
from ordercast.protocols.epto.messages import (
    BALL_BYTES,
    CLOCK_MAX,
    EVENTS_MAX,
    TTL_MAX,
    Ball,
    Event,
    Key,
    LogicalTime,
)
from ordercast.protocols.epto.ordering import START, Ordering
from tests.epto.lab import event, key
from tests.paper.epto_printed import Printed

# The next ball


def ball_of(*sizes: int) -> NextBall:
    heard = NextBall()
    for ts, size in enumerate(sizes):
        heard.put(key(ts), Event(ts, 1, 1, (0,), bytes(size)), 1)
    return heard


def test_nothing_makes_no_ball() -> None:
    assert list(NextBall().balls()) == []
    assert not NextBall()


def test_a_ball_that_is_not_too_large_is_one_message() -> None:
    (ball,) = ball_of(100, 0, 5).balls()
    assert [len(one.payload) for one in ball.events] == [100, 0, 5]
    assert ball.ttls == (1, 1, 1)


def test_a_large_ball_is_split_without_losing_or_doubling_an_event() -> None:
    sizes = [BALL_BYTES // 3] * 7 + [BALL_BYTES] * 2 + [0] * 10
    balls = list(ball_of(*sizes).balls())
    assert [one.ts for ball in balls for one in ball.events] == list(range(len(sizes)))
    assert all(len(ball.ttls) == len(ball.events) > 0 for ball in balls)
    assert len(balls) == 7  # two, two, two and one of the first size, one each of the next, and the rest
    for ball in balls:
        assert len(ball.events) == 1 or sum(len(one.payload) for one in ball.events) <= BALL_BYTES


def test_a_ball_of_many_events_is_split_by_their_number() -> None:
    heard, empty = NextBall(), event("", 0)
    for ts in range(EVENTS_MAX + 1):
        heard.put(key(ts), empty, 1)
    assert sum(len(ball.events) for ball in heard.balls()) == EVENTS_MAX + 1
    assert max(len(ball.events) for ball in heard.balls()) <= EVENTS_MAX


@pytest.mark.parametrize(
    "message",
    [
        Ball((0,), (event("", 1),)),
        Ball((TTL_MAX + 1,), (event("", 1),)),
        Ball((1,), (event("", -1),)),
        Ball((1,), (event("", CLOCK_MAX + 1),)),
        Ball((1,), (event("", 1, source=-1),)),
        LogicalTime(-1),
    ],
)
def test_bytes_that_no_peer_sends_are_refused(message: Ball | LogicalTime) -> None:
    protocol = find_protocol("epto")
    codec = protocol.deploy(Deployment.disjoint(1, 3, 1), protocol.options()).codec
    data = codec.encode(message)
    with pytest.raises(RemoteError):
        codec.decode(data)


# The ordering component

Step = tuple[int, int, int, int]
"""A timestamp, a source, an age, and how many rounds later."""
steps = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(1, 4), st.integers(0, 2)), max_size=60
)


class Plain:
    """The rule itself: the smallest known event is delivered when its age is above the limit."""

    def __init__(self, ttl: int) -> None:
        self.ttl = ttl
        self.born: dict[Key, int] = {}
        self.last = START

    def admit(self, place: Key, age: int, now: int) -> bool:
        if place <= self.last:
            return False
        self.born[place] = min(self.born.get(place, now - age), now - age)
        return True

    def stable(self, now: int) -> list[Key]:
        found = []
        while self.born and now - self.born[min(self.born)] > self.ttl:
            self.last = min(self.born)
            del self.born[self.last]
            found.append(self.last)
        return found


@given(steps)
def test_the_heap_orders_like_the_rule(heard: list[Step]) -> None:
    order, plain, now = Ordering(3), Plain(3), 0
    for ts, source, age, later in heard:
        for _ in range(later):
            now += 1
            assert [place for place, _ in order.stable(now)] == plain.stable(now)
        assert order.admit(key(ts, source), event("", ts, source), age, now) == plain.admit(
            key(ts, source), age, now
        )
        assert order.last == plain.last
        assert [place for place, _, _ in order.waiting(now)] == sorted(plain.born)
        assert len(order) == len(plain.born)


@given(steps)
def test_the_delivered_keys_only_grow_and_waiting_events_are_above_them(heard: list[Step]) -> None:
    order, now, delivered = Ordering(3), 0, list[Key]()
    for ts, source, age, later in heard:
        now += later
        order.admit(key(ts, source), event("", ts, source), age, now)
        delivered += [place for place, _ in order.stable(now)]
        assert all(place > order.last for place, _, _ in order.waiting(now))
    assert delivered == sorted(set(delivered))


@given(st.permutations(range(8)), st.integers(1, 4))
def test_with_different_timestamps_the_printed_algorithm_orders_alike(order: list[int], ttl: int) -> None:
    ours, theirs = Ordering(ttl), Printed(ttl)
    delivered: list[list[Key]] = [[], []]
    for now, ts in enumerate([*order, *[-1] * (ttl + 2)]):
        for which, component in enumerate((ours, theirs)):
            if ts >= 0:
                component.admit(key(ts), event("", ts), 1, now)
            delivered[which] += [place for place, _ in component.stable(now)]
    assert delivered[0] == delivered[1]
    assert delivered[0]


# The clocks


def test_a_logical_clock_is_one_above_all_it_heard_and_all_it_gave() -> None:
    clock = LogicalClock()
    assert clock.stamp(now=99, floor=-1) == 1
    clock.hear(5)
    clock.hear(3)
    assert clock.read(now=99) == 5
    assert clock.stamp(now=99, floor=-1) == 6
    assert clock.stamp(now=99, floor=20) == 21
    assert clock.read(now=99) == 21


def test_a_logical_clock_does_not_believe_in_a_jump_that_would_use_the_numbers_up() -> None:
    clock = LogicalClock()
    clock.hear(5)
    assert clock.believes(5 + JUMP_MAX, now=0)
    assert not clock.believes(6 + JUMP_MAX, now=0)
    assert CLOCK_MAX // JUMP_MAX > 1_000_000


def test_a_global_clock_is_the_time_unless_that_is_behind_what_was_delivered() -> None:
    clock = GlobalClock(ahead_ns=100)
    assert clock.stamp(now=50, floor=-1) == 50
    assert clock.stamp(now=50, floor=50) == 51
    clock.hear(1000)
    assert clock.read(now=60) == 60
    assert clock.stamp(now=60, floor=51) == 60


def test_a_global_clock_does_not_believe_in_the_far_future() -> None:
    clock = GlobalClock(ahead_ns=100)
    assert clock.believes(160, now=60)
    assert not clock.believes(161, now=60)
    assert clock.believes(0, now=60)

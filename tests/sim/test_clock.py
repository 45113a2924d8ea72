"""A node's own clock: wrong, drifting, stepped, never backwards; and its timers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import MILLISECOND, SECOND, LocalError
from ordercast.scenario.clock import PPB, Clock
from ordercast.scenario.faults import SetClock
from tests.sim.probes import ProbeWorld

DRIFTS = st.integers(-PPB // 2, PPB)
ACTIONS = st.lists(
    st.tuples(
        st.integers(0, SECOND),
        st.one_of(
            st.just(("read", 0)),
            st.tuples(st.just("step"), st.integers(-SECOND, SECOND)),
            st.tuples(st.just("drift"), DRIFTS),
            st.tuples(st.just("hold"), st.integers(0, SECOND)),
        ),
    ),
    max_size=20,
)


@given(st.integers(0, SECOND), DRIFTS, ACTIONS)
def test_no_clock_ever_runs_backwards(
    skew: int, drift: int, actions: list[tuple[int, tuple[str, int]]]
) -> None:
    clock, now, last = Clock(skew, drift), 0, -1
    for wait, (action, value) in actions:
        now += wait
        before = clock.read(now)
        assert before >= max(0, last)
        if action == "step":
            clock.step(value)
        elif action == "drift":
            clock.set_drift(now, value)
        elif action == "hold":
            clock.hold(value)
        last = clock.read(now)
        assert last >= before


def test_a_good_clock_tells_the_true_time() -> None:
    assert [Clock().read(time) for time in (0, 1, SECOND)] == [0, 1, SECOND]


def test_skew_is_a_constant_difference() -> None:
    clock = Clock(skew_ns=500)
    assert [clock.read(time) for time in (0, 1000)] == [500, 1500]


@pytest.mark.parametrize(("drift", "gained"), [(1_000, 1_000), (-1_000, -1_000), (0, 0), (PPB, SECOND)])
def test_drift_gains_so_many_nanoseconds_a_second(drift: int, gained: int) -> None:
    assert Clock(drift_ppb=drift).read(SECOND) == SECOND + gained


def test_a_change_of_drift_does_not_jump() -> None:
    clock = Clock(drift_ppb=PPB // 2)
    assert clock.read(SECOND) == SECOND + SECOND // 2
    clock.set_drift(SECOND, 0)
    assert clock.read(SECOND) == SECOND + SECOND // 2
    assert clock.read(2 * SECOND) == 2 * SECOND + SECOND // 2


def test_a_step_back_stands_still_until_it_has_caught_up() -> None:
    clock = Clock()
    assert clock.read(1000) == 1000
    clock.step(-300)
    assert [clock.read(time) for time in (1000, 1100, 1300, 1301, 1400)] == [1000, 1000, 1000, 1001, 1100]


def test_a_step_forward_shows_at_once() -> None:
    clock = Clock()
    clock.read(1000)
    clock.step(300)
    assert clock.read(1000) == 1300


@pytest.mark.parametrize("drift", [-PPB // 2 - 1, PPB + 1])
def test_a_drift_that_no_clock_has_is_refused(drift: int) -> None:
    with pytest.raises(LocalError, match="drift must be from"):
        Clock(drift_ppb=drift)


def test_a_clock_before_zero_is_refused() -> None:
    with pytest.raises(LocalError, match="at least 0 ns"):
        Clock(-1)


@given(DRIFTS, st.integers(0, SECOND), st.integers(0, SECOND))
def test_a_timer_is_never_early_and_at_most_a_moment_late(drift: int, start: int, duration: int) -> None:
    clock = Clock(drift_ppb=drift)
    set_at = clock.read(start)
    fires = start + clock.true_duration(duration)
    assert duration <= clock.read(fires) - set_at <= duration + 2


def test_a_timer_of_a_fast_clock_takes_less_true_time() -> None:
    world = ProbeWorld(clocks={0: Clock(drift_ppb=PPB // 4), 1: Clock(drift_ppb=-PPB // 5)})
    for node in (0, 1):
        world.do(node, lambda probe: probe.env.set_timer("tick", MILLISECOND))
    world.run(MILLISECOND * 4 // 5 - 1)
    assert world.probe(0).fired == []
    world.run(MILLISECOND * 4 // 5)
    assert world.probe(0).fired == [(MILLISECOND, "tick")]
    world.run(MILLISECOND * 5 // 4 - 1)
    assert world.probe(1).fired == []
    world.run(MILLISECOND * 5 // 4)
    assert world.probe(1).fired == [(MILLISECOND, "tick")]


def test_a_process_that_waits_for_a_reading_gets_there() -> None:
    # With timers rounded down, a fast clock let the last nanosecond be waited for again and again.
    world = ProbeWorld(clocks={0: Clock(drift_ppb=333_333)})
    deadline = 1_000_003

    def wait(probe: object) -> None:
        env = world.envs[0]
        if env.now < deadline:
            env.set_timer("wait", deadline - env.now)

    world.probe(0).on["wait"] = wait
    world.do(0, wait)
    world.run(2_000_000)
    assert world.probe(0).fired[-1][0] >= deadline
    assert len(world.probe(0).fired) <= 2


def test_the_fault_steps_the_clock_of_a_host_once_for_all_its_processes() -> None:
    shared = Clock(skew_ns=1000)
    for clocks, skew in (({0: shared}, 1000), (None, 0)):
        world = ProbeWorld((0, 0, 1), clocks=clocks)
        SetClock(at_ms=0, host=0, step_us=5).strike(world)
        readings = list[int]()
        for node in range(3):
            world.do(node, lambda probe, seen=readings: seen.append(probe.env.now))  # type: ignore[misc]
        assert readings == [skew + 5000, skew + 5000, 0]


def test_a_stepped_back_clock_stands_still_for_its_process() -> None:
    world = ProbeWorld(delay=0)
    world.run(MILLISECOND)
    world.say(1, 0, "before")
    SetClock(at_ms=0, host=0, step_us=-500).strike(world)
    world.run(MILLISECOND + 400_000)
    world.say(1, 0, "while")
    world.run(2 * MILLISECOND)
    world.say(1, 0, "after")
    assert world.probe(0).times() == [MILLISECOND, MILLISECOND, MILLISECOND + 500_000]

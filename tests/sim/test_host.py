"""A machine's CPU: one piece of work at a time, first come, first served."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import MICROSECOND, MILLISECOND, SECOND
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import Pause
from ordercast.sim.host import Host
from ordercast.sim.scheduler import Scheduler
from tests.sim.probes import Probe, ProbeWorld, Word


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=15))
def test_work_is_served_first_come_first_served_at_its_cost(jobs: list[tuple[int, int]]) -> None:
    scheduler = Scheduler()
    host, done = Host(0, Cpu(), scheduler), list[tuple[int, int]]()
    for index, (time, cost) in enumerate(jobs):
        scheduler.at(time, host.work, cost, lambda index: done.append((index, scheduler.now)), index)
    scheduler.run(SECOND)
    expected, free = [], 0
    for index, (time, cost) in sorted(enumerate(jobs), key=lambda job: job[1][0]):
        free = max(free, time) + cost
        expected.append((index, free))
    assert done == expected
    assert host.busy_ns == sum(cost for _, cost in jobs)


@given(st.lists(st.integers(0, 100), max_size=15), st.integers(0, 20))
def test_packets_are_served_first_come_first_served_at_their_cost(times: list[int], cost: int) -> None:
    scheduler = Scheduler()
    host, done = Host(0, Cpu(receive_ns=cost), scheduler), list[int]()
    for time in times:  # a network lets `arrive` happen at the end of the service time
        scheduler.at(time + cost, host.arrive, lambda: done.append(scheduler.now))
    scheduler.run(SECOND)
    expected, free = [], 0
    for time in sorted(times):
        free = max(free, time) + cost
        expected.append(free)
    assert done == expected


def test_an_idle_host_costs_a_packet_its_service_time_once() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    world.say(0, 1, "hello")
    world.run(SECOND)
    assert world.probe(1).times() == [1100]
    assert world.hosts[1].busy_ns == 1000


def test_above_capacity_the_throughput_is_that_of_the_cpu() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=10 * MICROSECOND)})
    for number in range(2000):  # one every 4 microseconds, and the CPU needs 10
        world.say(0, 1, str(number), at=number * 4 * MICROSECOND)
    world.run(8 * MILLISECOND)
    assert world.probe(1).texts() == [str(number) for number in range(len(world.probe(1).heard))]
    assert len(world.probe(1).heard) == pytest.approx(800, abs=1)
    world.run(SECOND)
    assert len(world.probe(1).heard) == 2000
    gaps = {
        after - before
        for before, after in zip(world.probe(1).times(), world.probe(1).times()[1:], strict=False)
    }
    assert gaps == {10 * MICROSECOND}


def test_below_capacity_nothing_waits() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=10 * MICROSECOND)})
    for number in range(100):
        world.say(0, 1, str(number), at=number * 11 * MICROSECOND)
    world.run(SECOND)
    assert world.probe(1).times() == [number * 11_000 + 10_100 for number in range(100)]


def test_sends_take_time_one_after_the_other() -> None:
    world = ProbeWorld(cpu={0: Cpu(send_ns=500)})

    def chatter(probe: Probe) -> None:
        for text in "abc":
            probe.env.send(1, Word(text))

    world.do(0, chatter)
    world.run(SECOND)
    assert world.probe(1).times() == [600, 1100, 1600]
    assert world.hosts[0].busy_ns == 1500


def test_sends_and_saves_keep_later_work_waiting() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000, send_ns=300, save_ns=2000)})

    def answer(probe: object) -> None:
        env = world.envs[1]
        env.save("state", b"x")
        env.send(0, Word("done"))

    world.probe(1).on["first"] = answer
    world.say(0, 1, "first")
    world.say(0, 1, "second")
    world.run(SECOND)
    assert world.probe(0).times() == [1100 + 2000 + 300 + 100]
    assert world.probe(1).times() == [1100, 1100 + 2000 + 300 + 1000]
    assert world.hosts[1].busy_ns == 1000 + 2000 + 300 + 1000


def test_a_send_from_a_long_idle_host_leaves_now_and_not_in_the_past() -> None:
    world = ProbeWorld(cpu=Cpu(send_ns=10))
    world.say(0, 1, "early")
    world.run(SECOND)
    world.say(0, 1, "late")
    world.envs[0].send(1, Word("from outside of any handler"))
    world.run(2 * SECOND)
    assert world.probe(1).times() == [110, SECOND + 110, SECOND + 120]


def test_a_full_queue_drops_packets() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000, queue_max=5)})
    for number in range(20):
        world.say(0, 1, str(number))
    world.run(SECOND)
    assert world.probe(1).texts() == ["0", "1", "2", "3", "4", "5"]
    assert world.hosts[1].overflowed == 14


def test_a_full_queue_loses_no_timer() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000, queue_max=5)})
    world.do(1, lambda probe: probe.env.set_timer("tick", 1500))
    for number in range(20):
        world.say(0, 1, str(number))
    world.run(SECOND)
    assert [name for _, name in world.probe(1).fired] == ["tick"]


def test_a_timer_waits_for_the_cpu() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    world.do(1, lambda probe: probe.env.set_timer("tick", 1200))
    for text in ("a", "b"):
        world.say(0, 1, text)
    world.run(SECOND)
    assert world.probe(1).times() == [1100, 2100]
    assert world.probe(1).fired == [(2100, "tick")]


def test_a_timer_without_cost_does_not_delay_the_packet_in_service() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    world.do(1, lambda probe: probe.env.set_timer("tick", 600))
    world.say(0, 1, "hello")
    world.run(SECOND)
    assert world.probe(1).fired == [(600, "tick")]
    assert world.probe(1).times() == [1100]


def test_a_timer_cancelled_or_armed_again_while_it_waits_for_the_cpu_does_not_fire() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    for name in ("gone", "later"):
        world.do(1, lambda probe, name=name: probe.env.set_timer(name, 1200))  # type: ignore[misc]
    world.say(0, 1, "a")
    world.say(0, 1, "change")

    def change(probe: Probe) -> None:
        probe.env.cancel_timer("gone")
        probe.env.set_timer("later", 5000)

    world.probe(1).on["change"] = change
    world.run(SECOND)
    assert world.probe(1).fired == [(2100 + 5000, "later")]


def test_a_pause_delays_everything_and_loses_nothing() -> None:
    world = ProbeWorld()
    world.do(1, lambda probe: probe.env.set_timer("tick", 50))
    Pause(at_ms=0, host=1, for_ms=1).strike(world)
    for number in range(3):
        world.say(0, 1, str(number))
    world.run(SECOND)
    assert world.probe(1).heard == [(MILLISECOND, 0, str(number)) for number in range(3)]
    assert world.probe(1).fired == [(MILLISECOND, "tick")]


def test_a_pause_adds_to_the_service_time_of_waiting_work() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    for text in ("a", "b"):
        world.say(0, 1, text)
    world.run(1500)
    Pause(at_ms=0, host=1, for_ms=0.01).strike(world)
    world.run(SECOND)
    assert world.probe(1).times() == [1100, 1500 + 10_000 + 1000]


def test_processes_of_one_host_share_its_cpu() -> None:
    world = ProbeWorld((0, 1, 1), cpu={1: Cpu(receive_ns=1000)})
    for target in (1, 2):
        world.say(0, target, "hello")
    world.run(SECOND)
    assert (world.probe(1).times(), world.probe(2).times()) == ([1100], [2100])


def test_the_wake_up_of_an_earlier_life_does_not_hold_up_the_next() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    Pause(at_ms=0, host=1, for_ms=1000).strike(world)
    world.say(0, 1, "waits until the pause is over")
    world.run(10_000)
    world.crash(1)
    world.restart(1)
    for text in "abc":  # the second finds the CPU busy, and must be woken for
        world.say(0, 1, text)
    world.run(MILLISECOND)
    assert world.probe(1).heard == [(11_100, 0, "a"), (12_100, 0, "b"), (13_100, 0, "c")]


def test_a_packet_that_came_while_the_host_was_down_is_gone() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    world.crash(1)
    world.say(0, 1, "comes at 100")
    world.run(500)
    world.restart(1)
    world.say(0, 1, "comes at 600")
    world.run(SECOND)
    assert world.probe(1).heard == [(1600, 0, "comes at 600")]

"""Crashes, restarts, amnesia, pauses: what a fault does to processes, timers and packets."""

from itertools import pairwise
from typing import Literal

import pytest

from ordercast.core import MILLISECOND, SECOND, LocalError
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import Crash, Partition, Pause, Restart, SetClock
from ordercast.trace import Event, Kind
from tests.sim.probes import Probe, ProbeWorld, Word


def test_a_crashed_host_hears_and_does_nothing() -> None:
    world = ProbeWorld()
    world.do(1, lambda probe: probe.env.set_timer("tick", 500))
    dead = world.probe(1)
    world.say(0, 1, "under way")
    Crash(at_ms=0, host=1).strike(world)
    world.say(0, 1, "too late")
    world.run(SECOND)
    assert (dead.heard, dead.fired) == ([], [])


def test_work_that_waited_for_the_cpu_dies_with_the_host() -> None:
    world = ProbeWorld(cpu={1: Cpu(receive_ns=1000)})
    for number in range(5):
        world.say(0, 1, str(number))
    world.run(2500)
    dead = world.probe(1)
    Crash(at_ms=0, host=1).strike(world)
    Restart(at_ms=0, host=1).strike(world)
    world.run(SECOND)
    assert dead.texts() == ["0", "1"]
    assert world.probe(1).heard == []


def test_all_processes_of_a_host_crash_together() -> None:
    world = ProbeWorld((0, 1, 1))
    Crash(at_ms=0, host=1).strike(world)
    assert [(row[2], row[3]) for row in world.rows] == [(1, Kind.CRASH), (2, Kind.CRASH)]


def test_a_packet_in_flight_to_a_dead_host_vanishes_and_a_later_one_arrives() -> None:
    world = ProbeWorld(delay=1000)
    world.say(0, 1, "arrives while it is down", at=0)
    world.say(0, 1, "arrives after the restart", at=500)
    world.run(0)
    Crash(at_ms=0, host=1).strike(world)
    world.run(1200)
    Restart(at_ms=0, host=1).strike(world)
    world.run(SECOND)
    assert world.probe(1).heard == [(1500, 0, "arrives after the restart")]


def test_timers_of_an_earlier_life_do_not_fire_in_the_next() -> None:
    world = ProbeWorld()
    world.do(1, lambda probe: probe.env.set_timer("tick", 500))
    Crash(at_ms=0, host=1).strike(world)
    Restart(at_ms=0, host=1).strike(world)
    world.do(1, lambda probe: probe.env.set_timer("tick", 900))
    world.run(SECOND)
    assert world.probe(1).fired == [(900, "tick")]


def test_a_restart_gets_what_was_saved_and_amnesia_gets_nothing() -> None:
    cases: list[tuple[Literal["saved", "lost"], dict[str, bytes]]]
    cases = [("saved", {"a": b"2", "c": b"3"}), ("lost", {})]
    for state, found in cases:
        world = ProbeWorld()

        def keep(probe: Probe) -> None:
            probe.env.save("a", b"1")
            probe.env.save("b", b"1")
            probe.env.save("a", b"2")
            probe.env.save("b", None)
            probe.env.save("c", b"3")
            probe.env.save("never", None)
            probe.env.send(0, Word("so it is durable"))

        world.do(1, keep)
        Crash(at_ms=0, host=1).strike(world)
        Restart(at_ms=0, host=1, state=state).strike(world)
        assert world.probe(1).saved == found
        Crash(at_ms=0, host=1).strike(world)
        Restart(at_ms=0, host=1).strike(world)
        assert world.probe(1).saved == found  # an empty disk stays empty


def test_a_new_life_is_a_new_process_with_a_later_clock() -> None:
    world = ProbeWorld()
    first = world.probe(1)
    readings = [world.envs[1].now]
    for _ in range(3):  # all at one instant
        Crash(at_ms=0, host=1).strike(world)
        Restart(at_ms=0, host=1).strike(world)
        readings.append(world.envs[1].now)
    assert world.probe(1) is not first
    assert readings == sorted(set(readings))


def test_a_second_crash_and_a_restart_of_the_living_change_nothing() -> None:
    world = ProbeWorld()
    alive = world.probe(1)
    Restart(at_ms=0, host=1).strike(world)
    assert world.probe(1) is alive
    Crash(at_ms=0, host=1).strike(world)
    Crash(at_ms=0, host=1).strike(world)
    assert [row[3] for row in world.rows] == [Kind.CRASH]


def test_the_trace_tells_of_crash_and_recovery() -> None:
    world = ProbeWorld()
    world.run(700)
    Crash(at_ms=0, host=1).strike(world)
    world.run(900)
    Restart(at_ms=0, host=1, state="lost").strike(world)
    events = [Event._make(row) for row in world.rows]
    assert [(event.time_ns, event.node, event.kind, event.label) for event in events] == [
        (700, 1, Kind.CRASH, None),
        (900, 1, Kind.RECOVER, "lost"),
    ]


def test_what_waited_at_a_crashed_sender_is_lost() -> None:
    world = ProbeWorld(groups={0: (1,)}, senders=(0,))
    Pause(at_ms=0, host=0, for_ms=1).strike(world)
    assert world.submit(0, (0,), b"waits") is not None
    Crash(at_ms=0, host=0).strike(world)
    assert world.submit(0, (0,), b"nobody there") is None
    Restart(at_ms=0, host=0).strike(world)
    assert world.submit(0, (0,), b"sent") is not None
    world.run(SECOND)
    assert world.delivered == 1
    assert [row[3] for row in world.rows].count(Kind.SUBMIT) == 2


def test_a_pause_ends_and_says_when() -> None:
    pause = Pause(at_ms=1.5, host=0, for_ms=2)
    assert (pause.at_ns, pause.ends_ns) == (1_500_000, 3_500_000)
    assert Crash(at_ms=1.5, host=0).ends_ns == 1_500_000


def test_pauses_add_up() -> None:
    world = ProbeWorld()
    for _ in range(2):
        Pause(at_ms=0, host=1, for_ms=1).strike(world)
    world.say(0, 1, "hello")
    world.run(SECOND)
    assert world.probe(1).times() == [2 * MILLISECOND]


@pytest.mark.parametrize(
    "fault",
    [
        Crash(at_ms=0, host=9),
        Restart(at_ms=0, host=9),
        Pause(at_ms=0, host=9, for_ms=1),
        SetClock(at_ms=0, host=9, step_us=1),
    ],
)
def test_a_host_that_is_not_there_is_the_callers_fault(fault: Crash | Restart | Pause | SetClock) -> None:
    with pytest.raises(LocalError, match="no host 9"):
        fault.strike(ProbeWorld())


def test_a_partition_of_hosts_without_packets_does_no_harm() -> None:
    world = ProbeWorld()
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    world.run(SECOND)
    assert world.rows == []


def burst(probe: Probe) -> None:
    """A handler that sends a hundred packets, of which each takes a millisecond to leave."""
    for number in range(100):
        probe.env.send(1, Word(str(number)))


def test_packets_that_had_not_left_die_with_their_host() -> None:
    world = ProbeWorld(cpu={0: Cpu(send_ns=MILLISECOND)})
    world.do(0, burst)
    world.run(5 * MILLISECOND + MILLISECOND // 2)
    Crash(at_ms=0, host=0).strike(world)
    Restart(at_ms=0, host=0).strike(world)
    world.run(SECOND)
    assert world.probe(1).texts() == ["0", "1", "2", "3", "4"]


def test_packets_that_had_not_left_are_cut_off_by_a_partition() -> None:
    world = ProbeWorld(cpu={0: Cpu(send_ns=MILLISECOND)})
    world.do(0, burst)
    world.run(5 * MILLISECOND + MILLISECOND // 2)
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    world.run(SECOND)
    assert world.probe(1).texts() == ["0", "1", "2", "3", "4"]


def test_packets_that_had_not_left_wait_for_the_end_of_a_pause() -> None:
    world = ProbeWorld(cpu={0: Cpu(send_ns=MILLISECOND)})
    world.do(0, burst)
    world.run(5 * MILLISECOND + MILLISECOND // 2)
    Pause(at_ms=0, host=0, for_ms=500).strike(world)
    world.run(500 * MILLISECOND)
    assert len(world.probe(1).heard) == 5
    world.run(SECOND)
    assert world.probe(1).texts() == [str(number) for number in range(100)]
    gaps = [after[0] - before[0] for before, after in pairwise(world.probe(1).heard)]
    assert gaps == [501 * MILLISECOND if index == 4 else MILLISECOND for index in range(99)]


def test_a_packet_to_a_node_that_is_not_there_is_refused() -> None:
    world = ProbeWorld()
    with pytest.raises(LocalError, match="node 0 sends to node -1"):
        world.do(0, lambda probe: probe.env.send(-1, Word("nobody")))
        world.run(SECOND)

"""Misfortunes of packets: loss, duplication, reordering, partitions."""

import pytest

from ordercast.core import MILLISECOND, LocalError
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Delay, Heal, Partition, Weather
from ordercast.trace import Event, Kind
from tests.sim.probes import ProbeWorld

PACKETS = 4000


def received(conditions: Conditions, gap: int = 1000) -> tuple[list[int], ProbeWorld]:
    """The numbers that a probe heard of those that another said."""
    world = ProbeWorld(conditions=conditions)
    for number in range(PACKETS):
        world.say(0, 1, str(number), at=number * gap)
    world.run(PACKETS * gap + 100 * MILLISECOND)
    return [int(text) for text in world.probe(1).texts()], world


def test_a_good_network_delivers_everything_once_in_order() -> None:
    numbers, world = received(Conditions())
    assert numbers == list(range(PACKETS))
    assert world.network.lost == 0


@pytest.mark.parametrize("loss", [0.01, 0.3, 1.0])
def test_so_many_packets_are_lost(loss: float) -> None:
    numbers, world = received(Conditions(loss=loss))
    assert world.network.lost == PACKETS - len(numbers)
    assert world.network.lost == pytest.approx(
        PACKETS * loss, abs=4 * (PACKETS * loss * (1 - loss)) ** 0.5 + 1
    )
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("duplication", [0.05, 0.5, 1.0])
def test_so_many_packets_come_twice(duplication: float) -> None:
    numbers, _ = received(Conditions(duplication=duplication))
    twice = len(numbers) - PACKETS
    deviation = (PACKETS * duplication * (1 - duplication)) ** 0.5
    assert twice == pytest.approx(PACKETS * duplication, abs=4 * deviation + 1)
    assert set(numbers) == set(range(PACKETS))


@pytest.mark.parametrize("reordering", [0.05, 0.5])
def test_so_many_packets_are_overtaken(reordering: float) -> None:
    numbers, world = received(Conditions(reordering=reordering, reorder_us=100))
    assert sorted(numbers) == list(range(PACKETS))
    late = [time - number * 1000 - 100 for number, time in zip(numbers, world.probe(1).times(), strict=True)]
    delayed = [delay for delay in late if delay > 0]
    deviation = (PACKETS * reordering * (1 - reordering)) ** 0.5
    assert len(delayed) == pytest.approx(PACKETS * reordering, abs=4 * deviation + 1)
    assert max(delayed) < 100_000
    assert sum(delayed) / len(delayed) == pytest.approx(50_000, rel=0.2)


def test_the_copies_of_a_packet_have_fates_of_their_own() -> None:
    numbers, _ = received(Conditions(duplication=1.0, reordering=0.5, reorder_us=50))
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    assert any(second - first > 1 for first, second in places.values())


@pytest.mark.parametrize("field", ["loss", "duplication", "reordering"])
@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_a_probability_is_between_zero_and_one(field: str, value: float) -> None:
    with pytest.raises(LocalError, match=f"{field} must be a probability"):
        Conditions(**{field: value})


def reachable(world: ProbeWorld, hosts: int) -> set[tuple[int, int]]:
    """The pairs of probes of which the second hears the first."""
    start = len(world.rows)
    for source in range(hosts):
        for target in range(hosts):
            if source != target:
                world.say(source, target, f"{start}")
    world.run(world.now + MILLISECOND)
    return {
        (source, node)
        for node in range(hosts)
        for _, source, text in world.probe(node).heard
        if text == f"{start}"
    }


ALL = {(a, b) for a in range(4) for b in range(4) if a != b}


def test_a_full_partition_cuts_both_ways_between_the_sides() -> None:
    world = ProbeWorld(range(4), record_packets=True)
    Partition(at_ms=0, sides=((0, 1), (2, 3))).strike(world)
    assert reachable(world, 4) == {(0, 1), (1, 0), (2, 3), (3, 2)}


def test_a_one_way_partition_silences_the_first_side_only() -> None:
    world = ProbeWorld(range(4), record_packets=True)
    Partition(at_ms=0, sides=((0,), (1, 2, 3)), one_way=True).strike(world)
    assert reachable(world, 4) == ALL - {(0, 1), (0, 2), (0, 3)}


def test_a_partial_partition_leaves_those_on_no_side_alone() -> None:
    world = ProbeWorld(range(4), record_packets=True)
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    assert reachable(world, 4) == ALL - {(0, 1), (1, 0)}


def test_three_sides_are_cut_from_each_other() -> None:
    world = ProbeWorld(range(4), record_packets=True)
    Partition(at_ms=0, sides=((0,), (1,), (2, 3))).strike(world)
    assert reachable(world, 4) == {(2, 3), (3, 2)}


def test_partitions_add_up_and_healing_ends_them_all() -> None:
    world = ProbeWorld(range(4), record_packets=True)
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    Partition(at_ms=0, sides=((2,), (3,)), one_way=True).strike(world)
    assert reachable(world, 4) == ALL - {(0, 1), (1, 0), (2, 3)}
    Heal(at_ms=0).strike(world)
    assert reachable(world, 4) == ALL


def test_what_was_under_way_when_the_partition_came_still_arrives() -> None:
    world = ProbeWorld()
    world.say(0, 1, "before")
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    world.say(0, 1, "after")
    world.run(MILLISECOND)
    assert world.probe(1).texts() == ["before"]


def test_weather_changes_and_healing_calms_it() -> None:
    world = ProbeWorld()
    Weather(at_ms=0, conditions=Conditions(loss=1.0)).strike(world)
    world.say(0, 1, "lost")
    Heal(at_ms=0).strike(world)
    world.say(0, 1, "heard")
    world.run(MILLISECOND)
    assert world.probe(1).texts() == ["heard"]


def times(world: ProbeWorld) -> dict[tuple[int, int], int]:
    """How long a packet takes now from each to each."""
    start = world.now
    for a in range(4):
        for b in range(4):
            if a != b:
                world.say(a, b, f"{start}", at=start)
    world.run(start + 10 * MILLISECOND)
    return {
        (source, node): time - start
        for node in range(4)
        for time, source, text in world.probe(node).heard
        if text == f"{start}"
    }


def test_links_between_the_sides_become_slow_until_something_else_is_said() -> None:
    world = ProbeWorld(range(4))
    usual = times(world)
    assert usual.keys() == ALL
    Delay(at_ms=0, sides=((0,), (1, 2)), by_us=3000).strike(world)
    both = {(0, 1), (0, 2), (1, 0), (2, 0)}
    assert times(world) == {link: usual[link] + 3 * MILLISECOND * (link in both) for link in ALL}
    Delay(at_ms=0, sides=((0,), (1, 2)), by_us=0, one_way=True).strike(world)
    back = {(1, 0), (2, 0)}
    assert times(world) == {link: usual[link] + 3 * MILLISECOND * (link in back) for link in ALL}
    Delay(at_ms=0, sides=((1,), (0,)), by_us=1000, one_way=True).strike(world)
    Heal(at_ms=0).strike(world)
    assert times(world) == usual


@pytest.mark.parametrize("sides", [(), ((0, 1),), ((0, 1), (1, 2))])
def test_a_partition_has_sides_that_do_not_overlap(sides: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(LocalError, match="a partition must have at least two sides"):
        Partition(at_ms=0, sides=sides)
    with pytest.raises(LocalError, match="a delay must have at least two sides"):
        Delay(at_ms=0, sides=sides, by_us=1)


def test_recorded_packets_say_sent_received_and_lost() -> None:
    world = ProbeWorld(record_packets=True)
    world.say(0, 1, "heard")
    Partition(at_ms=0, sides=((0,), (1,))).strike(world)
    world.say(0, 1, "lost")
    world.run(MILLISECOND)
    events = [Event._make(row) for row in world.rows]
    assert [(event.kind, event.node, event.peer, event.label) for event in events] == [
        (Kind.SEND, 0, 1, "Word"),
        (Kind.SEND, 0, 1, "Word"),
        (Kind.LOSE, 0, 1, "Word"),
        (Kind.RECEIVE, 1, 0, "Word"),
    ]

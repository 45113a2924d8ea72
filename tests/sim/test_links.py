"""Links with bandwidth and queues: exact delays, drops, and paths chosen by flow."""

from collections import Counter
from random import Random

import pytest

from ordercast.core import SECOND
from ordercast.scenario.conditions import Conditions
from ordercast.sim.links import Link, LinkNetwork, LinkSpec, Topology, leaf_spine, star
from ordercast.sim.network import Packet
from ordercast.sim.scheduler import Scheduler

GIGABIT = LinkSpec(bits_per_s=1_000_000_000, propagation_ns=500, queue_bytes=10_000)


def arrivals(topology: Topology, packets: list[tuple[int, int, int, int]], service_ns: int = 0) -> list[int]:
    """When packets (departure, source, target, size) arrive, in the order of the list; -1: never."""
    scheduler = Scheduler()
    network = LinkNetwork(scheduler, Random(0), Conditions(), topology)
    found = [-1] * len(packets)

    def arrive(index: int) -> None:
        found[index] = scheduler.now

    for index, (departure, source, target, size) in enumerate(packets):
        network.transmit(departure, Packet((source, target), size, service_ns, arrive, (index,)))
    scheduler.run(SECOND)
    return found


def test_a_packet_takes_its_serialisation_and_propagation_on_each_link() -> None:
    # 1000 bytes at 1 Gbit/s are 8 microseconds; from host to switch to host there are two links.
    assert arrivals(star(range(2), GIGABIT), [(100, 0, 1, 1000)]) == [100 + 2 * (8000 + 500)]


def test_service_at_the_target_comes_on_top() -> None:
    assert arrivals(star(range(2), GIGABIT), [(0, 0, 1, 1000)], 70) == [2 * (8000 + 500) + 70]


def test_the_second_of_two_packets_waits_for_the_first() -> None:
    first, second = arrivals(star(range(2), GIGABIT), [(0, 0, 1, 1000), (0, 0, 1, 500)])
    # At the switch the first is being sent until 16.5 microseconds after the start.
    assert (first, second) == (17_000, 16_500 + 4000 + 500)


def test_packets_of_two_hosts_meet_at_the_switch() -> None:
    one, other = arrivals(star(range(3), GIGABIT), [(0, 0, 2, 1000), (10, 1, 2, 1000)])
    assert (one, other) == (17_000, 17_000 + 8000)


def test_the_two_directions_of_a_cable_do_not_meet() -> None:
    there, back = arrivals(star(range(2), GIGABIT), [(0, 0, 1, 1000), (0, 1, 0, 1000)])
    assert there == back == 17_000


def test_a_full_queue_drops_what_comes() -> None:
    topology = star(range(2), GIGABIT)
    found = arrivals(topology, [(0, 0, 1, 1000)] * 30)
    # 10,000 bytes may wait before the newcomer: ten packets and the one that begins at once.
    assert sum(time >= 0 for time in found) == 11
    assert all(time >= 0 for time in found[:11])
    assert topology.links[0, "switch"].dropped == 19
    assert topology.links[0, "switch"].bytes == 11_000


def test_a_queue_empties_with_time() -> None:
    link = Link(GIGABIT)
    while link.enter(0, 1000) is not None:
        pass
    assert link.enter(8000, 1000) is not None
    assert link.enter(8000, 1000) is None


def test_utilisation_is_the_share_of_the_time_in_which_a_link_sends() -> None:
    scheduler = Scheduler()
    network = LinkNetwork(scheduler, Random(0), Conditions(), star(range(2), GIGABIT))
    for departure in (0, 20_000):
        network.transmit(departure, Packet((0, 1), 1000, 0, lambda: None, ()))
    scheduler.run(64_000)
    used = network.utilisation(64_000)
    assert used[0, "switch"] == used["switch", 1] == pytest.approx(0.25)
    assert used[1, "switch"] == used["switch", 0] == 0
    assert set(network.utilisation(0).values()) == {0.0}


def test_what_still_waits_was_not_sent_yet() -> None:
    link = Link(GIGABIT)
    for _ in range(4):
        link.enter(1000, 1000)
    assert [link.sent_ns(now) for now in (1000, 9000, 33_000, 50_000)] == [0, 8000, 32_000, 32_000]
    assert link.utilisation(17_000) == pytest.approx(16 / 17)


@pytest.mark.parametrize("shape", ["star", "leaf-spine"])
def test_a_narrow_link_towards_a_host_does_not_limit_what_it_sends(shape: str) -> None:
    narrow = {1: LinkSpec(bits_per_s=100_000_000, propagation_ns=500, queue_bytes=2000)}
    if shape == "star":
        topology = star(range(2), GIGABIT, narrow)
    else:
        topology = leaf_spine(range(2), 2, 1, GIGABIT, GIGABIT, narrow)
    there, back = arrivals(topology, [(0, 0, 1, 1000), (0, 1, 0, 1000)])
    assert there == 8500 + 80_000 + 500
    assert back == 500 + 8500
    crowd = arrivals(topology, [(10**6, 0, 1, 1000)] * 4)
    assert crowd.count(-1) == 1  # the fourth finds more than 2,000 bytes waiting


def test_the_way_through_a_host_inside_the_switch_is_no_longer() -> None:
    topology = star(range(3), GIGABIT, inside=[1])
    direct, there, onwards = arrivals(
        topology, [(0, 0, 2, 1000), (10**6, 0, 1, 1000), (2 * 10**6, 1, 2, 1000)]
    )
    assert (there - 10**6) + (onwards - 2 * 10**6) == direct == 2 * (8000 + 500)


def test_a_host_inside_the_switch_has_a_queue_if_its_rate_is_limited() -> None:
    narrow = {1: LinkSpec(bits_per_s=100_000_000, propagation_ns=500, queue_bytes=2000)}
    there, back = arrivals(star(range(2), GIGABIT, narrow, [1]), [(0, 0, 1, 1000), (0, 1, 0, 1000)])
    assert there == 8500 + 80_000
    assert back == 8500


def test_a_host_without_a_cable_cannot_be_reached() -> None:
    scheduler = Scheduler()
    network = LinkNetwork(scheduler, Random(0), Conditions(), star(range(2), GIGABIT))
    assert not network.transmit(0, Packet((0, 9), 100, 0, lambda: None, ()))
    assert network.lost == 1


def test_hosts_of_one_leaf_do_not_cross_the_spines() -> None:
    topology = leaf_spine(range(4), 2, 3, GIGABIT, GIGABIT)
    assert topology.path(0, 1) == [0, "leaf0", 1]
    path = topology.path(0, 3)
    assert path is not None
    assert [path[0], path[1], path[3], path[4]] == [0, "leaf0", "leaf1", 3]
    assert str(path[2]).startswith("spine")


def test_hosts_do_not_forward_for_others() -> None:
    topology = Topology()
    topology.connect("left", 1, GIGABIT)
    topology.connect(1, "right", GIGABIT)
    topology.connect(0, "left", GIGABIT)
    topology.connect(2, "right", GIGABIT)
    assert topology.path(0, 1) == [0, "left", 1]
    assert topology.path(0, 2) is None


def test_a_flow_keeps_its_path_and_flows_spread_over_equal_ones() -> None:
    built = [leaf_spine(range(40), 20, 4, GIGABIT, GIGABIT) for _ in range(2)]
    pairs = [(source, target) for source in range(20) for target in range(20, 40)]
    paths = [[topology.path(*pair) for pair in pairs] for topology in built]
    assert paths[0] == paths[1] == [built[0].path(*pair) for pair in pairs]
    used = Counter(str(path[2]) for path in paths[0] if path)
    assert sorted(used) == ["spine0", "spine1", "spine2", "spine3"]
    assert min(used.values()) > 50  # of 400 flows, 100 each would be even


def test_a_packet_of_a_flow_never_overtakes_another() -> None:
    topology = leaf_spine(range(4), 2, 2, GIGABIT, GIGABIT)
    rng = Random(1)
    packets = [(time, 0, 3, rng.randint(1, 1500)) for time in sorted(rng.sample(range(200_000), 20))]
    found = arrivals(topology, packets)
    assert -1 not in found
    assert found == sorted(found)

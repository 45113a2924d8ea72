"""The FatTree: its size, where hosts are, and the ways between racks."""

from itertools import pairwise
from random import Random

import pytest

from ordercast.core import LocalError
from ordercast.scenario.spec import LinksSpec, NetworkSpec, Scenario, ScenarioError
from ordercast.sim.build import build_world
from ordercast.sim.fat_tree import FatTree, FatTreeSizes, Placement, place, rack_name
from ordercast.sim.links import UNLIMITED_BITS_PER_S, LinkNetwork, LinkSpec

SERVER = LinkSpec(bits_per_s=1_000_000_000, propagation_ns=500, queue_bytes=10_000)
FABRIC = LinkSpec(bits_per_s=10_000_000_000, propagation_ns=500, queue_bytes=10_000)
SMALL = FatTreeSizes(pods=2, racks_a_pod=3, aggregations_a_pod=2, cores=4, servers_a_rack=5)


def tree(sizes: FatTreeSizes = SMALL, placement: Placement | None = None) -> FatTree:
    return FatTree(sizes, placement or Placement(), SERVER, FABRIC)


def test_the_data_centre_of_hydra_has_its_size() -> None:
    """Section 7.4: 2,560 servers and 112 switches, 1 Gb/s to servers and 10 Gb/s elsewhere."""
    sizes = FatTreeSizes()
    assert (sizes.servers, sizes.switches) == (2560, 112)
    built = tree(sizes)
    switches = {vertex for ends in built.links for vertex in ends if isinstance(vertex, str)}
    servers = {vertex for ends in built.links for vertex in ends if isinstance(vertex, int)}
    assert (len(servers), len(switches)) == (2560, 112)
    rates = [link.spec.bits_per_s for link in built.links.values()]
    assert rates.count(1_000_000_000) == 2 * 2560
    assert rates.count(10_000_000_000) == len(built.aggregation_links()) + len(built.core_links())
    assert len(built.aggregation_links()) == 2 * 64 * 4
    assert len(built.core_links()) == 2 * 32 * 4


def test_cores_must_be_dealt_out_evenly() -> None:
    with pytest.raises(LocalError, match="5 cores cannot be shared evenly by 2"):
        FatTreeSizes(aggregations_a_pod=2, cores=5)


def test_ways_are_all_the_shortest_ones() -> None:
    built = tree()
    assert built.ways(1, 1) == ((),)
    within, across = built.ways(0, 1), built.ways(0, 4)
    assert [len(way) for way in within] == [2, 2]
    assert [len(way) for way in across] == [4, 4, 4, 4]
    assert len(set(across)) == 4
    ends = {link: pair for pair, link in built.links.items()}
    for way in across:
        vertices = [ends[link] for link in way]
        assert vertices[0][0] == rack_name(0)
        assert vertices[-1][1] == rack_name(4)
        assert all(one[1] == other[0] for one, other in pairwise(vertices))


def test_a_packet_of_the_plan_takes_one_of_those_ways() -> None:
    placement = Placement(servers={7: 0, 8: 22}, switches={9: 3})
    built = tree(placement=placement)
    path = built.path(7, 8)
    assert path is not None
    links = tuple(built.links[pair] for pair in pairwise(path))
    assert links[0] is built.up[0]
    assert links[-1] is built.down[22]
    assert links[1:-1] in built.ways(0, 4)
    assert (built.path(8, 9) or [])[-2:] == ["rack3", 9]


def test_a_switch_is_at_its_rack_without_a_cable() -> None:
    built = tree(placement=Placement(switches={9: 3}))
    for ends in ((9, "rack3"), ("rack3", 9)):
        assert built.links[ends].enter(0, 9000) == 0
    assert built.rack_of_host(9) == 3


def test_a_limit_of_a_switch_holds_towards_it_only() -> None:
    narrow = {9: LinkSpec(10_000_000_000, 500, 2000), 7: LinkSpec(500_000_000, 500, 2000)}
    placement = Placement(servers={7: 0}, switches={9: 3})
    built = FatTree(SMALL, placement, SERVER, FABRIC, narrow)
    assert built.links["rack3", 9].spec == LinkSpec(10_000_000_000, 0, 2000)
    assert built.links[9, "rack3"].spec.bits_per_s == UNLIMITED_BITS_PER_S
    assert built.down[0].spec == narrow[7]
    assert built.up[0].spec == LinkSpec(UNLIMITED_BITS_PER_S, 500, 10_000)


def test_hosts_and_switches_are_spread_over_pods_and_racks() -> None:
    sizes = FatTreeSizes()
    found = place(sizes, range(80), range(80, 88), Random(1))
    racks = [server // 40 for server in found.servers.values()]
    assert len(set(found.servers.values())) == 80
    assert len(set(racks)) == 64  # each has one before any has two
    assert {rack // 8 for rack in racks[:8]} == set(range(8))
    assert {rack // 8 for rack in found.switches.values()} == set(range(8))
    assert place(sizes, range(80), range(80, 88), Random(1)) == found
    assert place(sizes, range(80), range(80, 88), Random(2)) != found


def test_all_servers_can_be_used_but_no_more() -> None:
    found = place(SMALL, range(30), [], Random(0))
    assert sorted(found.servers.values()) == list(range(30))
    with pytest.raises(LocalError, match="31 hosts do not fit on 30 servers"):
        place(SMALL, range(31), [], Random(0))


def test_a_host_that_is_not_there_has_no_rack() -> None:
    with pytest.raises(LocalError, match="there is no host 5"):
        tree().rack_of_host(5)


def test_a_scenario_limits_the_links_towards_a_role() -> None:
    links = LinksSpec(topology="star", host_gbps=10, role_gbps={"receiver": 2.5})
    scenario = Scenario(protocol="unordered", network=NetworkSpec(latency=links))
    network = build_world(scenario, scenario.plan()).network
    assert isinstance(network, LinkNetwork)
    rates = {ends: link.spec.bits_per_s for ends, link in network.topology.links.items()}
    assert rates["switch", 0] == 2_500_000_000
    assert rates[0, "switch"] == UNLIMITED_BITS_PER_S
    assert rates["switch", 3] == rates[3, "switch"] == 10_000_000_000


def test_a_limit_for_a_role_that_is_not_there_is_a_mistake() -> None:
    links = LinksSpec(topology="fat-tree", role_gbps={"sequencer": 10})
    scenario = Scenario(protocol="unordered", network=NetworkSpec(latency=links))
    with pytest.raises(
        ScenarioError, match=r"network\.latency\.role_gbps\.sequencer: .* has no role sequencer"
    ):
        build_world(scenario, scenario.plan())


def test_a_tree_that_cannot_be_built_is_a_mistake_of_the_scenario() -> None:
    links = LinksSpec(topology="fat-tree", cores=15)
    scenario = Scenario(protocol="unordered", network=NetworkSpec(latency=links))
    with pytest.raises(ScenarioError, match=r"network\.latency: 15 cores"):
        build_world(scenario, scenario.plan())

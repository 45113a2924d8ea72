"""Traffic of others: its rate, its ways through the queues, its bursts, and whom it leaves alone."""

from collections import Counter

import msgspec
import pytest

from ordercast.core import MILLISECOND
from ordercast.scenario.spec import (
    BackgroundSpec,
    BurstSpec,
    LinksSpec,
    NetworkSpec,
    Scenario,
    ScenarioError,
    WorkloadSpec,
)
from ordercast.sim.background import Background
from ordercast.sim.build import build_world
from ordercast.sim.fat_tree import FatTree, FatTreeSizes, Placement
from ordercast.sim.links import Link, LinkSpec
from ordercast.sim.run import simulate
from ordercast.sim.scheduler import Scheduler

SIZES = FatTreeSizes(pods=2, racks_a_pod=3, aggregations_a_pod=2, cores=4, servers_a_rack=5)
SERVER = LinkSpec(1_000_000_000, 500, 100_000)
FABRIC = LinkSpec(2_000_000_000, 500, 100_000)
LINKS = LinksSpec(
    topology="fat-tree",
    host_gbps=1,
    fabric_gbps=2,
    pods=2,
    racks_a_pod=3,
    aggregations_a_pod=2,
    cores=4,
    servers_a_rack=5,
)
SCENARIO = Scenario(
    protocol="unordered",
    seed=5,
    groups=2,
    network=NetworkSpec(latency=LINKS),
    workload=WorkloadSpec(messages=50, bytes=1000),
)


def run(spec: BackgroundSpec, until_ms: float = 20.0, seed: int = 3) -> tuple[FatTree, Background]:
    """A tree after so long with nothing but background traffic; host 9 is a switch at rack 4."""
    scheduler = Scheduler()
    tree = FatTree(SIZES, Placement(switches={9: 4}), SERVER, FABRIC)
    background = Background(scheduler, seed, tree, spec)
    scheduler.run(round(until_ms * MILLISECOND))
    return tree, background


def share(links: list[Link], until_ms: float = 20.0) -> float:
    """Mean utilisation."""
    return sum(link.utilisation(round(until_ms * MILLISECOND)) for link in links) / len(links)


def into_rack(tree: FatTree, rack: int) -> list[Link]:
    return [link for (_, to), link in tree.aggregation_links().items() if to == f"rack{rack}"]


def with_traffic(spec: BackgroundSpec) -> Scenario:
    network = msgspec.structs.replace(SCENARIO.network, background=spec)
    return msgspec.structs.replace(SCENARIO, network=network)


def test_servers_send_the_load_and_it_arrives() -> None:
    tree, background = run(BackgroundSpec(load=0.2, bytes=500))
    # 30 servers at 0.2 Gb/s for 20 ms, in packets of 4000 bits.
    assert background.sent == pytest.approx(30_000, rel=0.03)
    assert background.lost == 0
    assert share(tree.up) == pytest.approx(0.2, rel=0.03)
    assert share(tree.down) == pytest.approx(0.2, rel=0.03)


def test_layers_carry_what_leaves_a_rack_and_a_pod() -> None:
    tree, _ = run(BackgroundSpec(load=0.2, bytes=500))
    # Of 29 other servers 25 are in other racks and 15 in the other pod; a rack has two uplinks of 2 Gb/s,
    # and a pod of 15 servers has four.
    uplinks = share(list(tree.aggregation_links().values()))
    assert uplinks == pytest.approx(5 * 0.2 * 25 / 29 / 4, rel=0.03)
    assert share(list(tree.core_links().values())) == pytest.approx(15 * 0.2 * 15 / 29 / 8, rel=0.03)


def test_flows_spread_over_all_equal_links() -> None:
    tree, _ = run(BackgroundSpec(load=0.2, bytes=500))
    used = [link.bytes for link in tree.core_links().values()]
    assert min(used) > 0.85 * max(used)


def test_local_traffic_stays_in_its_rack() -> None:
    tree, background = run(BackgroundSpec(load=0.2, locality=1.0, stop_ms=10))
    assert background.sent > 0
    assert sum(link.bytes for link in tree.down) == background.sent * 1500
    assert all(link.bytes == 0 for link in tree.aggregation_links().values())


def test_a_packet_takes_its_time_on_each_link() -> None:
    scheduler = Scheduler()
    tree = FatTree(SIZES, Placement(), SERVER, FABRIC)
    background = Background(scheduler, 0, tree, BackgroundSpec(load=0.0, bytes=1000))
    scheduler.run(100)
    background.send(0, 29, background._rng)
    scheduler.run(MILLISECOND)
    # 8 us at 1 Gb/s, 4 us at 2 Gb/s, 0.5 us of cable each: it is at the last link after one and four.
    assert tree.down[29].free_at == 100 + 8_500 + 4 * 4_500 + 8_000


def test_a_burst_fills_the_links_into_one_rack_only() -> None:
    tree, background = run(BackgroundSpec(load=0.0, burst=BurstSpec(host=9, gbps=6.0, on_us=1e6)))
    assert all(link.utilisation(20 * MILLISECOND) > 0.95 for link in into_rack(tree, 4))
    assert all(link.bytes == 0 for rack in (0, 1, 2, 3, 5) for link in into_rack(tree, rack))
    assert background.lost == sum(link.dropped for link in tree.links.values())
    assert background.lost > background.sent // 10  # 6 Gb/s do not fit through 4


def test_bursts_are_on_and_off_as_long_as_told() -> None:
    spec = BackgroundSpec(load=0.0, burst=BurstSpec(host=9, gbps=1.0, on_us=50, off_us=150), bytes=250)
    _, background = run(spec, until_ms=100)
    # A quarter of the time at 1 Gb/s, in packets of 2000 bits.
    assert background.sent == pytest.approx(0.25 * 1e8 / 2000, rel=0.15)


def test_bursts_do_not_change_the_other_traffic() -> None:
    calm = BackgroundSpec(load=0.1)
    burst = msgspec.structs.replace(calm, burst=BurstSpec(host=9, gbps=1.0))
    trees = [run(spec)[0] for spec in (calm, burst)]
    counts = [Counter(link.bytes for link in tree.up[20:25]) for tree in trees]
    assert counts[0] == counts[1]  # the servers of the rack itself send no bursts
    assert sum(link.bytes for link in trees[0].up) < sum(link.bytes for link in trees[1].up)


def test_traffic_begins_when_told() -> None:
    spec = BackgroundSpec(load=0.1, start_ms=3.0, burst=BurstSpec(host=9, gbps=1.0))
    assert run(spec, until_ms=2.99)[1].sent == 0
    _, background = run(spec, until_ms=13)
    late = run(msgspec.structs.replace(spec, start_ms=0.0), until_ms=10)[1]
    assert background.sent == late.sent > 0


def test_traffic_ends_when_told() -> None:
    burst = BurstSpec(host=9, gbps=1.0)
    spec = BackgroundSpec(load=0.1, stop_ms=2.0, burst=burst)
    scheduler = Scheduler()
    background = Background(scheduler, 1, FatTree(SIZES, Placement({}, {9: 4}), SERVER, FABRIC), spec)
    scheduler.run(2 * MILLISECOND)
    sent = background.sent
    scheduler.run(10 * MILLISECOND)
    assert sent > 0
    assert background.sent == sent
    assert scheduler.pending == 0


def test_the_seed_decides_the_traffic() -> None:
    spec = BackgroundSpec(load=0.1, burst=BurstSpec(host=9, gbps=1.0))
    used = [[link.bytes for link in run(spec, seed=seed)[0].links.values()] for seed in (1, 1, 2)]
    assert used[0] == used[1] != used[2]


def test_background_traffic_delays_packets_of_the_plan_and_changes_nothing_else() -> None:
    calm, none = simulate(SCENARIO), simulate(with_traffic(BackgroundSpec(load=0.0)))
    assert calm.rows == none.rows
    busy = simulate(with_traffic(BackgroundSpec(load=0.4, stop_ms=60)))
    before, after = (run.summary().latency_ns["p50"] for run in (calm, busy))
    assert before is not None
    assert after is not None
    assert after > before
    assert [row[:3] for row in calm.rows if row[3] == "submit"] == [
        row[:3] for row in busy.rows if row[3] == "submit"
    ]


def test_only_a_fat_tree_has_background_traffic() -> None:
    star = NetworkSpec(latency=LinksSpec(), background=BackgroundSpec())
    with pytest.raises(
        ScenarioError, match=r"network\.background: background traffic needs links with the topology fat-tree"
    ):
        simulate(msgspec.structs.replace(SCENARIO, network=star))


@pytest.mark.parametrize(("host", "what"), [(99, "there is no host 99"), (-1, "there is no host -1")])
def test_bursts_need_a_host(host: int, what: str) -> None:
    spec = BackgroundSpec(burst=BurstSpec(host=host, gbps=1.0))
    with pytest.raises(ScenarioError, match=f"network.background.burst.host: {what}"):
        scenario = with_traffic(spec)
        build_world(scenario, scenario.plan())


def test_bursts_need_another_rack() -> None:
    sizes = FatTreeSizes(1, 1, 1, 1, 5)
    tree = FatTree(sizes, Placement({0: 0}), SERVER, FABRIC)
    with pytest.raises(Exception, match="bursts come from other racks"):
        Background(Scheduler(), 0, tree, BackgroundSpec(burst=BurstSpec(host=0, gbps=1.0)))

"""Leaders that are cut off, under load: the others go on within a few detection times."""

from itertools import pairwise

import msgspec
import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import MILLISECOND, HostId, Nanos, NodeId
from ordercast.protocols.atomic_multicast import AtomicMulticastOptions
from ordercast.protocols.hydra import HydraOptions
from ordercast.scenario.faults import Crash, Heal, Partition
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind
from tests.deep import deep_after

LEADERS = (0, 3)
"""Of the two groups, from the start."""
CUT_MS, WHOLE_MS = 500, 2000
LIVE = dict(find_protocol("atomic_multicast").live)


def cut_off(host: HostId, way: str, scale: int, *, colocated: bool) -> Scenario:
    """Two groups of three and four senders; one host is cut off. Times are `scale` times as long."""
    hosts = 6 if colocated else 10
    others = tuple(other for other in range(hosts) if other != host)
    sides = (others, (host,)) if way == "in" else ((host,), others)
    return Scenario(
        protocol="atomic_multicast",
        seed=host,
        groups=2,
        receivers=3,
        senders=4,
        colocated=colocated,
        options={} if scale == 1 else LIVE,
        liveness=True,
        settle_ms=300 * scale,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        workload=WorkloadSpec(messages=800, rate_per_s=80 / scale, spread=(0.7, 0.3)),
        fault=(
            Partition(at_ms=CUT_MS * scale, sides=sides, one_way=way != "both ways"),
            Heal(at_ms=WHOLE_MS * scale),
        ),
    )


def longest_silence(run: Run, node: NodeId, begin: Nanos, end: Nanos) -> Nanos:
    """The longest time without a delivery at a node, of those that touch this span."""
    times = [event.time_ns for event in run.events() if (event.node, event.kind) == (node, Kind.DELIVER)]
    gaps = [(two - one, one, two) for one, two in pairwise(times)]
    return max(gap for gap, one, two in gaps if one < end and two > begin)


CASES = [
    (way, colocated, scale)
    for scale in (1, 10)
    for colocated in (True, False)
    for way in ("in", "both ways", "out")
]


@pytest.mark.parametrize(("way", "colocated", "scale"), deep_after(3, CASES))
def test_the_others_deliver_again_within_a_few_detection_times(way: str, colocated: bool, scale: int) -> None:
    for host in LEADERS:
        scenario = cut_off(host, way, scale, colocated=colocated)
        run = simulate(scenario)
        assert run.violations == []
        options = msgspec.convert(scenario.options, AtomicMulticastOptions)
        for node in set(range(6)) - {host}:
            silence = longest_silence(run, node, CUT_MS * scale * MILLISECOND, WHOLE_MS * scale * MILLISECOND)
            assert silence < 2 * options.consensus.detection_ns, f"node {node}"


SEQUENCER, SERVICE = 5, (7, 8, 9)
"""Of three receivers, two senders and two sequencers, the first; and the configuration service."""


@pytest.mark.parametrize("way", ["in", "both ways", "out"])
def test_a_sequencer_is_removed_though_the_leader_of_the_service_is_cut_off(way: str) -> None:
    leader, others = (SERVICE[0],), tuple(host for host in range(10) if host != SERVICE[0])
    sides = (others, leader) if way == "in" else (leader, others)
    scenario = Scenario(
        protocol="hydra",
        receivers=3,
        senders=2,
        liveness=True,
        settle_ms=300,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        workload=WorkloadSpec(messages=900, rate_per_s=300),
        fault=(
            Partition(at_ms=CUT_MS, sides=sides, one_way=way != "both ways"),
            Crash(at_ms=CUT_MS + 5, host=SEQUENCER),
        ),
    )
    run = simulate(scenario)
    assert run.violations == []
    options = HydraOptions()
    most = options.suspect_ns + 2 * options.consensus.detection_ns
    for node in range(3):
        assert longest_silence(run, node, CUT_MS * MILLISECOND, 1000 * MILLISECOND) < most
    removals = [event.label for event in run.events() if event.kind is Kind.VIEW]
    assert removals == ["removed"] * 3

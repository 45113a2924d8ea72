"""LLFT's experiments: the calibration, the Ethernet, the runs, and what is made of their results."""

from random import Random
from typing import Any

import pytest

from ordercast.core import MILLISECOND, LocalError, ServiceType
from ordercast.experiments import Case, Setup, all_experiments
from ordercast.experiments.llft import latency, recovery, throughput
from ordercast.experiments.llft.calibration import (
    CYCLES_A_BIT,
    FRAME_BYTES_MIN,
    GRID,
    PUBLISHED,
    QUICK_GRID,
    ROUND_TRIPS_PER_S,
    costs_of,
)
from ordercast.experiments.llft.ethernet import TCP_BYTES, UDP_BYTES, Ethernet
from ordercast.experiments.llft.failing import change_of, fail
from ordercast.experiments.llft.services import Give, Take
from ordercast.experiments.llft.testbed import GIVE, LLFT, TAKE, TCP, counted, scenario_of, started
from ordercast.sim.network import Packet
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import PACKET_OVERHEAD_BYTES
from tests.experiments import made_up

COSTS: dict[str, Any] = {"packet_ns": PUBLISHED.packet_ns, "link_us": PUBLISHED.link_us}
SMALLEST_NS = FRAME_BYTES_MIN * 8
"""The time of the smallest frame at 1 Gb/s."""
FULL_NS = 1_538 * 8


def test_every_claim_but_that_of_the_determinizer_has_an_experiment() -> None:
    measured = [claim for each in all_experiments() for claim in each.claims if claim.startswith("llft.")]
    assert sorted(measured) == [
        "llft.detection_ms",
        "llft.latency_overhead_large",
        "llft.latency_overhead_small",
        "llft.recovery_two_vs_three",
        "llft.replicas_flat",
        "llft.view_change_two",
    ]


def test_a_packet_and_a_link_follow_from_publications_about_tcp() -> None:
    assert costs_of(CYCLES_A_BIT, 1e6 / ROUND_TRIPS_PER_S, 10.0) == PUBLISHED
    assert (PUBLISHED.packet_ns, PUBLISHED.link_us) == (5_792, 2.75)
    assert GRID[0] == QUICK_GRID[0] == PUBLISHED


# The Ethernet


class Wire:
    """An Ethernet, and when its packets arrive."""

    def __init__(self, link_us: float = 1.0, transport_bytes: int = UDP_BYTES) -> None:
        self.scheduler = Scheduler()
        self.network = Ethernet(self.scheduler, Random(0), link_us, transport_bytes)
        self.arrived: dict[int, list[int]] = {}

    def send(self, at: int, source: int, target: int, size: int, message: object) -> None:
        packet = Packet((source, target), size + PACKET_OVERHEAD_BYTES, 0, self._arrive, (target, message))
        assert self.network.transmit(at, packet)

    def _arrive(self, target: int, message: object) -> None:
        self.arrived.setdefault(target, []).append(self.scheduler.now)

    def run(self) -> dict[int, list[int]]:
        self.scheduler.run(MILLISECOND)
        return self.arrived


@pytest.mark.parametrize(
    ("size", "headers", "first", "last", "all_frames"),
    [
        (0, UDP_BYTES, SMALLEST_NS, SMALLEST_NS, SMALLEST_NS),
        (1_472, UDP_BYTES, FULL_NS, FULL_NS, FULL_NS),
        (1_473, UDP_BYTES, FULL_NS, SMALLEST_NS, FULL_NS + SMALLEST_NS),
        (1_448, TCP_BYTES, FULL_NS, FULL_NS, FULL_NS),
        (2 * 1_448, TCP_BYTES, FULL_NS, FULL_NS, 2 * FULL_NS),
    ],
)
def test_a_message_takes_the_time_of_its_frames(
    size: int, headers: int, first: int, last: int, all_frames: int
) -> None:
    assert Wire(transport_bytes=headers).network.wire_ns(size) == (first, last, all_frames)


def test_the_switch_stores_a_frame_and_not_a_message() -> None:
    wire = Wire()
    wire.send(0, 1, 2, 3 * 1_472, "three full frames")
    assert wire.run() == {2: [2 * 1_000 + 4 * FULL_NS]}


def test_a_multicast_leaves_its_host_once() -> None:
    wire, message = Wire(), object()
    for target in (2, 3, 4):
        wire.send(0, 1, target, 1_472, message)
    wire.send(10, 1, 5, 1_472, "the next")
    arrived = wire.run()
    assert arrived[2] == arrived[3] == arrived[4] == [2 * 1_000 + 2 * FULL_NS]
    assert arrived[5] == [arrived[2][0] + FULL_NS]


def test_copies_that_a_host_sends_one_by_one_follow_each_other_on_its_cable() -> None:
    wire, message = Wire(), object()
    for turn, target in enumerate((2, 3, 4)):
        wire.send(turn, 1, target, 1_472, message)
    arrived = wire.run()
    first = 2 * 1_000 + 2 * FULL_NS
    assert [arrived[target] for target in (2, 3, 4)] == [[first], [first + FULL_NS], [first + 2 * FULL_NS]]


def test_messages_of_two_hosts_share_the_cable_of_their_receiver() -> None:
    wire = Wire()
    wire.send(0, 1, 3, 1_472, "one")
    wire.send(0, 2, 3, 1_472, "other")
    first = 2 * 1_000 + 2 * FULL_NS
    assert wire.run() == {3: [first, first + FULL_NS]}


# The testbed


@pytest.mark.parametrize(("service", "request_bytes", "result"), [(Take, 1_000, 1_000), (Give, 9, bytes(9))])
def test_services_take_and_give_bytes(service: type[Any], request_bytes: int, result: object) -> None:
    name, arguments = service.generate(Random(0), 1, False, request_bytes)
    made = service()
    assert name in ServiceType.of(service).operations
    assert getattr(made, name)(*arguments) == result
    assert made.calls == 1


def test_a_small_round_trip_by_plain_tcp_is_four_packets_four_links_and_four_frames() -> None:
    scenario = scenario_of(TCP, replicas=3, clients=1, size=1, service=TAKE, seed=0)
    found = counted(scenario, PUBLISHED, 20)
    bare = 4 * PUBLISHED.packet_ns + round(4_000 * PUBLISHED.link_us)
    assert bare + 4 * SMALLEST_NS <= found.p50_ns <= bare + 4 * 2 * SMALLEST_NS


@pytest.mark.parametrize("service", [TAKE, GIVE])
def test_large_messages_take_the_wire_in_one_direction(service: str) -> None:
    sizes = (16, 65_536)
    small, large = (
        counted(
            scenario_of(TCP, replicas=1, clients=1, size=size, service=service, seed=0), PUBLISHED, 10
        ).p50_ns
        for size in sizes
    )
    assert large - small == pytest.approx((65_536 / 1_448 + 1) * FULL_NS, rel=0.02)


def test_replication_costs_throughput() -> None:
    def share(clients: int) -> float:
        ours, theirs = (
            throughput.serve(system=system, clients=clients, seed=0, calls=200, **COSTS).numbers
            for system in (LLFT, TCP)
        )
        return ours[throughput.RATE] / theirs[throughput.RATE]

    assert 0.9 < share(32) < 1 and 0.9 < share(1) < 1


def test_every_copy_costs_a_send_where_nothing_copies() -> None:
    scenario = scenario_of(LLFT, replicas=8, clients=1, size=16, seed=0)
    multicast, unicast = (counted(scenario, PUBLISHED, 50, copies=copies).mean_ns for copies in (False, True))
    assert multicast < unicast


# Runs in which the primary crashes


@pytest.mark.parametrize(("replicas", "waited_for"), [(2, 0), (3, 1), (5, 3)])
def test_a_new_primary_waits_for_the_other_backups_and_the_last_replica_for_nobody(
    replicas: int, waited_for: int
) -> None:
    found = fail(replicas=replicas, clients=0, seed=1, **COSTS)
    assert found["waited_for"] == waited_for
    assert (found["view_change_ns"] == 0) is (waited_for == 0)
    assert 25 * MILLISECOND < found["detection_ns"] < 40 * MILLISECOND
    assert found["recovery_ns"] > found["view_change_ns"]


def test_clients_wait_for_the_detection_and_the_recovery() -> None:
    few, many = (fail(replicas=2, clients=clients, seed=1, **COSTS) for clients in (1, 8))
    for found in (few, many):
        assert found["outage_ns"] > found["detection_ns"]
    assert few["recovery_ns"] < many["recovery_ns"]


def test_a_primary_that_is_suspected_while_it_lives_spoils_the_run() -> None:
    world = started(scenario_of(LLFT, replicas=2, clients=1, size=16, seed=1), PUBLISHED, packets=True)
    world.crash(0)
    world.run(world.now + 60 * MILLISECOND)
    assert change_of(world, 10 * MILLISECOND) is not None
    with pytest.raises(LocalError, match="suspected before it crashed"):
        change_of(world, world.now)


# What is made of the results


def test_overheads_are_ratios_of_means_at_both_ends_of_the_figure() -> None:
    (experiment,) = (each for each in latency.EXPERIMENTS if each.name == "llft-12")

    def value(case: Case) -> dict[str, float]:
        if "clients" in case.parameters:
            return {throughput.RATE: 1_000.0 * made_up.number(case, "clients")}
        factor = {16: 1.5, 65_536: 1.25}[int(case.parameters["size"])]
        own = factor if case.parameters["system"] == LLFT else 1.0
        return {latency.P50: 7_000.0, latency.MEAN: 10_000.0 * own}

    found = experiment.evaluate(made_up.results(experiment.cases(Setup(quick=True)), value))
    small, large = found.measurements
    assert (small.claim, small.value) == (latency.SMALL_CLAIM, 1.5)
    assert (large.claim, large.value) == (latency.LARGE_CLAIM, 1.25)
    assert [figure.id for figure in found.figures] == ["llft-12", "llft-13"]
    assert "medians 1.000" in small.note and "with packets and links of 5.79 and 5.45 us: 1.5" in small.note


def test_the_growth_is_from_two_to_most_replicas_without_copies() -> None:
    (experiment,) = (each for each in latency.EXPERIMENTS if each.name == "llft-14")

    def value(case: Case) -> dict[str, float]:
        slow = 2.0 if case.parameters["copies"] else 1.0
        mean = 10_000.0 * (1 + slow * (made_up.number(case, "replicas") - 2) / 60)
        return {latency.P50: 10_000.0, latency.MEAN: mean}

    found = experiment.evaluate(made_up.results(experiment.cases(Setup()), value))
    assert found.measurements[0].value == pytest.approx(1.1)
    assert "with one send for each copy 1.200" in found.measurements[0].note


def test_the_longest_wait_of_two_replicas_and_the_median_detection_count() -> None:
    (experiment,) = (each for each in recovery.EXPERIMENTS if each.name == "llft-16")

    def value(case: Case) -> dict[str, float]:
        late = case.seed == 0 and case.parameters["replicas"] == 2
        return {
            "detection_ns": 30e6 + 1e6 * case.seed,
            "view_change_ns": 1_000.0,
            "recovery_ns": 2_000.0,
            "waited_for": float(late),
        }

    cases = experiment.cases(Setup(quick=True))
    found = experiment.evaluate(made_up.results(cases, value))
    detection, view = found.measurements
    assert detection.value == 33.5
    assert view.value == 1.0


def test_the_number_of_clients_that_is_worst_for_two_replicas_counts() -> None:
    (experiment,) = (each for each in recovery.EXPERIMENTS if each.name == "llft-17")

    def value(case: Case) -> dict[str, float]:
        replicas, clients = made_up.number(case, "replicas"), made_up.number(case, "clients")
        return {"recovery_ns": 1_000 * (10 * clients + 10 * replicas), "outage_ns": 31e6}

    found = experiment.evaluate(made_up.results(experiment.cases(Setup()), value))
    (measured,) = found.measurements
    assert measured.value == pytest.approx((320 + 20) / (320 + 30))
    assert len(found.figures[0].curves) == 2

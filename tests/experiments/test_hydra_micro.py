"""Hydra's Figure 2: the cases are the paper's setup, and the evaluation is arithmetic."""

from typing import Any

import msgspec
import pytest

from ordercast.experiments import Case, Setup, all_experiments
from ordercast.experiments.hydra import micro
from ordercast.experiments.hydra.calibration import PACKETS_OF_ORDER, PUBLISHED
from ordercast.experiments.hydra.saturation import LATENCY, MEAN, PEAK, closed_loop
from ordercast.experiments.hydra.sensitivity import FULL, GRID, QUICK
from ordercast.experiments.hydra.testbed import SWITCH_CPU, host_cpu, hydra_options, microbenchmark
from ordercast.pipeline.cases import Record
from ordercast.pipeline.functions import call
from ordercast.scenario.spec import Scenario
from ordercast.sim import simulate
from ordercast.trace import Kind
from tests.experiments import made_up

EXPERIMENTS = {experiment.name: experiment for experiment in all_experiments()}
NAMES = ["hydra-2a", "hydra-group-size", "hydra-2c"]
PACKET_NS, WAY_NS = PUBLISHED.packet_ns, round(2_000 * PUBLISHED.link_us)
"""A packet from host to host is on two links."""
TINY: dict[str, Any] = {"messages": 50, "packet_ns": PACKET_NS, "link_us": PUBLISHED.link_us}


def limited(scenario: Scenario, messages: int) -> Scenario:
    workload = msgspec.structs.replace(scenario.workload, messages=messages)
    return msgspec.structs.replace(scenario, workload=workload)


def test_the_testbed_gives_unordered_multicast_what_it_says() -> None:
    """One packet in and one out a message: 10 million messages a second at a receiver, and no more."""
    run = simulate(limited(microbenchmark("unordered", clients=64, seed=1), 2_500))
    assert run.violations == []
    assert run.summary().throughput_per_s == pytest.approx(1e9 / (2 * PACKET_NS), rel=0.05)


def test_a_client_alone_waits_for_its_packets_only() -> None:
    """Three sends, a way through the switch, a receive and a reply, back, and a receive."""
    run = simulate(limited(microbenchmark("unordered", clients=1, seed=1), 50))
    latencies = [e.time_ns - (e.submitted_ns or 0) for e in run.events() if e.kind is Kind.COMPLETE]
    # The last copy leaves third, and its reply is the last of the three that the client takes in.
    least = 3 * PACKET_NS + WAY_NS + 2 * PACKET_NS + WAY_NS + PACKET_NS
    assert len(latencies) == 50
    assert all(least <= latency <= least + 50 for latency in latencies)


def test_a_client_of_hydra_alone_waits_for_one_flush_more_and_for_order() -> None:
    """One send instead of three; a question and its answer at each receiver, two links, and order."""
    values = closed_loop(system="hydra", flush="solicited", flush_ns=0, seed=1, **TINY)
    flush = 2 * PACKET_NS + WAY_NS
    order = round(PACKETS_OF_ORDER["hydra"] * PACKET_NS)
    # The three replies come at once, and the client takes them in one after the other.
    least = PACKET_NS + WAY_NS + PACKET_NS + flush + order + PACKET_NS + WAY_NS + 3 * PACKET_NS
    assert least <= values.numbers[LATENCY] <= least + 60
    assert values.numbers[MEAN] == pytest.approx(values.numbers[LATENCY], rel=0.01)


def test_switches_have_no_cpu_and_hosts_do() -> None:
    scenario = microbenchmark(
        "hydra", clients=1, seed=1, options=hydra_options(flush="aggregated", flush_ns=9)
    )
    assert scenario.role_cpu == {"switch": SWITCH_CPU, "aggregator": SWITCH_CPU}
    ended = microbenchmark("hydra", clients=1, seed=1, options=hydra_options(kind="host"))
    assert ended.role_cpu["sequencer"].receive_ns == ended.cpu.receive_ns == PACKET_NS
    assert SWITCH_CPU.receive_ns == SWITCH_CPU.send_ns == 0


def test_clients_beyond_the_hosts_share_them() -> None:
    few, many = (microbenchmark("unordered", clients=clients, seed=1, groups=2) for clients in (8, 256))
    assert (few.senders, few.workload.outstanding) == (8, 1)
    assert (many.senders, many.workload.outstanding) == (32, 8)


def test_ratios_do_not_depend_on_the_cost_of_a_packet() -> None:
    rates = {}
    for factor in (1, 3):
        for protocol in ("unordered", "atomic_multicast"):
            scenario = limited(microbenchmark(protocol, clients=64, seed=1), 400)
            slower = msgspec.structs.replace(PUBLISHED, packet_ns=factor * PACKET_NS)
            run = simulate(msgspec.structs.replace(scenario, cpu=host_cpu(slower)))
            rates[protocol, factor] = run.summary().throughput_per_s
    fast, slow = (rates["atomic_multicast", factor] / rates["unordered", factor] for factor in (1, 3))
    assert slow == pytest.approx(fast, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_the_setup_of_the_paper(name: str) -> None:
    quick, full = (EXPERIMENTS[name].cases(Setup(quick=quick)) for quick in (True, False))
    assert len(quick) < len(full)
    assert len({case.seed for case in full}) >= 2
    for case in [*quick, *full]:
        assert case.parameters["flush"] == "" or case.parameters["system"] == "hydra"
        assert "sequencers" not in case.arguments  # two, by default
        assert "clients" not in case.parameters  # as many as it takes
    solicited = [case for case in full if case.parameters["flush"] == "solicited"]
    assert {case.arguments["flush_ns"] for case in solicited} == {0}
    names = [case.name() for case in full]
    assert len(names) == len(set(names))


def fake(case: Case) -> dict[str, float]:
    """A maximum for each system; atomic multicast falls with the number of receivers."""
    system, flush = str(case.parameters["system"]), str(case.parameters["flush"])
    full = {"unordered": 400e3, "atomic_multicast": 100e3, "hydra": 360e3 if flush == "adaptive" else 300e3}
    wait = {"unordered": 8e3, "atomic_multicast": 20e3, "hydra": 11e3 if flush == "solicited" else 12e3}
    rate = full[system] * made_up.number(case, "groups")
    if system == "atomic_multicast":
        rate *= 3 / made_up.number(case, "receivers")
    return {PEAK: rate + case.seed, LATENCY: wait[system]}


def fake_loads(case: Case) -> list[Record]:
    """Nine loads, the last of which brings nothing."""
    values = fake(case)
    return made_up.loads(case, 9, values[PEAK], values[LATENCY])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "hydra-2a",
            {
                "hydra.micro.throughput_vs_atomic": 3.0,
                "hydra.micro.latency_vs_atomic": 0.55,
                "hydra.micro.latency_penalty_us": 3.0,
                "hydra.micro.throughput_vs_unordered": 0.75,
                "baseline.atomic_vs_unordered_throughput": 0.25,
            },
        ),
        (
            "hydra-group-size",
            {
                "hydra.group_size.drop_3_to_9": 1.0,
                "hydra.group_size.throughput_vs_atomic_9": 9.0,
                "baseline.atomic_group_size": 1 / 3,
            },
        ),
        (
            "hydra-2c",
            {
                "hydra.groups15.throughput_vs_unordered": 0.75,
                "hydra.groups15.throughput_vs_atomic": 3.0,
                "baseline.atomic_vs_unordered_groups15": 0.25,
            },
        ),
    ],
)
def test_the_evaluation_divides_the_highest_rates(name: str, expected: dict[str, float]) -> None:
    experiment = EXPERIMENTS[name]
    outcome = experiment.evaluate(made_up.results(experiment.cases(Setup()), fake, fake_loads))
    assert {each.claim: each.value for each in outcome.measurements} == pytest.approx(expected, rel=1e-3)
    assert set(expected) == set(experiment.claims)
    assert all("over 2 seeds" in each.note for each in outcome.measurements)
    hydra = [each for each in outcome.measurements if "hydra." in each.claim and "latency" not in each.claim]
    assert all("adaptive flushes: " in each.note for each in hydra)


def test_figure_2a_has_a_marker_a_load_and_the_marks_of_the_paper() -> None:
    experiment = EXPERIMENTS["hydra-2a"]
    figure, _ = experiment.evaluate(made_up.results(experiment.cases(Setup()), fake, fake_loads)).figures
    assert [curve.label for curve in figure.curves] == [
        "unordered multicast",
        "atomic multicast",
        "Hydra, solicited",
        "Hydra, adaptive",
    ]
    assert {len(curve.points) for curve in figure.curves} == {9}
    assert figure.curves[0].points[0].x == pytest.approx(400.0 / 2**7, rel=1e-3)
    assert figure.curves[0].points[0].y == pytest.approx(8.0)
    assert figure.curves[0].points[-1].x == pytest.approx(400.0, rel=1e-3)
    assert figure.references[0].x == pytest.approx(0.61 / 4.78 * 400.0, rel=1e-3)
    assert figure.references[1].x == pytest.approx(0.61 * 400.0, rel=1e-3)
    assert "Figure 2a" in figure.caption
    assert "NSDI" in figure.caption


@pytest.mark.parametrize("name", ["hydra-2b", "hydra-2c"])
def test_figures_over_groups_have_a_point_a_number_of_groups(name: str) -> None:
    experiment = EXPERIMENTS["hydra-2c"]
    figures = experiment.evaluate(made_up.results(experiment.cases(Setup()), fake, fake_loads)).figures
    (figure,) = (each for each in figures if each.id == name)
    for curve in figure.curves:
        assert [point.x for point in curve.points] == [1.0, 5.0, 10.0, 15.0]
    (latency,) = {point.y for point in figures[0].curves[2].points}
    assert latency == pytest.approx(11.0)


def test_a_run_gives_the_same_twice() -> None:
    case = Case(
        parameters={"system": "hydra", "flush": "adaptive"},
        seed=3,
        function="ordercast.experiments.hydra.saturation:closed_loop",
        arguments=TINY,
    )
    first, second = call(case), call(case)
    assert first == second
    assert first.numbers[PEAK] > 1_000_000


def test_small_runs_leave_the_adaptive_policy_out() -> None:
    """It never counts for a claim."""
    flushes = {
        effort: {case.parameters["flush"] for case in micro.cases_2a(effort)} for effort in (FULL, QUICK)
    }
    assert flushes == {FULL: {"", "solicited", "adaptive"}, QUICK: {"", "solicited"}}
    evaluation = micro.evaluate_2a(made_up.results(micro.cases_2a(QUICK), fake, fake_loads))
    assert not any("adaptive" in each.note for each in evaluation.measurements)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_is_measured_with_all_numbers_of_the_grid(name: str) -> None:
    experiment = EXPERIMENTS[name]
    cases = experiment.cases(Setup())
    grid = {(case.parameters["packet_ns"], case.parameters["link_us"]) for case in cases}
    assert grid == {(each.packet_ns, each.link_us) for each in GRID}
    outcome = experiment.evaluate(made_up.results(cases, fake, fake_loads))
    rows = {curve.label.split(",")[0] for curve in outcome.figures[-1].curves}
    assert rows == set(experiment.claims)


def test_policies_are_named_in_curves() -> None:
    assert micro.name("hydra", "solicited") == "Hydra, solicited"
    assert micro.name("unordered", "") == "unordered multicast"

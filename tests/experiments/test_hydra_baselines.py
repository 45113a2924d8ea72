"""The baselines of Hydra's Figure 2: the cases are the paper's setup, and the evaluation is arithmetic."""

import msgspec
import pytest

from ordercast.experiments import Case, Results, Setup, all_experiments
from ordercast.experiments import hydra_baselines as baselines
from ordercast.experiments.hydra_testbed import CPU, PACKET_NS, microbenchmark
from ordercast.pipeline.cases import CaseResult
from ordercast.sim import simulate
from ordercast.trace import Kind

EXPERIMENTS = {experiment.name: experiment for experiment in all_experiments()}


def test_the_calibration_gives_unordered_multicast_what_it_says() -> None:
    """One packet in and one out a message: 100,000 messages a second at a receiver, and no more."""
    run = simulate(microbenchmark("unordered", clients=16, seed=1, messages=2_000))
    assert run.violations == []
    assert run.summary().throughput_per_s == pytest.approx(1e9 / (2 * PACKET_NS), rel=0.01)


def test_a_client_alone_waits_for_its_packets_only() -> None:
    """Three sends, a way of 1 us and a little, a receive and a reply, back, and three receives."""
    run = simulate(microbenchmark("unordered", clients=1, seed=1, messages=50))
    latencies = [e.time_ns - (e.submitted_ns or 0) for e in run.events() if e.kind is Kind.COMPLETE]
    # The last copy leaves third, and its reply is the last of the three that the client takes in.
    least = 3 * PACKET_NS + 1_000 + 2 * PACKET_NS + 1_000 + PACKET_NS
    assert len(latencies) == 50
    assert all(least <= latency <= least + 200 for latency in latencies)


def test_ratios_do_not_depend_on_the_cost_of_a_packet() -> None:
    rates = {}
    for factor in (1, 3):
        for protocol in baselines.PROTOCOLS:
            scenario = microbenchmark(protocol, clients=16, seed=1, messages=1_000)
            slower = msgspec.structs.replace(CPU, receive_ns=factor * PACKET_NS, send_ns=factor * PACKET_NS)
            run = simulate(msgspec.structs.replace(scenario, cpu=slower))
            rates[protocol, factor] = run.summary().throughput_per_s
    fast, slow = (rates["atomic_multicast", factor] / rates["unordered", factor] for factor in (1, 3))
    assert slow == pytest.approx(fast, rel=0.05)


@pytest.mark.parametrize("name", ["hydra-2a", "hydra-group-size", "hydra-2c"])
def test_cases_are_the_setup_of_the_paper(name: str) -> None:
    quick, full = (EXPERIMENTS[name].cases(Setup(quick=quick)) for quick in (True, False))
    assert len(quick) < len(full)
    assert len({case.seed for case in full}) >= 3
    for case in [*quick, *full]:
        scenario = case.scenario
        assert scenario is not None
        assert scenario.workload.kind == "closed"
        assert scenario.workload.outstanding == 1
        assert scenario.bundle_bytes == 0
        assert scenario.cpu == CPU
        assert scenario.groups == case.parameters["groups"]
        assert scenario.receivers == case.parameters["receivers"]
        assert scenario.workload.spread == ((0.8, 0.2) if scenario.groups > 1 else (1.0,))
    names = [case.name() for case in full]
    assert len(names) == len(set(names))


def fake(cases: list[Case], rates: dict[str, float]) -> Results:
    """Results with a rate for each protocol, that grows with the load up to twelve clients a group."""
    found = []
    for case in cases:
        clients, groups = case.parameters["clients"], case.parameters["groups"]
        receivers, protocol = case.parameters["receivers"], str(case.parameters["protocol"])
        assert isinstance(clients, int)
        assert isinstance(groups, int)
        assert isinstance(receivers, int)
        share = min(clients / groups, 8) / 8
        rate = rates[protocol] * share * groups
        if protocol == "atomic_multicast":
            rate *= 3 / receivers
        values = {"client_messages_per_s": rate + case.seed, "client_p50_ns": 1e5 * clients}
        found.append(CaseResult(case=case, name=case.name(), status="kept", error=None, values=values))
    return Results(found)


@pytest.mark.parametrize(
    ("name", "expected"), [("hydra-2a", 0.25), ("hydra-group-size", 1 / 3), ("hydra-2c", 0.25)]
)
def test_the_evaluation_divides_the_highest_rates(name: str, expected: float) -> None:
    experiment = EXPERIMENTS[name]
    results = fake(list(experiment.cases(Setup())), {"unordered": 100_000.0, "atomic_multicast": 25_000.0})
    outcome = experiment.evaluate(results)
    (measured,) = outcome.measurements
    assert measured.claim == experiment.claims[0]
    assert measured.value == pytest.approx(expected, rel=1e-3)
    assert "over 3 seeds" in measured.note


def test_figure_2a_has_a_marker_a_load_and_the_mark_of_the_paper() -> None:
    experiment = EXPERIMENTS["hydra-2a"]
    results = fake(list(experiment.cases(Setup())), {"unordered": 100_000.0, "atomic_multicast": 25_000.0})
    (figure,) = experiment.evaluate(results).figures
    assert [curve.label for curve in figure.curves] == ["unordered multicast", "atomic multicast"]
    (unordered, atomic) = figure.curves
    assert len(unordered.points) == len(atomic.points) == 8
    assert unordered.points[0].x == pytest.approx(12.501)
    assert unordered.points[0].y == pytest.approx(100.0)
    assert figure.references[0].x == pytest.approx(0.61 / 4.78 * 100.0, rel=1e-3)
    assert "Figure 2a" in figure.caption
    assert "NSDI" in figure.caption

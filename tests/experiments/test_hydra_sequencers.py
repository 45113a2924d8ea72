"""Hydra's Figures 3, 4 and 10: cases as the paper has them, and the arithmetic of the evaluations."""

from typing import Any

import pytest

from ordercast.experiments import Case, Evaluation, Setup, all_experiments
from ordercast.experiments.hydra import flush, scale, skew
from ordercast.experiments.hydra.calibration import PUBLISHED
from ordercast.experiments.hydra.saturation import LATENCY, MEAN, PEAK
from ordercast.experiments.hydra.sensitivity import FULL, QUICK, Effort
from ordercast.pipeline.cases import Record
from tests.experiments import made_up

EXPERIMENTS = {experiment.name: experiment for experiment in all_experiments()}
NUMBERS: dict[str, Any] = {"packet_ns": PUBLISHED.packet_ns, "link_us": PUBLISHED.link_us}
NAMES = ["hydra-3", "hydra-4a", "hydra-4b", "hydra-10"]


def values(evaluation: Evaluation) -> dict[str, float]:
    return {each.claim: each.value for each in evaluation.measurements}


@pytest.mark.parametrize("name", NAMES)
def test_quick_is_less_and_no_case_is_there_twice(name: str) -> None:
    quick, full = (EXPERIMENTS[name].cases(Setup(quick=quick)) for quick in (True, False))
    assert 0 < len(quick) < len(full)
    names = [case.name() for case in full]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("effort", [FULL, QUICK])
def test_flush_policies_have_the_delays_that_claims_compare(effort: Effort) -> None:
    cases = flush.cases(effort)
    named = {(case.parameters["flush"], case.parameters["flush_ns"]) for case in cases}
    assert {("periodic", 10_000), ("periodic", 100_000), ("aggregated", 10_000), ("adaptive", -1)} <= named
    assert {case.arguments["sequencers"] for case in cases} == {4}
    assert {case.parameters["system"] for case in cases if case.parameters["flush"] == ""} == {"unordered"}


def made_up_flush(case: Case) -> dict[str, float]:
    policy, delay = case.parameters["flush"], made_up.number(case, "flush_ns")
    losses = {"periodic": 1_000.0, "aggregated": 500.0}
    rate = 1e6 * (1 - losses.get(str(policy), 0.0) / max(delay, 1_000.0))
    wait = {"": 8e3, "adaptive": 12e3}.get(str(policy), delay)
    return {PEAK: rate, LATENCY: wait}


def three_loads(case: Case) -> list[Record]:
    return made_up.loads(case, 3, 1e6, 8e3)


def test_flush_policies_are_compared_at_their_shortest_delay() -> None:
    evaluation = flush.evaluate(made_up.results(flush.cases(FULL), made_up_flush, three_loads))
    expected = {
        "hydra.flush.gen_throughput_loss": 0.9 / 0.99,
        "hydra.flush.agg_gain": 0.95 / 0.9,
        "hydra.flush.adp_latency_us": 4.0,
        "hydra.flush.adp_throughput": 1.0,
    }
    assert values(evaluation) == pytest.approx(expected)
    assert "10 us: 0.909, 20 us: 0.96, 100 us: 1" in evaluation.measurements[0].note
    (figure,) = evaluation.figures
    assert "GEN, 10 us" in [curve.label for curve in figure.curves]
    assert all(len(curve.points) == 3 for curve in figure.curves)


@pytest.mark.parametrize("kind", [scale.SWITCH, scale.HOST])
def test_scaling_is_measured_against_one_sequencer(kind: str) -> None:
    cases, evaluate, claim = {
        scale.SWITCH: (scale.cases_switch, scale.evaluate_switch, "hydra.scale.switch_linear"),
        scale.HOST: (scale.cases_host, scale.evaluate_host, "hydra.scale.endhost_linear"),
    }[kind]

    def fake(case: Case) -> dict[str, float]:
        count = made_up.number(case, "sequencers")
        return {PEAK: 1e6 * count**0.9, LATENCY: 5e3, scale.SUSTAINED: 5e3 * count}

    evaluation = evaluate(made_up.results(cases(FULL), fake))
    assert values(evaluation) == pytest.approx({claim: 8**-0.1})
    rates, waits = evaluation.figures
    assert [point.x for point in rates.curves[0].points] == [1.0, 2.0, 4.0, 6.0, 8.0]
    assert rates.curves[1].points[-1].y == pytest.approx(8_000.0)
    assert waits.curves[0].points[-1].y == pytest.approx(40.0)
    assert f"Figure {'4a' if kind == scale.SWITCH else '4b'}" in rates.caption


@pytest.mark.parametrize("kind", [scale.SWITCH, scale.HOST])
def test_a_sequencer_beyond_its_limit_stamps_as_much_as_it_can(kind: str) -> None:
    found = scale.measure(kind=kind, sequencers=1, messages=500, seed=1, **NUMBERS)
    assert found.numbers[PEAK] == pytest.approx(scale.capacity_per_s(kind, PUBLISHED), rel=0.05)
    loads = [record["clients"] for record in found.records]
    assert loads == [1 << load for load in range(len(loads))]
    assert found.numbers[LATENCY] <= found.numbers[scale.SUSTAINED] < found.records[-1]["p50_ns"]  # type: ignore[operator]


def test_eight_end_hosts_are_measured_without_questions_too() -> None:
    (unasked,) = (case for case in scale.cases_host(FULL) if case.parameters["kind"] == scale.UNASKED)
    assert unasked.arguments["flush"] == "periodic"
    evaluation = scale.evaluate_host(
        made_up.results(scale.cases_host(FULL), lambda case: {PEAK: 1e6, LATENCY: 2e3, scale.SUSTAINED: 4e3})
    )
    assert "for which nobody asks: 4 us" in evaluation.measurements[0].note


def test_skew_adds_latency_and_divides_rates() -> None:
    def wait(case: Case) -> float:
        return (10.0 + 0.4 * made_up.number(case, "skew_us")) * 1e3

    def fake(case: Case) -> dict[str, float]:
        rate = 1e6 - 100 * made_up.number(case, "skew_us")
        return {PEAK: rate, LATENCY: 1.0, MEAN: wait(case) + case.seed}

    def fake_loads(case: Case) -> list[Record]:
        return made_up.loads(case, 3, 1e6, wait(case))

    evaluation = skew.evaluate(made_up.results(skew.cases(FULL), fake, fake_loads))
    expected = {
        "hydra.skew.throughput": 0.98,
        "hydra.skew.latency_10us": 4.0,
        "hydra.skew.latency_200us": 80.0,
    }
    assert values(evaluation) == pytest.approx(expected)
    assert "added by clients a group: 1: 80, 2: 160, 4: 320" in evaluation.measurements[-1].note
    waits, rates = evaluation.figures
    assert [point.x for point in waits.curves[0].points] == [0.0, 1.0, 10.0, 50.0, 100.0, 200.0]
    assert rates.curves[0].points[0].y == pytest.approx(1_000.0)
    assert waits.references[1].y == pytest.approx(110.0, rel=1e-3)

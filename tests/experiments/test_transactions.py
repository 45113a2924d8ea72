"""Transactions on the testbed (Figures 6, 9 and 12): what cases run, and what is made of their results."""

from statistics import median
from typing import Any

import pytest

from benchmarks.transaction_fit import crossing
from ordercast.experiments import Case, Evaluation, Setup, all_experiments
from ordercast.experiments.hydra import failover, transaction_loss, transactions
from ordercast.experiments.hydra.bench import latencies_of, ready_world
from ordercast.experiments.hydra.calibration import PUBLISHED
from ordercast.experiments.hydra.losing import EVERYWHERE, LOSSES
from ordercast.experiments.hydra.saturation import LATENCY, PEAK
from ordercast.experiments.hydra.sensitivity import FULL, QUICK
from ordercast.experiments.hydra.transaction_calibration import (
    EXECUTION,
    LIMIT,
    UNLIMITED,
    execution_ns,
    limit_gbps,
)
from ordercast.experiments.hydra.transaction_runs import (
    ERIS,
    GRANOLA,
    HYDRA_TXN,
    LOCK_STORE,
    SEQUENCED,
    SHARDS,
    SYSTEMS,
    Ended,
    Mix,
    drawn_by,
    losing,
    shards_run,
    transact,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.sim.workload import ClosedLoop
from ordercast.trace import Kind
from tests.experiments import made_up

EXPERIMENTS = {experiment.name: experiment for experiment in all_experiments()}
NUMBERS: dict[str, Any] = {"packet_ns": PUBLISHED.packet_ns, "link_us": PUBLISHED.link_us}
RATES = {HYDRA_TXN: 2850.0, ERIS: 1900.0, GRANOLA: 1500.0, LOCK_STORE: 1000.0}


def values(evaluation: Evaluation) -> dict[str, float]:
    return {each.claim: each.value for each in evaluation.measurements}


@pytest.mark.parametrize("name", ["hydra-6", "hydra-9", "hydra-12"])
def test_quick_is_less_and_no_case_is_there_twice(name: str) -> None:
    quick, full = (EXPERIMENTS[name].cases(Setup(quick=quick)) for quick in (True, False))
    assert 0 < len(quick) < len(full)
    names = [case.name() for case in full]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("system", "packets"), [(HYDRA_TXN, 2), (ERIS, 2), (GRANOLA, 6), (LOCK_STORE, 12)])
def test_the_busiest_replica_has_these_packets_and_an_execution(system: str, packets: int) -> None:
    found = transact(system=system, seed=0, messages=200, limit=UNLIMITED, **NUMBERS).numbers[PEAK]
    expected = SHARDS * 1e9 / (PUBLISHED.packet_ns * (packets + EXECUTION))
    assert found == pytest.approx(expected, rel=0.15)


@pytest.mark.deep
def test_a_sequencer_passes_what_its_limit_lets_through() -> None:
    """A limit that halves bites twice as hard, on one sequencer and on two."""
    for system in SEQUENCED:
        one, half = (
            transact(system=system, seed=0, messages=200, limit=limit, **NUMBERS).numbers[PEAK]
            for limit in (100.0, 50.0)
        )
        assert half == pytest.approx(one / 2, rel=0.1)
    assert limit_gbps(PUBLISHED, UNLIMITED) is None
    assert limit_gbps(PUBLISHED, 100.0) == pytest.approx(16.0)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_general_transaction_counts_once_and_from_its_beginning(system: str) -> None:
    scenario = shards_run(system, 15, 0, PUBLISHED, execute_ns=0, limit=UNLIMITED)
    world, ended = ready_world(scenario), Ended()
    ClosedLoop(world, scenario.workload, drawn_by(scenario, Mix(two=1.0, general=1.0))).start()
    world.run(world.now + 100_000)
    latencies = ended(world, 0)
    # Every second answer ends a transaction.
    assert world.calls.answered / 2 == pytest.approx(len(latencies), rel=0.1)
    halves = latencies_of(world, 0, kind=Kind.REPLY)
    assert median(latencies) == pytest.approx(2 * median(halves), rel=0.1)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_runs_retwis_under_loss(system: str) -> None:
    scenario = shards_run(system, 30, 1, PUBLISHED, execute_ns=execution_ns(PUBLISHED), limit=LIMIT)
    world = ready_world(losing(scenario, 0.001))
    ClosedLoop(world, scenario.workload, drawn_by(scenario, Mix(retwis=True))).start()
    world.run(world.now + 3_000_000)
    assert world.network.lost > 0 and world.calls.answered > 100


def test_ratios_of_throughputs_and_what_other_numbers_would_give() -> None:
    def fake(case: Case) -> dict[str, float]:
        system = str(case.parameters["system"])
        rate = RATES[system] / (2.0 if case.parameters["order"] else 1.0)
        if case.parameters["execution"] == 0.0 and system == HYDRA_TXN:
            rate *= 2
        if case.parameters["limit"] == UNLIMITED and system == ERIS:
            rate *= 1.5
        return {PEAK: rate, LATENCY: 1e6 / RATES[system]}

    def loads(case: Case) -> list[Any]:
        return made_up.loads(case, 3, RATES[str(case.parameters["system"])], 1000.0)

    evaluation = transactions.evaluate_6(made_up.results(transactions.cases_6(FULL), fake, loads))
    assert values(evaluation) == pytest.approx(
        {
            "hydra.txn.vs_lockstore": 2.85,
            "hydra.txn.vs_granola": 1.9,
            "hydra.txn.vs_eris": 1.5,
            "baseline.granola_vs_lockstore": 1.5,
            "baseline.eris_vs_granola": 1900 / 1500,
        }
    )
    note = {each.claim: each.note for each in evaluation.measurements}
    lock_store = note["hydra.txn.vs_lockstore"]
    assert "HydraTxn takes 0.351 us and Lock-Store 1 us, 65% less" in lock_store
    assert "charged to HydraTxn alone: 1.43" in lock_store
    assert "with executions that cost nothing: 5.7" in lock_store
    assert "with sequencers without a limit: 1;" in note["hydra.txn.vs_eris"] + ";"
    assert "limit" not in note["baseline.granola_vs_lockstore"]
    figures = {figure.id: figure for figure in evaluation.figures}
    assert [*figures] == [
        "hydra-6", "hydra-6-independent", "hydra-6-general", "hydra-6-retwis", "hydra-6-two",
        "hydra-6-general-share", "hydra-6-skew",
    ]  # fmt: skip
    assert all(len(figure.curves) == len(SYSTEMS) for figure in figures.values())
    for name in ("hydra-6-two", "hydra-6-general-share", "hydra-6-skew"):
        places = [point.x for point in figures[name].curves[0].points]
        assert places == sorted(set(places)) and places[0] == 0.0


def test_a_quick_run_has_all_claims_and_says_nothing_of_what_was_not_run() -> None:
    evaluation = transactions.evaluate_6(
        made_up.results(
            transactions.cases_6(QUICK),
            lambda case: {PEAK: RATES[str(case.parameters["system"])], LATENCY: 1.0},
            lambda case: made_up.loads(case, 3, 1.0, 1000.0),
        )
    )
    assert set(values(evaluation)) == set(transactions.CLAIMS)
    assert not any("of the limit" in each.note for each in evaluation.measurements)
    assert [figure.id for figure in evaluation.figures] == ["hydra-6"]


def test_what_is_kept_under_loss_is_that_of_each_seed() -> None:
    def fake(case: Case) -> dict[str, float]:
        lost = float(case.parameters["loss"]) > 0.001
        factor = 0.5 if case.parameters["where"] == EVERYWHERE else 0.75
        return {PEAK: RATES[str(case.parameters["system"])] * (factor if lost else 1.0)}

    evaluation = transaction_loss.evaluate_12(made_up.results(transaction_loss.cases_12(FULL), fake))
    assert values(evaluation) == {transaction_loss.CLAIM: 0.5}
    note = evaluation.measurements[0].note
    assert "1.5 times Eris with the same losses, and 0.75 times Eris without any" in note
    assert note.endswith("from sequencers to replicas: 0.75")
    (figure,) = evaluation.figures
    assert len(figure.curves) == len(SYSTEMS) + len(SEQUENCED)
    assert [point.x for point in figure.curves[0].points] == [100 * loss for loss in LOSSES[1:]]


def test_downtimes_are_divided_and_drawn_over_time() -> None:
    def fake(case: Case) -> dict[str, float]:
        long = case.parameters["system"] == ERIS
        bins = {f"bin_{index:03}": float(index) for index in range(failover.BEFORE + failover.AFTER)}
        return bins | {failover.DOWNTIME: 120.0 if long else 30.0, failover.SLOW: 100.0 if long else 31.0}

    evaluation = failover.evaluate(made_up.results(failover.cases(FULL), fake))
    assert values(evaluation) == {failover.CLAIM: 4.0}
    assert "HydraTxn 30.0 ms, Eris 120.0 ms" in evaluation.measurements[0].note
    (figure,) = evaluation.figures
    assert (figure.curves[0].points[0].x, figure.curves[0].points[0].y) == (-20.0, 0.0)
    assert len(figure.curves[1].points) == failover.BEFORE + failover.AFTER


def test_the_fit_finds_the_value_in_between() -> None:
    assert crossing((2.0, 4.0), (1.7, 1.5), 1.6) == pytest.approx(3.0)
    assert crossing((100.0, 200.0, 300.0), (0.5, 1.0, 1.5), 1.25) == pytest.approx(250.0)
    with pytest.raises(SystemExit, match=r"2\.000 is not among the ratios"):
        crossing((1.0, 2.0), (0.5, 1.0), 2.0)


def test_a_failure_stops_answers_for_the_time_of_detection_or_of_rerouting() -> None:
    assert HydraOptions().suspect_ns == failover.DETECTION  # the paper's, and the default
    hydra_txn, eris = (failover.measure(system=system, seed=1, **NUMBERS) for system in (HYDRA_TXN, ERIS))
    assert 30 <= hydra_txn[failover.DOWNTIME] < 40
    assert 130 <= eris[failover.DOWNTIME] < 135
    assert hydra_txn[failover.SLOW] == pytest.approx(hydra_txn[failover.DOWNTIME], abs=1.5)
    for found in (hydra_txn, eris):
        after = [found[f"bin_{index:03}"] for index in range(165, 190)]
        before = [found[f"bin_{index:03}"] for index in range(1, 20)]
        assert sum(after) / len(after) == pytest.approx(sum(before) / len(before), rel=0.05)

"""When peers have their rounds: apart by default, or together as in the simulator of EpTO's authors."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from ordercast.core import MILLISECOND
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.rounds import Rounds, RoundsApart, RoundsTogether
from ordercast.scenario.spec import ConstantSpec, MatrixSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind
from tests.epto.lab import ROUND, Bench

ROUND_TICKS, DRIFT = 125, 1
SEEDS = range(12)

Make = Callable[[int, int, int, int], Rounds]


def times(make: Make, seed: int, count: int, now: int = 0, jitter: int = DRIFT) -> list[int]:
    """When the first rounds are."""
    rounds, found = make(seed, ROUND_TICKS, jitter, now), []
    for _ in range(count):
        found.append(rounds.due)
        rounds.run(rounds.due)
    return found


def test_together_round_k_is_at_k_times_its_length_within_the_drift_which_does_not_add_up() -> None:
    drifts = set()
    for seed in SEEDS:
        found = times(RoundsTogether, seed, 1_000)
        assert found[0] == 0, "all begin at once"
        drifts |= {at - ROUND_TICKS * number for number, at in enumerate(found)}
    assert drifts == {-DRIFT, 0, DRIFT}


def test_apart_rounds_begin_at_random_times_and_drift_adds_up() -> None:
    found = [times(RoundsApart, seed, 1_000) for seed in SEEDS]
    assert len({each[0] for each in found}) > len(SEEDS) // 2
    assert all(
        abs(later - earlier - ROUND_TICKS) <= DRIFT for each in found for earlier, later in pairwise(each)
    )
    assert max(abs(each[-1] - each[0] - 999 * ROUND_TICKS) for each in found) > 10 * DRIFT


def test_one_who_starts_later_falls_in_with_the_others() -> None:
    assert times(RoundsTogether, 3, 1, now=ROUND_TICKS * 7) == [ROUND_TICKS * 7]
    found = times(RoundsTogether, 3, 50, now=ROUND_TICKS * 7 + 1)
    assert all(abs(at - ROUND_TICKS * (8 + number)) <= DRIFT for number, at in enumerate(found))


@pytest.mark.parametrize("make", [RoundsApart, RoundsTogether])
@pytest.mark.parametrize("jitter", [0, 1, 60])
def test_who_slept_goes_on_with_the_rounds_of_one_who_did_not(make: Make, jitter: int) -> None:
    for seed in SEEDS:
        awake = times(make, seed, 60, jitter=jitter)
        for wakes in range(0, awake[50], 37):
            rounds = make(seed, ROUND_TICKS, jitter, 0)
            rounds.sleep(wakes)
            slept = sum(at < wakes for at in awake)
            assert (rounds.number, rounds.due) == (slept, awake[slept])


def test_after_a_pause_rounds_are_at_multiples_again_and_none_is_made_up_for() -> None:
    rounds = RoundsTogether(5, ROUND_TICKS, DRIFT, 0)
    rounds.run(0)
    rounds.run(10 * ROUND_TICKS + 40)
    assert rounds.number == 2
    assert abs(rounds.due - 11 * ROUND_TICKS) <= DRIFT


def test_while_a_clock_stands_still_rounds_go_on() -> None:
    rounds = RoundsTogether(5, ROUND_TICKS, DRIFT, 0)
    for _ in range(20):
        rounds.run(3 * ROUND_TICKS)
        assert rounds.due - 3 * ROUND_TICKS <= ROUND_TICKS + DRIFT
    assert rounds.number == 20


def test_peers_that_are_together_throw_together() -> None:
    benches = [Bench(me=me, seed=me, jitter_ns=ROUND // 100, together=True, ttl=9) for me in range(3)]
    for bench in benches:
        bench.env.now = ROUND // 2
        bench.submit("mine")
        for number in range(1, 6):
            assert abs(bench.env.timers["round"] - number * ROUND) <= ROUND // 100
            bench.round()


def test_in_the_simulator_events_are_delivered_in_steps_of_a_round() -> None:
    """As the paper's curves are; with rounds apart they are not."""
    options = {"round_ns": 10 * MILLISECOND, "fanout": 9, "ttl": 6, "clock": "global"}

    def phases(rounds: str) -> set[int]:
        scenario = Scenario(
            name="rounds",
            protocol="epto",
            receivers=10,
            colocated=True,
            options={**options, "rounds": rounds},
            network=NetworkSpec(latency=ConstantSpec(us=1_000)),
            workload=WorkloadSpec(messages=20, rate_per_s=500),
        )
        run = simulate(scenario)
        delivered = [event for event in map(Event._make, run.rows) if event.kind is Kind.DELIVER]
        assert len(delivered) == 20 * 10
        return {event.time_ns % (10 * MILLISECOND) * 10 // (10 * MILLISECOND) for event in delivered}

    assert phases("together") <= {0, 9}, "within a tenth of a round around its beginning"
    assert len(phases("apart")) > 5


def test_in_the_simulator_pairs_without_a_measurement_never_hear_each_other(tmp_path: Path) -> None:
    matrix = np.full((6, 6), 20)
    matrix[0, 1] = matrix[4, 2] = -1
    np.savez(tmp_path / "nodes.npz", lat_ticks=matrix)
    scenario = Scenario(
        protocol="epto",
        receivers=6,
        senders=6,
        colocated=True,
        options={
            "round_ns": 125 * MILLISECOND,
            "rounds": "together",
            "fanout": 5,
            "ttl": 6,
            "clock": "global",
        },
        network=NetworkSpec(latency=MatrixSpec(str(tmp_path / "nodes.npz"), key="lat_ticks")),
        workload=WorkloadSpec(messages=30, rate_per_s=5),
        settle_ms=5_000,
        packets=True,
    )
    run = simulate(scenario)
    heard = {(event.peer, event.node) for event in map(Event._make, run.rows) if event.kind is Kind.RECEIVE}
    everybody = {(one, other) for one in range(6) for other in range(6) if one != other}
    assert heard == everybody - {(0, 1), (4, 2)}
    assert run.summary().delivered == 30 * 6, "others pass on what a pair cannot tell each other"


@pytest.mark.parametrize("seed", range(10))
def test_promises_are_kept_under_faults_with_the_authors_rounds_and_views(seed: int) -> None:
    """Crashes, pauses, wrong clocks and all else that the swarm draws."""
    scenario = swarm_scenario("epto", seed)
    options = {**scenario.options, "rounds": "together", "sampling": "cyclon-authors"}
    run = simulate(replace(scenario, options=options))
    assert run.violations == []
    assert run.summary().submitted > 0


def test_by_default_they_are_apart() -> None:
    assert EptoOptions().rounds == "apart"

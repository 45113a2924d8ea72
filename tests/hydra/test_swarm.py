"""Random faults of all kinds; and the scenarios of Hydra's mutants, in which Hydra itself does no wrong."""

from collections.abc import Callable

import pytest

from ordercast.core import Deployment, Plan
from ordercast.protocols.hydra import PROTOCOL, HydraOptions
from ordercast.scenario.spec import Scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate
from ordercast.trace import ADDED, REMOVED, Kind
from tests.sim import hydra_scenes, mutants_hydra

SEEDS = 40
SCENARIOS: list[Callable[[int], Scenario]] = [
    hydra_scenes.scene,
    hydra_scenes.lossy,
    hydra_scenes.doubling,
    hydra_scenes.sequencer_crash,
    hydra_scenes.sequencer_cut_off,
    hydra_scenes.service_split,
    hydra_scenes.tail_lost,
    hydra_scenes.near_minority,
    hydra_scenes.group_cut_off,
    hydra_scenes.rejoining,
    hydra_scenes.durable_restart,
]


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_promises_hold_whatever_the_seed_draws(first: int) -> None:
    for seed in range(first, first + 10):
        run = simulate(swarm_scenario("hydra", seed))
        assert run.violations == [], f"seed {seed}"


def test_the_seeds_draw_sequencers_that_come_and_go() -> None:
    changes: set[str | None] = set()
    for seed in range(10):
        run = simulate(swarm_scenario("hydra", seed))
        changes |= {event.label for event in run.events() if event.kind is Kind.VIEW}
    assert {ADDED, REMOVED} <= changes


@pytest.mark.parametrize("seed", range(3))
def test_conformance(seed: int) -> None:
    def make_plan(deployment: Deployment) -> Plan:
        return PROTOCOL.deploy(deployment, HydraOptions())

    assert conformance(make_plan, [seed]) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("odd", [False, True], ids=["plain", "coarse clocks and eager senders"])
def test_where_mutants_are_caught_hydra_is_clean(scenario: Callable[[int], Scenario], odd: bool) -> None:
    coarse = ("sequencer", mutants_hydra.coarse, None)
    eager = ("sender", mutants_hydra.eager, None)
    for seed in range(6):
        run = mutants_hydra.run(scenario, (coarse, eager) if odd else (), seed)
        assert run.violations == []
        assert run.hindrance == ""
        assert run.summary().delivered > 300

"""What the swarm draws for Hydra; and the scenarios of its mutants, in which Hydra itself does no wrong.

Its promises on the seeds of the swarm, and its conformance, are tried with those of all protocols in
`tests/sim/test_swarm.py`.
"""

from collections.abc import Callable

import pytest

from ordercast.scenario.spec import Scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from ordercast.trace import ADDED, REMOVED, Kind
from tests.sim import hydra_scenes, mutants_hydra

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


def test_the_seeds_draw_sequencers_that_come_and_go() -> None:
    changes: set[str | None] = set()
    for seed in range(10):
        run = simulate(swarm_scenario("hydra", seed))
        changes |= {event.label for event in run.events() if event.kind is Kind.VIEW}
    assert {ADDED, REMOVED} <= changes


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

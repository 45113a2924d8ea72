"""The token ring that tolerates crashes keeps its promises, and the swarm finds what breaks it."""

import pytest

from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate
from ordercast.sim.shrinking import shrink
from tests.deep import deep_after
from tests.sim.models import ring
from tests.sim.mutants_ring import CUT_OFF, HURRIED, LINGERING, OLD_RING, MakePlan, run_ring

SEEDS = 100
"""Within how many seeds the swarm must catch a broken ring."""


def fails(make: MakePlan, seed: int) -> bool:
    """Whether a seed of the swarm finds a ring broken."""
    scenario = swarm_scenario("", seed, make)
    return bool(simulate(scenario, make(scenario.deployment())).violations)


@pytest.mark.parametrize("seed", deep_after(1, range(20)))
def test_the_ring_conforms(seed: int) -> None:
    assert conformance(ring.plan, [seed]) == []


@pytest.mark.parametrize("first", deep_after(1, range(0, 150, 10)))
def test_the_ring_keeps_its_promises_on_every_seed(first: int) -> None:
    assert [seed for seed in range(first, first + 10) if fails(ring.plan, seed)] == []


def test_the_ring_keeps_its_promises_where_the_broken_ones_do_not() -> None:
    assert run_ring(ring.plan, OLD_RING, 0).violations == []
    assert run_ring(ring.plan, CUT_OFF, 0).violations == []


@pytest.mark.deep
@pytest.mark.parametrize("make", [LINGERING, HURRIED], ids=["old-ring", "no-majority"])
def test_the_swarm_catches_a_broken_ring_and_a_tenth_of_the_run_is_enough_to_show_it(make: MakePlan) -> None:
    caught = next((seed for seed in range(SEEDS) if fails(make, seed)), None)
    assert caught is not None, f"none of {SEEDS} seeds catches it"
    found = shrink(swarm_scenario("", caught, make), make)
    assert found.finished
    assert found.after.events <= found.before.events / 10
    assert found.violation.property in {one.property for one in run_ring(make, found.scenario, 0).violations}

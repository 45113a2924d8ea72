"""The token ring that tolerates crashes keeps its promises, and the swarm finds what breaks it."""

import pytest

from ordercast.core import LocalError
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import to_scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate
from ordercast.sim.shrinking import Shrunk, shrink
from tests.deep import deep_after
from tests.sim.models import ring
from tests.sim.mutants_ring import CUT_OFF, HURRIED, LINGERING, OLD_RING, MakePlan, run_ring

LONG = 200
"""Rows of a run of which a tenth is enough for two members, their messages and a fault."""
SEEDS = 100
"""Within how many seeds the swarm must catch a broken ring."""


def shrunk(make: MakePlan, seed: int) -> Shrunk:
    """The smallest part of a seed in which a ring is broken."""
    return shrink(swarm_scenario("", seed, make), make)


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
    caught = (shrunk(make, seed) for seed in range(SEEDS) if fails(make, seed))
    found = next((one for one in caught if one.before.events >= LONG), None)
    assert found is not None, f"none of {SEEDS} seeds catches it in a long run"
    assert found.finished
    assert found.after.events <= found.before.events / 10
    assert found.violation.property in {one.property for one in run_ring(make, found.scenario, 0).violations}


def test_the_swarm_takes_a_whole_group_down_where_a_minority_of_all_receivers_may_be() -> None:
    """And it sends no message to more groups than the ring allows."""
    emptied = 0
    for seed in range(200):
        scenario = swarm_scenario("", seed, ring.plan)
        plan = ring.plan(scenario.deployment())
        back = {fault.host for fault in scenario.fault if isinstance(fault, Restart)}
        gone = {fault.host for fault in scenario.fault if isinstance(fault, Crash)} - back
        members = [node for node in plan.nodes if node.role == "member"]
        assert 2 * sum(node.host in gone for node in members) < len(members)
        assert len(scenario.workload.spread) == 1
        emptied += any({plan.nodes[node].host for node in nodes} <= gone for nodes in plan.groups.values())
    assert emptied > 0


def test_a_load_on_more_groups_than_a_protocol_allows_is_refused() -> None:
    scenario = to_scenario({"protocol": "", "groups": 3, "workload": {"spread": [0.5, 0.5]}})
    with pytest.raises(LocalError, match="ring-model sends a message to at most 1 of the groups"):
        simulate(scenario, ring.plan(scenario.deployment()))

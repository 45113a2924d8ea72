"""The swarm's seeds are worth something: a broken ordering is condemned on a good part of them.

A seed on which hardly anything is delivered finds no fault with any order. So options that starve a run must
not be drawn too often.
"""

import pytest

from ordercast.protocols.epto.peer import Peer
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from tests.epto.lab import Bench, event
from tests.paper.epto_printed import Printed
from tests.sim.mutants_epto import altered

SEEDS = 40


def as_printed(peer: Peer) -> None:
    peer._order = Printed(peer._set.ttl)


@pytest.mark.deep
def test_the_printed_ordering_is_condemned_on_every_tenth_seed_at_least() -> None:
    condemned = 0
    for seed in range(SEEDS):
        scenario = swarm_scenario("epto", seed)
        plan = scenario.plan()
        found = simulate(scenario, altered(plan, as_printed, range(len(plan.nodes)))).violations
        condemned += any(violation.property in ("total-order", "acyclic-order") for violation in found)
    assert condemned >= SEEDS // 10


def test_at_a_ttl_of_one_nothing_spreads() -> None:
    bench = Bench(ttl=1)
    bench.hear((event("theirs", 1), 1))  # the age at which every ball of a broadcaster arrives
    bench.round(5)
    assert bench.words() == []

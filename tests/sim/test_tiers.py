"""Seeds of the swarm with three tiers: no promise is broken, and a stock never sells anything twice."""

import pytest

from tests.deep import deep_after
from tests.sim.tiers import run_tiers, tiers_scenario

CHUNK = 15


@pytest.mark.parametrize("first", deep_after(2, range(0, 1200, CHUNK)))
def test_seeds_keep_all_promises(first: int) -> None:
    judged = 0
    for seed in range(first, first + CHUNK):
        scenario = tiers_scenario(seed)
        if scenario is not None:
            run, wrong = run_tiers(scenario)
            assert run.violations == [] and wrong == [], f"seed {seed}"
            judged += 1
    assert judged

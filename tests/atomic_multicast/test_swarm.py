"""Random faults of all kinds, with limits small enough to be reached; tests/sim has the usual ones."""

from random import Random

import msgspec
import pytest

from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from tests.deep import deep_after

SEEDS = 60


def small_limits(seed: int) -> dict[str, object]:
    rng = Random(f"{seed}/options")
    return {
        "window": rng.choice((1, 3, 64)),
        "backlog": rng.choice((64, 200)),
        "queue": rng.choice((1, 4096)),
        "early": rng.choice((1, 4096)),
        "confirm_ns": rng.choice((20_000_000, 100_000_000)),
        "patience_ns": rng.choice((100_000, 10_000_000)),
        "recovery_ns": rng.choice((1_000_000, 40_000_000)),
        "consensus": {
            "window": rng.choice((1, 4, 1024)),
            "log_limit": rng.choice((500, 65_536)),
            "checkpoint": rng.choice((1, 5, 20)),
            "chunk_bytes": rng.choice((1, 300, 65_536)),
            "burst": rng.choice((1, 64)),
        },
    }


@pytest.mark.parametrize("first", deep_after(2, range(0, SEEDS, 10)))
def test_promises_hold_with_limits_that_are_reached(first: int) -> None:
    for seed in range(first, first + 10):
        scenario = swarm_scenario("atomic_multicast", seed)
        scenario = msgspec.structs.replace(scenario, options=small_limits(seed), settle_ms=8000)
        run = simulate(scenario)
        assert run.violations == [], f"seed {seed}"

"""Random faults of all kinds, with usual limits and with limits small enough to be reached."""

from random import Random

import msgspec
import pytest

from ordercast.core import Deployment, Plan
from ordercast.protocols.atomic_multicast import PROTOCOL, AtomicMulticastOptions
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate

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


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_promises_hold_with_limits_that_are_reached(first: int) -> None:
    for seed in range(first, first + 10):
        scenario = swarm_scenario("atomic_multicast", seed)
        scenario = msgspec.structs.replace(scenario, options=small_limits(seed), settle_ms=8000)
        run = simulate(scenario)
        assert run.violations == [], f"seed {seed}"


@pytest.mark.parametrize("seed", range(4))
def test_conformance(seed: int) -> None:
    def make_plan(deployment: Deployment) -> Plan:
        return PROTOCOL.deploy(deployment, AtomicMulticastOptions())

    assert conformance(make_plan, [seed]) == []

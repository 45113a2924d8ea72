"""A receiver that comes back without its state: it delivers nothing that its earlier life delivered."""

from collections.abc import Mapping

import pytest

from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.lives import again, lives, wiped_again_and_again

FORGETFUL = 1
VARIANTS: list[dict[str, object]] = [
    {},
    {"durable": True, "resend": True},
    {"flush": "nudged", "flush_ns": 2_000_000, "resend": True, "repair": False},
    {"flush": "aggregated", "flush_ns": 2_000_000, "sequencers": 3, "durable": True},
]


def run_of(options: Mapping[str, object]) -> Run:
    """A receiver crashes again and again while messages flow, and is soon back with an empty disk."""
    return simulate(
        Scenario(
            protocol="hydra",
            groups=2,
            receivers=3,
            senders=2,
            options=dict(options),
            network=NetworkSpec(latency=UniformSpec(100, 900), loss=0.05, reordering=0.1, reorder_us=3000),
            workload=WorkloadSpec(messages=400, rate_per_s=400, spread=(0.6, 0.4)),
            fault=wiped_again_and_again(FORGETFUL),
            settle_ms=300,
        )
    )


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_new_life_delivers_nothing_again(options: Mapping[str, object]) -> None:
    run = run_of(options)
    assert len(lives(run, FORGETFUL)) == 11
    assert sum(map(bool, lives(run, FORGETFUL))) > 5, "most lives come to deliver something"
    assert again(run, FORGETFUL) == 0
    assert not run.violations

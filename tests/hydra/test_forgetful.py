"""A receiver that comes back without its state: it delivers nothing that its earlier life delivered."""

from collections.abc import Mapping

import pytest

from ordercast.core import MessageId
from ordercast.scenario.faults import Crash, Disk, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import CARRYING, Kind

FORGETFUL = 1
VARIANTS: list[dict[str, object]] = [
    {},
    {"durable": True, "resend": True},
    {"flush": "nudged", "flush_ns": 2_000_000, "resend": True, "repair": False},
    {"flush": "aggregated", "flush_ns": 2_000_000, "sequencers": 3, "durable": True},
]


def run_of(options: Mapping[str, object]) -> Run:
    """A receiver crashes again and again while messages flow, and is soon back with an empty disk."""
    crashes = [50 + 40 * number for number in range(10)]
    return simulate(
        Scenario(
            protocol="hydra",
            groups=2,
            receivers=3,
            senders=2,
            options=dict(options),
            network=NetworkSpec(latency=UniformSpec(100, 900), loss=0.05, reordering=0.1, reorder_us=3000),
            workload=WorkloadSpec(messages=400, rate_per_s=400, spread=(0.6, 0.4)),
            fault=tuple(
                fault
                for place, at in enumerate(crashes)
                for fault in (
                    Disk(at_ms=at, host=FORGETFUL, what="wiped"),
                    Crash(at_ms=at, host=FORGETFUL),
                    Restart(at_ms=at + place % 4, host=FORGETFUL),
                )
            ),
            settle_ms=300,
        )
    )


def lives(run: Run) -> list[list[MessageId]]:
    """What the receiver delivered in each of its lives."""
    found: list[list[MessageId]] = [[]]
    for row in run.events():
        if row.node == FORGETFUL and row.kind is Kind.RECOVER:
            found.append([])
        elif row.node == FORGETFUL and row.kind in CARRYING and row.message is not None:
            found[-1].append(row.message)
    return found


def again(run: Run) -> int:
    """How many messages a later life delivered again."""
    seen: set[MessageId] = set()
    count = 0
    for delivered in lives(run):
        count += len(seen.intersection(delivered))
        seen.update(delivered)
    assert len(seen) > 50
    return count


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_new_life_delivers_nothing_again(options: Mapping[str, object]) -> None:
    run = run_of(options)
    assert len(lives(run)) == 11
    assert sum(map(bool, lives(run))) > 5, "most lives come to deliver something"
    assert again(run) == 0
    assert not run.violations

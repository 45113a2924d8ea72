"""Broken token rings, each in the smallest scenario that `ordercast shrink` made of a seed that caught it."""

from collections.abc import Callable
from functools import partial

from ordercast.core import Deployment, Plan
from ordercast.scenario.faults import Crash, Heal, Partition, Pause, Restart
from ordercast.scenario.spec import (
    ConstantSpec,
    NetworkSpec,
    Scenario,
    SubmissionSpec,
    UniformSpec,
    WorkloadSpec,
)
from ordercast.sim.run import Run, simulate
from tests.sim.models import ring
from tests.sim.mutant import Mutant

MakePlan = Callable[[Deployment], Plan]

LINGERING: MakePlan = partial(ring.plan, make=ring.Lingering)
HURRIED: MakePlan = partial(ring.plan, make=ring.Hurried)

OLD_RING = Scenario(
    protocol="",
    seed=7,
    receivers=9,
    senders=2,
    settle_ms=5000,
    network=NetworkSpec(
        loss=0.01, duplication=0.1, reordering=0.01, reorder_us=10_000, latency=ConstantSpec(1000)
    ),
    workload=WorkloadSpec(
        kind="listed",
        submission=(
            SubmissionSpec(at_ms=118.7, bytes=8),
            SubmissionSpec(at_ms=141.0, sender=1, bytes=8),
        ),
    ),
    fault=(Crash(at_ms=141.4, host=3), Restart(at_ms=141.4, host=3)),
)
"""A member numbers a message, restarts, gets a copy of the token that it had, and uses the number again."""

CUT_OFF = Scenario(
    protocol="",
    seed=66,
    senders=2,
    colocated=True,
    settle_ms=5000,
    network=NetworkSpec(latency=UniformSpec(300, 3000)),
    workload=WorkloadSpec(
        kind="listed",
        submission=(
            SubmissionSpec(sender=1, bytes=8),
            SubmissionSpec(bytes=8),
            SubmissionSpec(at_ms=74.6, bytes=8),
            SubmissionSpec(at_ms=204.1, sender=1, bytes=8),
        ),
    ),
    fault=(
        Pause(at_ms=78.9, host=2, for_ms=19.85920535200036),
        Partition(at_ms=104.1, sides=((2, 1), (0,))),
        Heal(at_ms=304.1),
    ),
)
"""A member is cut off while it has the token, and delivers what the others never get."""


def run_ring(make: MakePlan, scenario: Scenario, seed: int) -> Run:
    """Run a ring in its scenario, which is the same for every seed."""
    return simulate(scenario, make(scenario.deployment()))


RING_MUTANTS = [
    Mutant(
        "a restarted member goes on in its old ring",
        frozenset({"stamp", "stamp-owner"}),  # it uses a number twice
        partial(run_ring, LINGERING, OLD_RING),
        also=frozenset({"total-order", "agreement", "validity"}),
        seeds=1,
    ),
    Mutant(
        "a ring delivers without a majority",
        frozenset({"agreement"}),
        partial(run_ring, HURRIED, CUT_OFF),
        also=frozenset({"stamp", "stamp-owner", "total-order", "validity"}),
        seeds=1,
    ),
]

"""Failing scenarios become smaller and fail in the same way."""

from functools import partial
from pathlib import Path

import pytest

from ordercast.core import FAILED, Causality, Deployment, LocalError, Message, NodeId, Plan
from ordercast.protocols.unordered.protocol import Data, Receiver
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Crash, Heal, Partition, Pause, Restart, SetClock, Weather
from ordercast.scenario.file import load_scenario
from ordercast.scenario.part import part_of
from ordercast.scenario.spec import (
    ClocksSpec,
    ConstantSpec,
    NetworkSpec,
    Scenario,
    SitesSpec,
    SubmissionSpec,
    UniformSpec,
    WorkloadSpec,
)
from ordercast.scenario.writer import write_scenario
from ordercast.sim.run import simulate
from ordercast.sim.shrinking import Shrunk, _minimize, shrink
from tests.deep import deep_after
from tests.sim.models import peers, sequencer
from tests.sim.mutants import Forgetful, Selfish
from tests.sim.test_protocol_failed import receiver

FORGETFUL = partial(sequencer.plan, broken=Forgetful)
SELFISH = partial(peers.plan, causality=Causality.CAUSAL, broken=Selfish)


ROUGH = Scenario(
    protocol="",
    seed=5,
    groups=2,
    receivers=2,
    senders=3,
    network=NetworkSpec(latency=UniformSpec(50, 2000), loss=0.1, duplication=0.1, reordering=0.2),
    clocks=ClocksSpec(50, 10),
    workload=WorkloadSpec(messages=80, rate_per_s=500, bytes=100),
    settle_ms=300,
    bundle_bytes=1400,
    fault=(
        Pause(at_ms=10, host=1, for_ms=5),
        SetClock(at_ms=15, host=2, step_us=50),
        Partition(at_ms=20, sides=((0,), (1, 2))),
        Heal(at_ms=40),
        Weather(at_ms=41, conditions=Conditions(loss=0.1, reordering=0.1)),
        Heal(at_ms=80),
    ),
)
"""A scenario with something of everything."""


def properties(scenario: Scenario, make: object) -> set[str]:
    """What a scenario violates."""
    plan = make(scenario.deployment())  # type: ignore[operator]
    return {found.property for found in simulate(scenario, plan).violations}


@pytest.mark.parametrize("make", deep_after(1, [SELFISH, FORGETFUL]))
def test_a_failing_scenario_becomes_small_and_its_file_fails_in_the_same_way(
    make: partial[Plan], tmp_path: Path
) -> None:
    found = shrink(ROUGH, make)
    assert found.finished
    assert found.after.events <= found.before.events / 10
    assert found.after.messages <= 8 and found.after.faults <= found.before.faults
    write_scenario(tmp_path / "small.toml", found.scenario)
    assert found.violation.property in properties(load_scenario(tmp_path / "small.toml"), make)


class Fragile(Receiver):
    """Fails at its third message."""

    count = 0

    def on_message(self, source: NodeId, message: Message) -> None:
        """Count."""
        assert isinstance(message, Data)
        self.count += 1
        if self.count == 3:
            raise RuntimeError("three")
        super().on_message(source, message)


def fragile() -> Shrunk:
    """A failure that needs three messages, and nothing else."""
    return shrink(ROUGH, receiver(Fragile))


def test_what_is_not_needed_is_gone() -> None:
    found = fragile()
    assert fragile() == found, "the same scenario shrinks in the same way"
    small = found.scenario
    assert (small.groups, small.receivers, small.senders, small.fault) == (1, 1, 1, ())
    assert 1 <= len(small.workload.submission) <= 3, "the network may duplicate messages"
    assert small.network.latency == ConstantSpec() and not small.colocated
    assert found.violation.property == FAILED


def test_a_search_ends_with_its_budget_and_keeps_the_best_so_far() -> None:
    told: list[int] = []
    found = shrink(ROUGH, FORGETFUL, tries=10, report=lambda _, tries: told.append(tries))
    assert not found.finished and found.tries == 10 and told[-1] == 10
    assert found.violation.property in properties(found.scenario, FORGETFUL)
    assert shrink(ROUGH, FORGETFUL, enough=lambda: True).tries == 0


def test_a_scenario_that_does_not_fail_cannot_be_shrunk() -> None:
    with pytest.raises(LocalError, match="keeps every promise"):
        shrink(Scenario(protocol="unordered"))
    with pytest.raises(LocalError, match="does not violate fifo; it violates: "):
        shrink(ROUGH, FORGETFUL, violated="fifo")


def test_delta_debugging_finds_the_items_that_matter() -> None:
    for needed in ({3}, {0, 7}, {1, 2, 30}, set(range(5)), set()):
        kept = [tuple(range(31))]
        _minimize(kept[0], partial(matters, needed, kept))
        assert set(kept[-1]) == needed


def matters(needed: set[int], kept: list[tuple[int, ...]], items: tuple[int, ...]) -> bool:
    """Whether all needed items are there; then they are kept."""
    if needed <= set(items):
        kept.append(items)
    return needed <= set(items)


def model(scenario: Scenario) -> Plan:
    """The plan of the sequencer model: receivers, senders, then the sequencer."""
    return sequencer.plan(scenario.deployment())


def test_a_part_of_a_scenario_keeps_what_is_about_the_hosts_that_stay() -> None:
    sites = SitesSpec(((0, 1), (2, 3, 4, 5, 6)), ConstantSpec(), ConstantSpec())
    scenario = Scenario(
        protocol="",
        groups=2,
        receivers=2,
        senders=2,
        network=NetworkSpec(latency=sites),
        workload=WorkloadSpec(
            kind="listed",
            submission=(
                SubmissionSpec(sender=0, groups=(0, 1)),
                SubmissionSpec(sender=1, groups=(1,)),
                SubmissionSpec(sender=1, groups=(0,)),
            ),
        ),
        fault=(
            Crash(at_ms=1, host=1),
            Restart(at_ms=2, host=3),
            Partition(at_ms=3, sides=((0, 1), (2, 6))),
            Partition(at_ms=3, sides=((0,), (1, 2, 3))),
            Heal(at_ms=4),
        ),
    )
    without = part_of(scenario, model, receivers=(0,), senders=(0,))
    assert without is not None
    assert without.deployment() == Deployment(((0,), (1, 2)), 1)
    # Hosts 1, 2, 3 are now 0, 1, 2; the sender at 5 is at 3, the sequencer at 6 is at 4.
    assert without.fault == (
        Crash(at_ms=1, host=0),
        Restart(at_ms=2, host=2),
        Partition(at_ms=3, sides=((0,), (1, 4))),
        Heal(at_ms=4),
    )
    assert without.network.latency == SitesSpec(((0,), (1, 2, 3, 4)), ConstantSpec(), ConstantSpec())
    assert [(one.sender, one.groups) for one in without.workload.submission] == [(0, (1,)), (0, (0,))]
    smaller = part_of(scenario, model, groups=(0,))
    assert smaller is not None and not smaller.membership
    assert (smaller.groups, smaller.receivers) == (1, 2)
    assert [(one.sender, one.groups) for one in smaller.workload.submission] == [(0, (0,)), (1, (0,))]
    assert part_of(scenario, model, receivers=(0, 1)) is None, "a group needs a receiver"

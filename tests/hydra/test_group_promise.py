"""Drop detection is promised to groups as wholes (Hydra, Appendix B), and only a minority may diverge.

When a sequencer is removed, what a majority of one group delivered must be within the agreed numbers of every
group that it was sent to: a quorum of reports has one of that majority in it, and reports speak of all
groups. The rule is checked here on whole runs, and proved by a service and by receivers that break it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ordercast.core import Env, MessageId, NodeId
from ordercast.protocols.hydra.messages import Report
from ordercast.sim.faults import Crash, Heal, Partition
from ordercast.sim.run import Run, simulate
from ordercast.sim.scenario import ConstantSpec, NetworkSpec, Scenario, SitesSpec, UniformSpec, WorkloadSpec
from ordercast.sim.swarm import swarm_scenario
from ordercast.trace import REMOVED, Kind
from tests.sim.hydra_scenes import SENDERS, SEQUENCER, rejoining, scene, sequencer_crash, sequencer_cut_off
from tests.sim.mutants_hydra import Change, run

SERVICE = (SEQUENCER + 2, SEQUENCER + 3, SEQUENCER + 4)
WORKLOAD = WorkloadSpec(messages=200, rate_per_s=1000, spread=(0.4, 0.6))


def diverged(run: Run) -> list[MessageId]:
    """Messages that a majority of a group delivered, and that lie beyond what one of their groups settled."""
    last: dict[tuple[int, int], int] = {}
    holders: dict[MessageId, set[NodeId]] = {}
    slots: dict[MessageId, list[tuple[int, int, int]]] = {}
    for event in run.events():
        if event.kind is Kind.VIEW and event.label == REMOVED:
            last |= {(event.stamp_issuer or 0, group): number for group, number in event.slots()}
        elif event.kind is Kind.DELIVER and event.message is not None:
            holders.setdefault(event.message, set()).add(event.node)
            slots[event.message] = [(event.stamp_issuer or 0, *slot) for slot in event.slots()]
    majorities = {
        message
        for message, nodes in holders.items()
        for _, group, _ in slots[message]
        if 2 * len(nodes.intersection(run.description.groups[group])) > len(run.description.groups[group])
    }
    return [
        message
        for message in sorted(majorities)
        if any(number > last.get((issuer, group), number) for issuer, group, number in slots[message])
    ]


def near_minority(seed: int) -> Scenario:
    """A sequencer crashes; the receivers nearest to the service have missed its last messages."""
    near = (0, 3, *SERVICE)
    far = (1, 2, 4, 5, *SENDERS, SEQUENCER, SEQUENCER + 1)
    latency = SitesSpec((near, far), ConstantSpec(20), UniformSpec(500, 1500))
    return scene(
        seed,
        network=NetworkSpec(latency=latency),
        workload=WORKLOAD,
        fault=(
            Partition(at_ms=30, sides=((SEQUENCER,), (0, 3))),
            Crash(at_ms=45, host=SEQUENCER),
            Heal(at_ms=46),
        ),
    )


def group_cut_off(seed: int) -> Scenario:
    """A sequencer crashes, and the whole second group has missed its last messages."""
    return scene(
        seed,
        workload=WORKLOAD,
        fault=(
            Partition(at_ms=30, sides=((SEQUENCER,), (3, 4, 5))),
            Crash(at_ms=36, host=SEQUENCER),
            Heal(at_ms=37),
        ),
    )


def quorum_of_one(env: Env, make: Callable[[Env], Any]) -> Any:
    """A service that decides on the first report of each group."""
    replica = make(env)
    replica._has_quorums = lambda: all(
        any(node in replica._reports for node in nodes) for nodes in replica._members.values()
    )
    return replica


def own_group_only(env: Env, make: Callable[[Env], Any]) -> Any:
    """A receiver that reports nothing of other groups."""
    receiver = make(env)
    send = receiver._follower._send_report

    def send_own(report: Report) -> None:
        numbers = [0] * len(report.numbers)
        numbers[receiver.group] = report.numbers[receiver.group]
        send(Report(report.step, report.sequencer, report.clock, tuple(numbers)))

    receiver._follower._send_report = send_own
    return receiver


BROKEN: list[tuple[Callable[[int], Scenario], Change]] = [
    (near_minority, ("configuration", quorum_of_one, None)),
    (group_cut_off, ("receiver", own_group_only, None)),
]


@pytest.mark.parametrize(
    "scenario", [near_minority, group_cut_off, sequencer_crash, sequencer_cut_off, rejoining]
)
def test_what_a_majority_delivered_is_settled_in_all_groups(scenario: Callable[[int], Scenario]) -> None:
    for seed in range(6):
        kept = run(scenario, (), seed)
        assert any(event.kind is Kind.VIEW for event in kept.events())
        assert diverged(kept) == []


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_it_holds_whatever_the_seed_draws(first: int) -> None:
    for seed in range(first, first + 10):
        assert diverged(simulate(swarm_scenario("hydra", seed))) == []


@pytest.mark.parametrize(("scenario", "change"), BROKEN, ids=["quorum of one", "own group only"])
def test_a_broken_agreement_shows(scenario: Callable[[int], Scenario], change: Change) -> None:
    broken = partial(run, scenario, (change,))
    assert sum(bool(diverged(broken(seed))) for seed in range(6)) >= 4

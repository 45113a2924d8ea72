"""Promises on real sockets while datagrams are lost, doubled and reordered, judged from the trace."""

from collections import defaultdict

import pytest

from ordercast.core import Gaps, Guarantees, MessageId, NodeId
from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.scenario.spec import NetworkSpec, Scenario, WorkloadSpec
from ordercast.trace import Kind, events_of

BAD = NetworkSpec(loss=0.1, duplication=0.1, reordering=0.2, reorder_us=2_000)
MESSAGES = 300
SETTLE_MS = {"atomic_multicast": 5_000, "hydra": 3_000}
"""Atomic multicast: longer than its replicas wait before they repeat what was lost again and again. It loses
nothing for good, so the run ends when all is there. Hydra: long enough to notice gaps that nothing needs."""
OPTIONS: dict[str, dict[str, object]] = {"hydra": {"suspect_ns": 10_000_000_000, "replicas": 1}}
"""A sequencer that only waits for a CPU is not to be suspected: with it go messages that it had."""


def run_badly(protocol: str, **options: object) -> LiveRun:
    """Two groups of three and two senders, on a network that does everything it may."""
    scenario = Scenario(
        protocol=protocol,
        groups=2,
        senders=2,
        seed=11,
        network=BAD,
        options=OPTIONS.get(protocol, {}) | options,
        workload=WorkloadSpec(messages=MESSAGES, rate_per_s=400, spread=(0.6, 0.4)),
        settle_ms=SETTLE_MS.get(protocol, 800),
    )
    run, _ = run_live(scenario)
    return run


def orders(run: LiveRun) -> dict[NodeId, list[MessageId]]:
    """What each receiver delivered, in its order."""
    found: dict[NodeId, list[MessageId]] = defaultdict(list)
    for event in events_of(run.table):
        if event.kind is Kind.DELIVER and event.message is not None:
            found[event.node].append(event.message)
    return found


def drops(run: LiveRun) -> int:
    return sum(event.kind is Kind.DROP for event in events_of(run.table))


def judged(run: LiveRun) -> Guarantees:
    """The promises that the run was held to, all of which it kept."""
    assert run.violations == []
    assert run.hindrance == "" and run.description.complete, "agreement at the end is judged too"
    assert run.beyond_contract == []
    assert run.summary().packets_lost > 50
    assert run.summary().submitted == MESSAGES
    return run.description.guarantees


def in_one_order(run: LiveRun) -> bool:
    """Whether any two receivers deliver the messages that both have in the same order."""
    found = list(orders(run).values())
    return all(
        [message for message in one if message in set(two)] == [m for m in two if m in set(one)]
        for one in found
        for two in found
    )


@pytest.mark.deep
def test_hydra_keeps_its_order_and_notifies_of_what_is_lost() -> None:
    run = run_badly("hydra", repair=False)
    promised = judged(run)
    assert promised.gaps is Gaps.NOTIFIED
    assert drops(run) > 0
    assert in_one_order(run)
    assert all(len(order) > 50 for order in orders(run).values())


def test_hydra_repairs_all_that_was_stamped() -> None:
    run = run_badly("hydra")
    judged(run)
    assert drops(run) == 0
    members = run.description.groups
    for group in members.values():
        assert len({tuple(orders(run)[node]) for node in group}) == 1, "the same at all receivers of a group"
    assert all(len(order) > 50 for order in orders(run).values())


@pytest.mark.deep
def test_atomic_multicast_makes_up_for_all_that_is_lost() -> None:
    run = run_badly("atomic_multicast")
    judged(run)
    assert drops(run) == 0
    assert in_one_order(run)
    members = run.description.groups
    for event in events_of(run.table):
        if event.kind is Kind.SUBMIT:
            for node in (node for group in event.groups or () for node in members[group]):
                assert event.message in orders(run)[node]


def test_unordered_multicast_promises_little_and_keeps_that() -> None:
    run = run_badly("unordered")
    judged(run)
    found = orders(run)
    assert all(len(set(order)) == len(order) for order in found.values()), "no message twice"
    assert not in_one_order(run), "or this network is not bad enough to tell anything"

"""A member that lies, behind a valid seal: nobody falls over it, and what cannot be true changes nothing.

Far: numbers beyond all bounds, huge tuples, nodes and groups that there are not. They are refused, so that
what the others deliver keeps all promises. Near: numbers that are wrong by one, other payloads. Such a lie
may be true for all that a peer can know, so it has its effect: a false lesson splits a log. But no process
falls over it.
"""

import tracemalloc
from collections.abc import Collection
from typing import Any

import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Deployment, NodeId, Order
from ordercast.judge import Violation
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Heal, Weather
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run
from tests.deep import deep_after
from tests.sim.hostile import HostileRun

BEGIN_MS, END_MS = 50, 250
CASES: list[tuple[str, dict[str, Any]]] = [
    ("unordered", {}),
    ("view_synchronous", {}),
    ("token_site", {}),
    ("symmetric", {"uniform": True}),
    ("static_hybrid", {"active": [0, 2]}),
    ("hybrid", {}),
    ("atomic_multicast", {}),
    ("atoms", {}),
    ("atoms", {"causal": True, "copies": 3}),
    ("epto", {}),
    ("epto", {"clock": "global"}),
    ("hydra", {"flush": "aggregated", "flush_ns": 1_000_000, "spares": 1}),
    ("hydra", {"flush": "nudged", "durable": True}),
    ("unreplicated", {}),
    ("active", {}),
    ("multi_paxos", {}),
    ("fast_paxos", {"durable": False}),
    ("lock_store", {}),
    ("granola", {}),
    ("hydra_paxos", {}),
    ("nopaxos", {"durable": True}),
    ("hydra_txn", {}),
    ("hydra_txn", {"durable": True}),
    ("eris", {}),
    ("llft", {}),
    ("llft", {"require_majority": True, "replication": "semi-passive"}),
]
FEW = 150
MANY = 2_000
SEEDS = 5
"""Two ways to lie, twenty-five cases and five seeds, with so many lies each: 500,000 in all."""
GROWTH_BYTES_MAX = 32 << 20


def scenario_of(protocol: str, options: dict[str, Any], seed: int) -> Scenario:
    """Two groups of three under load; where groups may overlap, they do, and some come and go.

    Where groups are shards, transfers between accounts go to both. While the liar is at work nothing is
    promised, as on a bad network.
    """
    found = find_protocol(protocol)
    serves, one_each = bool(found.serves), found.guarantees.groups_max == 1
    sharded = found.deploy(Deployment.disjoint(2, 3, 1), found.options()).shards > 0
    overlapping: dict[str, Any] = {}
    if found.guarantees.order is Order.OVERLAPS:
        overlapping = {
            "membership": ((0, 1, 2), (1, 2, 3)),
            "joiners": 1,
            "join": (Join(at_ms=80, node=4, group=1), Join(at_ms=200, node=1)),
            "leave": (Leave(at_ms=140, node=1), Leave(at_ms=180, node=4, group=1)),
        }
    return Scenario(
        protocol=protocol,
        service="bank" if sharded else "kv" if serves else "",
        seed=seed,
        groups=2,
        receivers=3,
        senders=3,
        options=options,
        liveness=True,
        settle_ms=500,
        network=NetworkSpec(latency=UniformSpec(50, 300)),
        workload=WorkloadSpec(
            messages=500, rate_per_s=300, spread=(1.0,) if serves or one_each else (0.7, 0.3)
        ),
        fault=(Weather(at_ms=BEGIN_MS, conditions=Conditions(loss=1e-12)), Heal(at_ms=END_MS)),
        **overlapping,
    )


def lie(
    protocol: str, options: dict[str, Any], seed: int, count: int, *, near: bool
) -> tuple[Run, HostileRun]:
    hostile = HostileRun(scenario_of(protocol, options, seed), seed, near=near)
    return hostile.run(count, BEGIN_MS, END_MS), hostile


def serious(run: Run, wishers: Collection[NodeId]) -> list[Violation]:
    """What must not come of lies that cannot be true.

    A node that asks to join and at once to leave, one of them by a lie, need not come to be a member.
    Whoever may submit may submit what is no message, and then that is delivered. In Hydra it takes a number,
    which the trace then lacks, so of Hydra it is only asked that it goes on.
    """
    told = [one for one in run.violations if "not a message" not in one.detail]
    found = [one for one in told if one.property != "joining" or not {*one.nodes} <= {*wishers}]
    if run.scenario.protocol == "hydra":
        return [one for one in found if one.property in ("progress", "probe")]
    return found


def check(protocol: str, options: dict[str, Any], seed: int, count: int, *, near: bool) -> None:
    run, hostile = lie(protocol, options, seed, count, near=near)
    assert run.description.failure is None, "an exception that is not a RemoteError"
    lies = sum(hostile.taken.values()) + sum(hostile.refusals.values())
    assert lies >= 0.9 * count
    if not near:
        assert serious(run, hostile.wishers) == []
        # Members of views ignore most lies: they are about a change that is not under way.
        # Clients ignore answers that they do not wait for, and one server hears nothing but calls.
        least = 0 if protocol == "unreplicated" else count // 8
        assert sum(hostile.refusals.values()) > least


def test_every_protocol_is_lied_to() -> None:
    assert {protocol for protocol, _ in CASES} == set(protocol_names())


@pytest.mark.parametrize(("protocol", "options"), CASES)
def test_lies_that_cannot_be_true_change_nothing(protocol: str, options: dict[str, Any]) -> None:
    check(protocol, options, 0, FEW, near=False)


@pytest.mark.parametrize(("protocol", "options"), deep_after(2, CASES))
def test_nobody_falls_over_lies_that_could_be_true(protocol: str, options: dict[str, Any]) -> None:
    check(protocol, options, 0, FEW, near=True)


@pytest.mark.deep
@pytest.mark.parametrize("near", [False, True], ids=["far", "near"])
@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
@pytest.mark.parametrize(("protocol", "options"), CASES)
def test_very_many_lies(protocol: str, options: dict[str, Any], seed: int, near: bool) -> None:
    check(protocol, options, seed, MANY, near=near)


def peak_bytes(protocol: str, options: dict[str, Any], count: int) -> int:
    tracemalloc.start()
    try:
        lie(protocol, options, 0, count, near=False)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.deep
@pytest.mark.parametrize(("protocol", "options"), CASES)
def test_lies_take_no_memory(protocol: str, options: dict[str, Any]) -> None:
    honest, lied = (peak_bytes(protocol, options, count) for count in (0, MANY))
    assert lied < honest + GROWTH_BYTES_MAX

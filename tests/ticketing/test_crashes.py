"""Crashes at every step: of each active member, of all of them, and while several members switch."""

from collections.abc import Iterable

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Plan
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim import conformance, simulate
from ordercast.trace import Kind
from tests.deep import deep_after
from tests.ticketing.hall import Hall
from tests.ticketing.test_any_order import judge

PROTOCOLS = ("token_site", "symmetric", "static_hybrid", "hybrid")
SWITCHING: dict[str, object] = {
    "decide_ns": 1_000_000,
    "probe_ns": 1_000_000,
    "samples": 1,
    "threshold": 0.0,
}
"""Members that change their minds all the time."""


def calm(protocol: str, faults: Iterable[FaultSpec], options: dict[str, object]) -> Scenario:
    return Scenario(
        protocol=protocol,
        seed=3,
        receivers=5,
        senders=5,
        colocated=True,
        fault=tuple(faults),
        network=NetworkSpec(latency=UniformSpec(500, 5000)),
        workload=WorkloadSpec(messages=150, rate_per_s=150),
        options=options,
        settle_ms=1500,
    )


@pytest.mark.parametrize("at_ms", deep_after(1, range(10, 90, 10)))
@pytest.mark.parametrize("host", deep_after(1, range(5)))
def test_each_active_member_crashes_while_members_switch(host: int, at_ms: int) -> None:
    run = simulate(calm("hybrid", [Crash(at_ms=at_ms, host=host)], SWITCHING))
    assert run.violations == []


@pytest.mark.parametrize("at_ms", deep_after(1, range(10, 90, 20)))
def test_all_active_members_crash_and_come_back(at_ms: int) -> None:
    faults: list[FaultSpec] = [Crash(at_ms=at_ms, host=host) for host in (0, 1)]
    faults += [Restart(at_ms=at_ms + 150, host=host) for host in (0, 1)]
    run = simulate(calm("static_hybrid", faults, {"active": [0, 1]}))
    assert run.violations == []


@pytest.mark.parametrize(
    ("protocol", "options", "given"),
    [
        ("token_site", {}, {0}),
        ("token_site", {"site": 1}, {1}),
        ("static_hybrid", {"active": [0, 1]}, {0, 1}),
    ],
)
def test_given_roles_hold_again_when_the_active_members_are_back(
    protocol: str, options: dict[str, object], given: set[int]
) -> None:
    faults: list[FaultSpec] = [Crash(at_ms=200, host=host) for host in given]
    faults += [Restart(at_ms=500, host=host) for host in given]
    run = simulate(calm(protocol, faults, options))
    assert run.violations == []
    roles = [event for event in run.events() if event.kind is Kind.ROLE]
    told = [(row.node, str(row.label).partition(":")[0]) for row in roles]
    assert (4, "active") in told, "the highest one stands in"
    assert {node for node, role in dict(told).items() if role == "active"} == given


@pytest.mark.parametrize("crashing", [(0,), (1,), (2,), (0, 1)])
def test_a_crash_after_every_message_of_several_switches(crashing: tuple[int, ...]) -> None:
    """Node 0 leaves, nodes 2 and 3 want to be active, and somebody crashes after so many arrivals."""
    for steps in range(60):
        hall = Hall(5, [0, 1])
        said = dict.fromkeys(range(5), 1)
        hall.do(0, lambda member: member.go_passive())
        hall.do(2, lambda member: member.go_active())
        hall.do(3, lambda member: member.go_active())
        for node in range(5):
            hall.say(node, f"{node}.0")
        pairs = sorted(hall.channels)
        for step in range(steps):
            hall.step(*pairs[step * 7 % len(pairs)])
        hall.crash(*crashing)
        hall.change(tuple(sorted(hall.up)))
        hall.flow()
        judge(hall, said, steps)


@pytest.mark.deep
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_conformance_suite_finds_nothing(protocol: str) -> None:
    found = find_protocol(protocol)

    def plan(deployment: Deployment) -> Plan:
        return found.deploy(deployment, found.options())

    assert conformance(plan, range(2)) == []

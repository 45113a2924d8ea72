"""Crashes of infrastructure: the swarm strikes what the plan lets it strike, and no more."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec
import pytest

from ordercast.core import Crashes, Deployment, Fault, Guarantees, HostId, Node, Plan
from ordercast.scenario.crashes import returns
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.scenario.swarm import FAULTS_MS, MakePlan, swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind
from tests.sim.models import sequencer
from tests.sim.probes import Probe, probe_plan

SEEDS = range(500)
ROLES: Mapping[str, tuple[Crashes | None, int]] = {
    "sequencer": (Crashes.ANY, 2),
    "configuration": (Crashes.MINORITY, 3),
    "disk": (Crashes.NONE, 2),
    "clockwork": (None, 2),
}
"""How many nodes each role has, and how they may fail."""


def extended(
    plan: Plan, roles: Mapping[str, tuple[Crashes | None, int]], host: Callable[[int], HostId]
) -> Plan:
    """The plan with idle nodes of these roles; `host` places them."""
    nodes = list(plan.nodes)
    for role, (fails, count) in roles.items():
        for _ in range(count):
            nodes.append(Node(len(nodes), role, host(len(nodes)), lambda env: Probe(env, {}), fails))
    return replace(plan, nodes=tuple(nodes))


def plans(
    *tolerates: Fault,
    roles: Mapping[str, tuple[Crashes | None, int]] = ROLES,
    host: Callable[[int], HostId] = lambda node: node,
) -> MakePlan:
    """Makes plans of probes with infrastructure."""

    def make(deployment: Deployment) -> Plan:
        senders = deployment.sender_ids()
        hosts = [*range(deployment.receivers), *map(deployment.sender_host, senders)]
        promised = Guarantees(crashes=Crashes.ANY, tolerates=tolerates)
        plain = probe_plan(hosts, dict(enumerate(deployment.groups)), senders, guarantees=promised)
        return extended(plain, roles, host)

    return make


def drawn(make: MakePlan, only: Fault | None = Fault.CRASH) -> Iterator[tuple[Scenario, Plan]]:
    for seed in SEEDS:
        scenario = swarm_scenario("", seed, make, only)
        yield scenario, make(scenario.deployment())


def strikes(scenario: Scenario, plan: Plan, role: str) -> list[Crash | Restart]:
    hosts = [node.host for node in plan.nodes if node.role == role]
    return [each for each in scenario.fault if isinstance(each, Crash | Restart) and each.host in hosts]


def gone(scenario: Scenario) -> set[HostId]:
    """The hosts that are down when all is over."""
    down = set[HostId]()
    for fault in scenario.fault:
        if isinstance(fault, Crash):
            assert fault.host not in down, scenario.name
            down.add(fault.host)
        elif isinstance(fault, Restart):
            down.remove(fault.host)
    return down


def states(make: MakePlan, role: str) -> Counter[str]:
    """How often nodes of a role crashed, and how often they came back with which state."""
    return Counter(
        fault.state if isinstance(fault, Restart) else "crash"
        for scenario, plan in drawn(make)
        for fault in strikes(scenario, plan, role)
    )


def test_one_to_six_crashes_strike_infrastructure_and_most_come_back() -> None:
    counts = Counter[int]()
    back = 0
    for scenario, plan in drawn(plans(Fault.CRASH)):
        found = [fault for role in ROLES for fault in strikes(scenario, plan, role)]
        counts[sum(isinstance(fault, Crash) for fault in found)] += 1
        back += sum(isinstance(fault, Restart) for fault in found)
    assert set(counts) == {1, 2, 3, 6}
    assert min(counts.values()) > 100
    assert 0.75 < back / sum(number * times for number, times in counts.items()) < 0.95


def test_stateless_infrastructure_comes_back_in_any_state_or_not_at_all() -> None:
    found = states(plans(Fault.CRASH), "sequencer")
    assert min(found["saved"], found["lost"]) > 50
    assert found["crash"] - found["saved"] - found["lost"] > 20


def test_of_stateless_infrastructure_one_is_left() -> None:
    most = 0
    for scenario, plan in drawn(plans(Fault.CRASH, roles={"sequencer": (Crashes.ANY, 2)})):
        down = sum(node.host in gone(scenario) for node in plan.infrastructure())
        assert down < 2, scenario.name
        most = max(most, down)
    assert most == 1


@pytest.mark.parametrize(("nodes", "bound"), [(2, 1), (4, 1)])
def test_where_one_may_be_down_for_good_the_others_come_back(nodes: int, bound: int) -> None:
    most, at_once = 0, 0
    for scenario, plan in drawn(plans(Fault.CRASH, roles={"sequencer": (Crashes.ONE, nodes)})):
        hosts = {node.host for node in plan.infrastructure()}
        most = max(most, len(hosts & gone(scenario)))
        at_once = max(at_once, len(hosts & {f.host for f in scenario.fault if isinstance(f, Crash)}))
    assert most == bound < at_once


@pytest.mark.parametrize("fails", [Crashes.ANY, Crashes.ONE])
def test_the_only_one_of_its_kind_comes_back(fails: Crashes) -> None:
    make = plans(Fault.CRASH, roles={"sequencer": (fails, 1)})
    found = states(make, "sequencer")
    assert found["crash"] == found["saved"] + found["lost"] > 400


@pytest.mark.parametrize(("replicas", "bound"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
def test_a_quorum_never_loses_half_for_good(replicas: int, bound: int) -> None:
    most = 0
    for scenario, plan in drawn(plans(Fault.CRASH, roles={"configuration": (Crashes.MINORITY, replicas)})):
        down = sum(node.host in gone(scenario) for node in plan.infrastructure())
        assert 2 * down < replicas, scenario.name
        most = max(most, down)
    assert most == bound


def test_a_quorum_comes_back_with_its_state_only() -> None:
    found = states(plans(Fault.CRASH, Fault.AMNESIA), "configuration")
    assert found["saved"] > 100
    assert found["lost"] == 0


def test_what_may_not_be_lost_always_comes_back_with_its_state() -> None:
    found = states(plans(Fault.CRASH), "disk")
    assert found["crash"] == found["saved"] > 100
    assert found["lost"] == 0


def test_infrastructure_without_a_word_is_left_alone() -> None:
    assert states(plans(*Fault), "clockwork") == Counter()


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in (Fault.CRASH, Fault.DISK)])
def test_infrastructure_crashes_under_crashes_and_bad_disks_only(fault: Fault) -> None:
    make = plans(*Fault)
    for seed in range(40):
        scenario = swarm_scenario("", seed, make, fault)
        plan = make(scenario.deployment())
        assert not [strike for role in ROLES for strike in strikes(scenario, plan, role)]


def test_hosts_crash_while_they_are_up_and_are_back_in_time_some_to_crash_again() -> None:
    again = 0
    for scenario, plan in drawn(plans(*Fault), None):
        gone(scenario)  # looks that none crashes while it is down
        faults = [fault for role in ROLES for fault in strikes(scenario, plan, role)]
        assert all(fault.at_ms <= 1.5 * max(FAULTS_MS) for fault in faults)
        crashed = Counter(fault.host for fault in faults if isinstance(fault, Crash))
        again += max(crashed.values(), default=0) > 1
    assert again > 10


def test_of_several_nodes_at_a_host_the_strictest_decides() -> None:
    shared = plans(Fault.CRASH, host=lambda node: 1000)
    assert not [fault for scenario, _ in drawn(shared) for fault in scenario.fault if _at(fault, 1000)]
    quorum = {"sequencer": (Crashes.ANY, 1), "configuration": (Crashes.MINORITY, 1)}
    found = [
        fault
        for scenario, _ in drawn(plans(Fault.CRASH, roles=quorum, host=lambda node: 1000))
        for fault in scenario.fault
        if _at(fault, 1000)
    ]
    came_back = [fault.state for fault in found if isinstance(fault, Restart)]
    assert len(came_back) == len(found) / 2 > 400
    assert set(came_back) == {"saved"}


def test_a_host_that_receives_and_serves_is_left_alone() -> None:
    make = plans(*Fault, roles={"sequencer": (Crashes.ANY, 1)}, host=lambda node: 0)
    scenarios = [scenario for scenario, _ in drawn(make, None)]
    assert not [fault for scenario in scenarios for fault in scenario.fault if _at(fault, 0)]
    assert [fault for scenario in scenarios for fault in scenario.fault if _at(fault, 1)]


def _at(fault: FaultSpec, host: HostId) -> bool:
    return isinstance(fault, Crash | Restart) and fault.host == host


def test_infrastructure_changes_nothing_else_in_a_scenario() -> None:
    for seed in range(50):
        plain = swarm_scenario("", seed, plans(Fault.CRASH, roles={"clockwork": (None, 2)}))
        struck = swarm_scenario("", seed, plans(Fault.CRASH, roles={"sequencer": (Crashes.ANY, 2)}))
        receivers = plain.deployment().receivers + plain.senders
        others = [fault for fault in struck.fault if not any(_at(fault, receivers + n) for n in (0, 1))]
        assert msgspec.structs.replace(struck, fault=tuple(others)) == plain


def test_a_seed_is_always_the_same() -> None:
    make = plans(*Fault)
    assert [swarm_scenario("", seed, make) for seed in range(40)] == [
        swarm_scenario("", seed, make) for seed in range(40)
    ]


def ended(role: tuple[Crashes | None, int], *faults: FaultSpec) -> Run:
    """A run with one receiver, one sender, and infrastructure at hosts 2, 3, ..."""
    make = plans(Fault.CRASH, roles={"configuration": role})
    scenario = Scenario(
        protocol="", receivers=1, workload=WorkloadSpec(messages=5), fault=faults, settle_ms=50
    )
    return simulate(scenario, make(scenario.deployment()))


def crashes(count: int) -> list[FaultSpec]:
    return [Crash(at_ms=1, host=2 + index) for index in range(count)]


@pytest.mark.parametrize(
    ("role", "crashed", "complete"),
    [
        ((Crashes.MINORITY, 3), 1, True),
        ((Crashes.MINORITY, 3), 2, False),
        ((Crashes.MINORITY, 4), 2, False),
        ((Crashes.ONE, 3), 1, True),
        ((Crashes.ONE, 3), 2, False),
        ((Crashes.ONE, 1), 1, False),
        ((Crashes.NONE, 2), 1, False),
        ((Crashes.ANY, 2), 2, True),
        ((None, 2), 2, True),
    ],
)
def test_a_run_is_complete_if_no_more_infrastructure_is_down_than_its_plan_allows(
    role: tuple[Crashes | None, int], crashed: int, complete: bool
) -> None:
    assert ended(role, *crashes(crashed)).description.complete is complete


def test_the_hindrance_names_the_role_and_the_nodes() -> None:
    run = ended((Crashes.MINORITY, 3), *crashes(2))
    assert run.hindrance == "too many of the 3 nodes with the role configuration were down: 2, 3"


def test_infrastructure_that_came_back_is_no_hindrance() -> None:
    back = [Restart(at_ms=2, host=host) for host in (2, 3)]
    run = ended((Crashes.MINORITY, 3), *crashes(2), *back)
    assert run.hindrance == ""
    assert [event.kind for event in run.events() if event.node in (2, 3)] == [
        Kind.CRASH,
        Kind.CRASH,
        Kind.RECOVER,
        Kind.RECOVER,
    ]


@pytest.mark.parametrize(
    ("fails", "state", "beyond"),
    [
        (Crashes.ANY, "saved", []),
        (Crashes.ANY, "lost", []),
        (Crashes.MINORITY, "saved", []),
        (Crashes.MINORITY, "lost", [Fault.AMNESIA]),
        (Crashes.ONE, "saved", []),
        (Crashes.ONE, "lost", [Fault.AMNESIA]),
        (Crashes.NONE, "lost", [Fault.AMNESIA]),
        (None, "saved", [Fault.RESTART]),
        (None, "lost", [Fault.AMNESIA]),
    ],
)
def test_a_restart_is_within_the_contract_if_the_plan_says_so(
    fails: Crashes | None, state: str, beyond: list[Fault]
) -> None:
    restart = msgspec.convert({"kind": "restart", "at_ms": 2, "host": 2, "state": state}, Restart)
    assert ended((fails, 3), *crashes(1), restart).beyond_contract == beyond


def test_scenarios_with_infrastructure_stay_within_the_contract() -> None:
    make = plans(Fault.CRASH)
    for seed in range(10):
        scenario = swarm_scenario("", seed, make)
        run = simulate(scenario, make(scenario.deployment()))
        assert (run.beyond_contract, run.hindrance) == ([], "")


def test_receivers_and_senders_have_no_states_to_come_back_with() -> None:
    plan = plans()(Deployment.disjoint(1, 1, 1))
    assert [returns(plan, host) for host in (0, 1, 2)] == [(), (), ("saved", "lost")]


def fragile(fails: Crashes | None, deployment: Deployment) -> Plan:
    """The model with one sequencer, which promises validity but forgets its numbers when it crashes."""
    promised = msgspec.structs.replace(sequencer.VIEWS, tolerates=(Fault.CRASH,))
    plan = sequencer.plan(deployment, promised, sequencer.ViewReceiver)
    nodes = (replace(node, fails=fails) if node.role == "sequencer" else node for node in plan.nodes)
    return replace(plan, nodes=tuple(nodes))


def test_conformance_strikes_infrastructure_too() -> None:
    def failures(fails: Crashes | None) -> set[str]:
        found = conformance(lambda deployment: fragile(fails, deployment), range(8))
        return {failure.clause for failure in found}

    assert failures(None) == set()
    assert failures(Crashes.ANY) >= {"fault: crash", "swarm"}

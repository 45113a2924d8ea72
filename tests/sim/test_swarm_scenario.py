"""Scenarios of the swarm: one seed says everything, and nothing that was not promised to be borne."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import msgspec
import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import Crashes, Deployment, Fault, Guarantees, LocalError, Plan
from ordercast.protocols import unordered
from ordercast.scenario.faults import Crash, Disk, Heal, Partition, Pause, Restart, SetClock
from ordercast.scenario.spec import Scenario, ScenarioError
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from tests.sim.probes import probe_plan

SEEDS = range(200)
SCRIPT = """
import json, sys, msgspec
from ordercast.catalogue import protocol_names
from ordercast.scenario.swarm import swarm_scenario
print(json.dumps([
    msgspec.to_builtins(swarm_scenario(name, seed)) for name in protocol_names() for seed in range(40)
]))
"""


def promising(crashes: Crashes, *faults: Fault) -> Callable[[Deployment], Plan]:
    """Makes plans of probes that promise to bear these faults."""

    def make(deployment: Deployment) -> Plan:
        senders = deployment.sender_ids()
        hosts = [*range(deployment.receivers), *map(deployment.sender_host, senders)]
        promised = Guarantees(crashes=crashes, tolerates=faults)
        return probe_plan(hosts, dict(enumerate(deployment.groups)), senders, guarantees=promised)

    return make


def scenarios(crashes: Crashes, *faults: Fault) -> list[Scenario]:
    return [swarm_scenario("", seed, promising(crashes, *faults)) for seed in SEEDS]


def kinds(scenario: Scenario) -> set[Fault]:
    """The kinds of misfortune in a scenario."""
    found = set()
    network = scenario.network
    for share, kind in (
        (network.loss, Fault.LOSS),
        (network.duplication, Fault.DUPLICATION),
        (network.reordering, Fault.REORDERING),
        (scenario.clocks.skew_us or scenario.clocks.drift_ppm, Fault.CLOCK),
    ):
        if share:
            found.add(kind)
    by_type: dict[type, Fault]
    by_type = {Pause: Fault.PAUSE, SetClock: Fault.CLOCK, Partition: Fault.PARTITION, Disk: Fault.DISK}
    disks = {fault.host for fault in scenario.fault if isinstance(fault, Disk)}
    returns = {fault.host: fault.state for fault in scenario.fault if isinstance(fault, Restart)}
    for fault in scenario.fault:
        if isinstance(fault, Crash) and fault.host not in disks:
            state = returns.get(fault.host)
            found.add({None: Fault.CRASH, "saved": Fault.RESTART, "lost": Fault.AMNESIA}[state])
        elif type(fault) in by_type:
            found.add(by_type[type(fault)])
    return found


def test_every_kind_of_fault_occurs_and_every_kind_is_absent_somewhere() -> None:
    counts = Counter(kind for scenario in scenarios(Crashes.ANY, *Fault) for kind in kinds(scenario))
    assert set(counts) == set(Fault)
    for kind, count in counts.items():
        assert 10 <= count <= 190, kind


@pytest.mark.parametrize("fault", Fault)
def test_only_what_is_tolerated_occurs(fault: Fault) -> None:
    found = {kind for scenario in scenarios(Crashes.ANY, fault) for kind in kinds(scenario)}
    assert found == {fault}


@pytest.mark.parametrize("fault", Fault)
def test_one_kind_alone_may_be_asked_for(fault: Fault) -> None:
    make = promising(Crashes.ANY, *Fault)
    found = {kind for seed in range(40) for kind in kinds(swarm_scenario("", seed, make, fault))}
    assert found == {fault}


@pytest.mark.parametrize("crashes", Crashes)
def test_no_more_receivers_of_a_group_are_down_for_good_than_the_contract_allows(crashes: Crashes) -> None:
    most = 0
    for scenario in scenarios(crashes, *Fault):
        last = {fault.host: fault for fault in scenario.fault if isinstance(fault, Crash | Restart)}
        gone = {host for host, fault in last.items() if isinstance(fault, Crash)}
        gone |= {fault.host for fault in scenario.fault if isinstance(fault, Disk) and fault.what != "slow"}
        for members in scenario.deployment().groups:
            dead = len(gone & set(members))
            most = max(most, dead)
            if crashes is Crashes.NONE:
                assert dead == 0, scenario.name
            elif crashes is Crashes.MINORITY:
                assert 2 * dead < len(members), scenario.name
            elif crashes is Crashes.ONE:
                assert dead <= min(1, len(members) - 1), scenario.name
            elif crashes is Crashes.ALL_BUT_ONE:
                assert dead < len(members), scenario.name
    bounds = {Crashes.NONE: 0, Crashes.ONE: 1, Crashes.MINORITY: 2}
    assert most == {**bounds, Crashes.MINORITY_OF_ALL: 3, Crashes.ALL_BUT_ONE: 4, Crashes.ANY: 5}[crashes]


def test_faults_come_in_order_and_in_most_seeds_everything_heals_at_the_end() -> None:
    healed = 0
    for scenario in scenarios(Crashes.ANY, *Fault):
        times = [fault.at_ms for fault in scenario.fault]
        assert times == sorted(times)
        healed += bool(scenario.fault) and isinstance(scenario.fault[-1], Heal)
    assert 140 < healed < 190


def test_faults_strike_late_too_and_messages_are_submitted_after_healing() -> None:
    drawn = scenarios(Crashes.ANY, *Fault)
    assert max(fault.at_ms for scenario in drawn for fault in scenario.fault[:-1]) > 1500
    late = 0
    for scenario in drawn:
        workload = scenario.workload
        seconds = workload.messages / scenario.senders / workload.rate_per_s
        late += workload.kind != "closed" and seconds * 1000 > max(f.at_ms for f in scenario.fault)
    assert late > 10


def test_every_seed_is_judged_for_liveness() -> None:
    assert all(scenario.liveness for scenario in scenarios(Crashes.ANY, *Fault))


def test_a_host_that_comes_back_has_its_state_at_times_and_at_times_not() -> None:
    mixed = 0
    for scenario in scenarios(Crashes.ANY, *Fault):
        states: dict[int, set[str]] = {}
        for fault in scenario.fault:
            if isinstance(fault, Restart):
                states.setdefault(fault.host, set()).add(fault.state)
        mixed += any(len(found) > 1 for found in states.values())
    assert mixed > 10


def test_a_host_crashes_before_it_restarts_and_may_crash_again() -> None:
    most = 0
    for scenario in scenarios(Crashes.ANY, *Fault):
        down = set[int]()
        crashed = Counter[int]()
        for fault in scenario.fault:
            if isinstance(fault, Crash):
                assert fault.host not in down, scenario.name
                down.add(fault.host)
                crashed[fault.host] += 1
            elif isinstance(fault, Restart):
                assert fault.host in down, scenario.name
                down.remove(fault.host)
        most = max(most, *crashed.values(), 0)
    assert most >= 6


def test_scenarios_survive_being_written_and_read() -> None:
    for scenario in scenarios(Crashes.ANY, *Fault)[:50]:
        assert msgspec.convert(json.loads(msgspec.json.encode(scenario)), Scenario) == scenario


def test_scenarios_differ_from_seed_to_seed() -> None:
    found = scenarios(Crashes.ANY, *Fault)
    assert len({msgspec.json.encode(msgspec.structs.replace(each, seed=0, name="")) for each in found}) == 200
    assert {each.workload.kind for each in found} == {"poisson", "periodic", "closed"}
    assert {each.colocated for each in found} == {each.codec for each in found} == {True, False}


def test_a_seed_is_the_same_scenario_in_every_process() -> None:
    found = []
    for hash_seed in ("0", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert len(found[0]) == 40 * len(protocol_names())


def test_scenarios_of_the_swarm_run() -> None:
    make = promising(Crashes.ANY, *Fault)
    for seed in range(5):
        scenario = swarm_scenario("", seed, make)
        assert simulate(scenario, make(scenario.deployment())).summary().submitted > 0


@pytest.fixture
def varied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unordered multicast that lets seeds choose its window."""

    def vary(rng: Random) -> dict[str, object]:
        return {"window": rng.choice((64, 512, 4096))}

    monkeypatch.setattr(unordered, "PROTOCOL", replace(unordered.PROTOCOL, vary=vary))


def without_options(scenario: Scenario) -> Scenario:
    return msgspec.structs.replace(scenario, options={})


@pytest.mark.usefixtures("varied")
def test_seeds_differ_in_the_options_of_a_protocol() -> None:
    found = [swarm_scenario("unordered", seed) for seed in range(30)]
    assert {each.options["window"] for each in found} == {64, 512, 4096}
    assert found == [swarm_scenario("unordered", seed) for seed in range(30)]


def test_options_change_nothing_else_in_a_scenario(request: pytest.FixtureRequest) -> None:
    before = [swarm_scenario("unordered", seed) for seed in range(30)]
    request.getfixturevalue("varied")
    after = [swarm_scenario("unordered", seed) for seed in range(30)]
    assert any(one.options != other.options for one, other in zip(before, after, strict=True))
    assert list(map(without_options, after)) == list(map(without_options, before))


@pytest.mark.usefixtures("varied")
def test_plans_from_elsewhere_have_options_of_their_own() -> None:
    assert swarm_scenario("unordered", 0, promising(Crashes.ANY)).options == {}


def test_options_that_do_not_exist_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(unordered.PROTOCOL, vary=lambda rng: {"widow": 3})
    monkeypatch.setattr(unordered, "PROTOCOL", broken)
    with pytest.raises(ScenarioError, match=r"options.widow: unknown key"):
        swarm_scenario("unordered", 0)


def test_a_swarm_of_an_unknown_protocol_lists_those_there_are() -> None:
    with pytest.raises(LocalError, match=r"no protocol 'hydrant'; there are: .*unordered"):
        swarm_scenario("hydrant", 0)

"""What may be said of a run at its end."""

from dataclasses import replace

import msgspec
import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Agreement, Crashes, Deployment, Partition, Plan
from ordercast.scenario.ending import (
    Finish,
    cluster_finish,
    ending_of,
    hindrance_of,
    may_branch,
    receiving_hosts,
)
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import NetworkSpec, Scenario


def plan_of(name: str, receivers: int = 3) -> Plan:
    protocol = find_protocol(name)
    return protocol.deploy(Deployment.disjoint(1, receivers, 1), protocol.options())


def test_an_ending_has_a_name() -> None:
    assert ending_of(missing=False, healed=False) == "settled"
    assert ending_of(missing=False, healed=True) == "settled after healing"
    assert ending_of(missing=True, healed=False) == ending_of(missing=True, healed=True)
    assert ending_of(missing=True, healed=True) == "deliveries missing"
    assert ending_of(missing=True, healed=True, only_crashed=True) == "settled without crashed nodes"


def test_a_run_is_complete_if_nothing_hinders_it() -> None:
    assert hindrance_of(plan_of("atomic_multicast"), set(), finished=True, cut=False) == ""


@pytest.mark.parametrize(
    ("down", "finished", "cut", "words"),
    [
        (set(), False, False, "workload"),
        (set(), True, True, "partition"),
        ({0, 1, 2}, True, False, "too many receivers of group 0 were down: 0, 1, 2"),
    ],
)
def test_what_hinders_a_run_is_named(down: set[int], finished: bool, cut: bool, words: str) -> None:
    assert words in hindrance_of(plan_of("atomic_multicast"), down, finished=finished, cut=cut)


def test_too_many_nodes_of_a_role_hinder_a_run() -> None:
    plan = plan_of("hydra")
    configuration = {node.id for node in plan.nodes if node.role == "configuration"}
    assert "role configuration" in hindrance_of(plan, configuration, finished=True, cut=False)
    assert not hindrance_of(plan, {min(configuration)}, finished=True, cut=False)


def settled() -> bool:
    return True


def unsettled() -> bool:
    return False


def not_asked() -> bool:
    raise AssertionError("settling makes no difference here")


def test_a_cluster_with_all_its_hosts_is_complete_once_it_has_settled() -> None:
    plan = plan_of("unordered")
    hosts = receiving_hosts(plan)
    assert cluster_finish(plan, hosts, set(), dead=False, settle=settled) == Finish(complete=True)
    assert cluster_finish(plan, hosts, set(), dead=False, settle=unsettled) == Finish()


def test_a_cluster_without_a_host_is_not_complete_and_not_waited_for() -> None:
    plan = plan_of("unordered")
    hosts = receiving_hosts(plan)
    assert cluster_finish(plan, hosts, {1}, dead=False, settle=not_asked) == Finish()
    assert cluster_finish(plan, hosts, set(), dead=True, settle=not_asked) == Finish()


def test_holes_are_of_interest_without_some_hosts_if_every_receiver_took_part() -> None:
    plan = plan_of("unordered")
    guarantees = msgspec.structs.replace(plan.guarantees, agreement=Agreement.PROBABILISTIC)
    plan = replace(plan, guarantees=guarantees)
    hosts = receiving_hosts(plan)
    found = cluster_finish(plan, hosts, {1}, dead=True, settle=settled)
    assert found == Finish(settled=True, gone=frozenset({1}))
    assert cluster_finish(plan, hosts, {1}, dead=True, settle=unsettled) == Finish()
    assert cluster_finish(plan, hosts - {2}, {1}, dead=True, settle=not_asked) == Finish()


def test_only_silence_shows_the_end_where_branches_may_be_discarded() -> None:
    plan = plan_of("unordered")
    discarding = msgspec.structs.replace(plan.guarantees, partition=Partition.SIDE_BRANCHES_DISCARDED)
    branching = replace(plan, guarantees=discarding)
    calm = Scenario(protocol="unordered")
    lossy = Scenario(protocol="unordered", network=NetworkSpec(loss=0.1))
    struck = Scenario(protocol="unordered", fault=(Crash(at_ms=10, host=0),))
    assert [may_branch(scenario, branching) for scenario in (calm, lossy, struck)] == [False, True, True]
    assert not any(may_branch(scenario, plan) for scenario in (calm, lossy, struck))


def test_a_minority_is_counted_in_each_group_or_among_all() -> None:
    protocol = find_protocol("unordered")
    plan = protocol.deploy(Deployment.disjoint(3, 3, 1), protocol.options())
    of_each, of_all = (
        replace(plan, guarantees=msgspec.structs.replace(plan.guarantees, crashes=crashes))
        for crashes in (Crashes.MINORITY, Crashes.MINORITY_OF_ALL)
    )
    for down, each, all_ in (
        ({0, 3, 6}, "", ""),
        ({0, 1, 2}, "too many receivers of group 0 were down: 0, 1, 2", ""),
        ({0, 1, 3, 4, 6}, "too many receivers of group 0 were down: 0, 1",
         "too many receivers of all groups were down: 0, 1, 3, 4, 6"),
    ):  # fmt: skip
        assert hindrance_of(of_each, down, finished=True, cut=False) == each
        assert hindrance_of(of_all, down, finished=True, cut=False) == all_

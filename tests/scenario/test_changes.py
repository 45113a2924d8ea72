"""Joins and leaves in scenarios: read, checked, drawn, and made smaller."""

from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random

import msgspec
import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import Deployment, LocalError, Membership, Plan
from ordercast.judge import audit
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.crashes import Phase
from ordercast.scenario.file import load_scenario
from ordercast.scenario.part import part_of
from ordercast.scenario.simpler import squeezed
from ordercast.scenario.spec import Scenario, ScenarioError, SubmissionSpec, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.scenario.turnover import draw_changes
from ordercast.sim.build import build_world
from ordercast.sim.run import simulate
from ordercast.sim.shrinking import shrink
from tests.sim.models import subscriptions

TOP = 'protocol = "epto"\njoiners = 1\n'
"""Members 0, 1 and 2, the joiner 3 and the sender 4."""


def refusal(tmp_path: Path, text: str) -> str:
    """What is said about a scenario file that cannot be run."""
    path = tmp_path / "changes.toml"
    path.write_text(text)
    with pytest.raises(LocalError) as error:
        scenario = load_scenario(path)
        build_world(scenario, scenario.plan())
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TOP + "[[join]]\nat_ms = 1\nnode = 4", "join[0].node: node 4 is not a receiver"),
        (TOP + "[[join]]\nat_ms = 1\nnode = 3\ngroup = 2", "join[0].group: there is no group 2"),
        (TOP + "[[join]]\nat_ms = 1\nnode = 0", "join[0]: node 0 cannot join group 0 at 1 ms"),
        (TOP + "[[leave]]\nat_ms = 1\nnode = 3", "leave[0]: node 3 cannot leave group 0 at 1 ms"),
        (
            TOP + "[[leave]]\nat_ms = 1\nnode = 1\n[[leave]]\nat_ms = 2\nnode = 1",
            "leave[1]: node 1 cannot leave group 0 at 2 ms, because it is not in it",
        ),
        (
            TOP + '[workload]\nkind = "closed"\n[[join]]\nat_ms = 1\nnode = 3',
            "join[0]: the clients of a closed",
        ),
        ('protocol = "hydra"\njoiners = 1', "joiners: the groups of hydra are fixed"),
        ('protocol = "hydra"\n[[leave]]\nat_ms = 1\nnode = 0', "leave[0]: the groups of hydra are fixed"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_by_its_key(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(tmp_path, text)


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    assert "line 5: join[0].host: unknown key" in refusal(tmp_path, TOP + "[[join]]\nat_ms = 1\nhost = 3")


def scenario() -> Scenario:
    """Two groups, of which the second changes."""
    return Scenario(
        protocol="epto",
        groups=2,
        receivers=2,
        joiners=2,
        join=(Join(at_ms=10, node=4, group=1), Join(at_ms=20, node=5)),
        leave=(Leave(at_ms=30, node=3, group=1),),
        workload=WorkloadSpec(kind="listed", submission=(SubmissionSpec(at_ms=5000, groups=(1,)),)),
    )


def test_changes_follow_their_nodes_and_groups() -> None:
    smaller = part_of(scenario(), Scenario.plan, groups=(0,))
    assert smaller is not None
    assert (smaller.groups, smaller.receivers, smaller.joiners) == (1, 2, 2)
    assert smaller.join == (Join(at_ms=10, node=2),)
    assert smaller.leave == (Leave(at_ms=30, node=1),)
    fewer = part_of(scenario(), Scenario.plan, receivers=(4,))
    assert fewer is not None
    assert (fewer.joiners, fewer.join) == (1, (Join(at_ms=20, node=4),))


def test_pauses_between_changes_are_squeezed_too() -> None:
    first = next(squeezed(scenario()))
    assert [one.at_ms for one in first.changes] == [1, 2, 3]
    assert first.workload.submission[0].at_ms == 4


def test_the_swarm_draws_changes_where_the_groups_are_not_fixed() -> None:
    for name in protocol_names():
        drawn = [swarm_scenario(name, seed) for seed in range(12)]
        fixed = drawn[0].plan().guarantees.membership is Membership.FIXED
        assert any(one.changes for one in drawn) != fixed
        assert not (fixed and any(one.joiners for one in drawn))


def test_the_swarm_keeps_the_promises_of_the_model() -> None:
    changed = 0
    for seed in range(6):
        drawn = swarm_scenario("", seed, subscriptions.plan)
        assert simulate(drawn, subscriptions.plan(drawn.deployment())).violations == []
        changed += bool(drawn.changes)
    assert changed


def test_the_swarm_draws_groups_that_overlap_where_that_is_the_promise() -> None:
    drawn = [swarm_scenario("", seed, subscriptions.overlapping) for seed in range(200)]
    others = [swarm_scenario("", seed, subscriptions.plan) for seed in range(200)]
    own = [one for one, other in zip(drawn, others, strict=True) if one.membership != other.membership]
    assert 0.7 * len(drawn) < len(own) < 0.9 * len(drawn)
    assert max(len(one.membership) for one in own) == 6
    assert max(node for one in own for members in one.membership for node in members) == 7
    pairs = [combinations(one.membership, 2) for one in own]
    double = sum(any(len({*a} & {*b}) > 1 for a, b in both) for both in pairs)
    assert double > 0.5 * len(own), "most have two receivers in the same two groups"
    empty = {(one.seed, group) for one in own for group, members in enumerate(one.membership) if not members}
    assert 0.1 * len(own) < len(empty) < 0.3 * len(own)
    assert empty & {(one.seed, change.group) for one in own for change in one.join}


def test_the_swarm_keeps_the_promises_of_the_model_where_groups_overlap() -> None:
    for seed in range(12):
        drawn = swarm_scenario("", seed, subscriptions.overlapping)
        run = simulate(drawn, subscriptions.overlapping(drawn.deployment()))
        assert run.violations == [] == audit(run.description, run.table).violations


def test_the_swarm_finds_receivers_that_swap_two_groups() -> None:
    make = partial(subscriptions.overlapping, broken=subscriptions.Swapping)
    found = set()
    for seed in range(12):
        drawn = swarm_scenario("", seed, make)
        found |= {one.property for one in simulate(drawn, make(drawn.deployment())).violations}
    assert "pair-order" in found and "total-order" not in found


def test_a_failing_scenario_keeps_only_the_changes_that_it_needs() -> None:
    def make(deployment: Deployment) -> Plan:
        return subscriptions.plan(deployment, subscriptions.Lingering)

    failing = Scenario(
        protocol="",
        joiners=2,
        join=(Join(at_ms=5, node=3), Join(at_ms=10, node=4)),
        leave=(Leave(at_ms=15, node=0), Leave(at_ms=30, node=4)),
        workload=WorkloadSpec(messages=40),
        settle_ms=100,
    )
    found = shrink(failing, make, tries=150).scenario
    assert len(found.changes) < 4
    assert {type(one) for one in found.changes} >= {Leave}
    assert simulate(found, make(found.deployment())).violations
    assert msgspec.convert(msgspec.to_builtins(found), Scenario) == found


def test_in_an_empty_group_anybody_joins_and_leaves() -> None:
    deployment = Deployment(((0, 1), ()), 1)
    plan = subscriptions.plan(deployment)
    moved = {
        (change.node, change.group)
        for seed in range(50)
        for change in draw_changes(plan, Phase(400.0), Random(seed))
    }
    assert moved == {(1, 0), (0, 1), (1, 1)}, "but the first member of a group stays"


def test_a_part_of_a_scenario_keeps_groups_that_are_empty() -> None:
    whole = Scenario(protocol="epto", membership=((), (0, 1), (1, 2)), senders=2)
    smaller = part_of(whole, Scenario.plan, receivers=(0,))
    assert smaller is not None and smaller.membership == ((), (0,), (0, 1))
    assert part_of(whole, Scenario.plan, receivers=(0, 1)) is None, "a group that had members needs one"
    plain = part_of(whole, Scenario.plan, groups=(0, 2))
    assert plain is not None and (plain.membership, plain.groups, plain.receivers) == ((), 1, 2)
    assert part_of(whole, Scenario.plan, groups=(1, 2)) is None, "some group needs a receiver"


def test_a_receiver_with_a_home_joins_that_group_only() -> None:
    scenario = Scenario(protocol="llft", groups=2, receivers=1, joiners=2, service="counter")
    plan = scenario.plan()
    assert plan.homes == {0: 0, 1: 1, 2: 0, 3: 1}
    moved = {
        (change.node, change.group)
        for seed in range(50)
        for change in draw_changes(plan, Phase(400.0), Random(seed))
    }
    assert moved == {(2, 0), (3, 1)}
    strange = msgspec.structs.replace(scenario, join=(Join(at_ms=5.0, node=2, group=1),))
    with pytest.raises(ScenarioError, match=r"join\[0\].group: node 2 can only be in group 0"):
        simulate(strange)

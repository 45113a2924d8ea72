"""Peers that join and leave groups: where they are in the order, and over restarts."""

from typing import Any

import msgspec
import pytest

from ordercast.core import MILLISECOND, GroupId, NodeId, Plan
from ordercast.core.plan import Factory
from ordercast.judge import audit
from ordercast.protocols.epto import subscriptions
from ordercast.protocols.epto.messages import Key
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.faults import Crash, Disk, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind

JOINER: NodeId = 4


def scenario(options: dict[str, Any], **changes: Any) -> Scenario:
    """Four peers of a group and one that joins and leaves; peer 1 leaves and comes back."""
    usual: dict[str, Any] = {
        "protocol": "epto",
        "receivers": 4,
        "joiners": 1,
        "senders": 2,
        "options": {"round_ns": 5 * MILLISECOND} | options,
        "network": NetworkSpec(latency=UniformSpec(50, 2000)),
        "workload": WorkloadSpec(messages=300, rate_per_s=500),
        "join": (Join(at_ms=80, node=JOINER), Join(at_ms=150, node=1)),
        "leave": (Leave(at_ms=60, node=1), Leave(at_ms=220, node=JOINER)),
        "liveness": True,
    }
    return Scenario(**(usual | changes))


def clean(run: Run) -> None:
    """Both judges find nothing, and no holes."""
    assert run.violations == []
    judged = audit(run.description, run.table)
    assert judged.violations == []
    assert judged.holes == run.holes
    assert run.holes is not None and run.holes.nodes == ()


def kinds(run: Run, node: NodeId) -> list[Kind]:
    return [event.kind for event in run.events() if event.node == node]


@pytest.mark.parametrize("options", [{}, {"clock": "global"}, {"late": "tag", "durable": True}])
def test_peers_get_what_is_ordered_while_they_are_in_the_group(options: dict[str, Any]) -> None:
    run = simulate(scenario(options))
    clean(run)
    own = kinds(run, JOINER)
    assert own[:2] == [Kind.JOIN, Kind.JOINED] and own[-1] is Kind.LEFT and Kind.DELIVER in own
    again = kinds(run, 1)
    assert Kind.DELIVER in again[again.index(Kind.JOINED) :]


def test_a_newcomer_joins_when_it_knows_the_time() -> None:
    run = simulate(scenario({}, join=(Join(at_ms=0, node=JOINER),), leave=()))
    clean(run)
    asked, joined = (
        next(event.time_ns for event in run.events() if event.kind is kind)
        for kind in (Kind.JOIN, Kind.JOINED)
    )
    assert asked == 0 < joined  # others have to tell it the logical time first


def restarted(host: NodeId, at_ms: float = 120) -> tuple[Crash, Restart]:
    return Crash(at_ms=at_ms, host=host), Restart(at_ms=at_ms + 10, host=host)


def test_a_durable_peer_is_in_the_same_groups_after_a_restart() -> None:
    faults = (*restarted(JOINER), *restarted(1))
    run = simulate(scenario({"durable": True}, fault=faults, join=(Join(at_ms=80, node=JOINER),)))
    assert run.violations == []
    joiner, leaver = kinds(run, JOINER), kinds(run, 1)
    assert Kind.DELIVER in joiner[joiner.index(Kind.RECOVER) :]
    assert Kind.DELIVER not in leaver[leaver.index(Kind.LEFT) :]


def test_a_peer_that_forgot_where_it_was_joins_anew() -> None:
    faults = (Disk(at_ms=100, host=0, what="wiped"), *restarted(0))
    run = simulate(scenario({"durable": True}, fault=faults))
    assert run.violations == []
    own = kinds(run, 0)
    back = own.index(Kind.RECOVER)
    assert own[back + 1] is Kind.JOINED and Kind.DELIVER in own[back:]


class Everywhere(subscriptions.Subscriptions):
    """Broken: does not look at the place where it joined."""

    __slots__ = ()

    def receives(self, key: Key, groups: tuple[GroupId, ...]) -> bool:
        return not self.groups.isdisjoint(groups)  # type: ignore[attr-defined]


class Staying(subscriptions.Subscriptions):
    """Broken: tells that it has left, and goes on."""

    __slots__ = ()

    def leave(self, group: GroupId, last: Key) -> None:
        place = self._places[group]
        super().leave(group, last)
        self._places[group] = place


class Unsaved(subscriptions.Subscriptions):
    """Broken: does not save that it has left."""

    __slots__ = ()

    def _save(self) -> None:
        pass


def broken(plan: Plan, node: NodeId, make: type[subscriptions.Subscriptions]) -> Plan:
    """The plan with a broken peer."""

    def factory(env: Any, whole: Factory = plan.nodes[node].factory) -> Any:
        peer: Any = whole(env)
        setting = peer._set
        mine = [group for group, members in setting.groups.items() if node in members]
        peer._mine = make(env, mine, setting.peers, durable=setting.durable)
        return peer

    nodes = tuple(
        one if one.id != node else type(one)(one.id, one.role, one.host, factory) for one in plan.nodes
    )
    return Plan(
        plan.protocol, plan.guarantees, nodes, plan.groups, plan.senders, plan.codec, plan.pace,
        joiners=plan.joiners,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "node", "breaks", "changes"),
    [
        (Everywhere, JOINER, "tenure", {"join": (Join(at_ms=0, node=JOINER),), "leave": ()}),
        (Staying, 1, "integrity", {}),
        (Unsaved, 1, "integrity", {"fault": restarted(1, 100), "join": ()}),
    ],
)
def test_both_judges_catch_a_broken_peer(
    make: type[subscriptions.Subscriptions], node: NodeId, breaks: str, changes: dict[str, Any]
) -> None:
    changes = {"leave": (Leave(at_ms=60, node=1),)} | changes
    chosen = scenario({"durable": True, "clock": "global"}, **changes)
    if make is Everywhere:  # what was sent just before it joined
        chosen = msgspec.structs.replace(chosen, join=(Join(at_ms=12, node=JOINER),))
    run = simulate(chosen, broken(chosen.plan(), node, make))
    for violations in (run.violations, audit(run.description, run.table).violations):
        assert {one.property for one in violations} == {breaks}
        assert all(one.nodes == (node,) for one in violations)


def test_a_group_may_begin_without_a_peer() -> None:
    changes = {
        "membership": ((), (0, 1, 2, 3)),
        "join": (Join(at_ms=80, node=JOINER), Join(at_ms=150, node=0)),
        "leave": (Leave(at_ms=300, node=JOINER), Leave(at_ms=350, node=0)),
    }
    run = simulate(scenario({}, **changes))
    clean(run)
    for node in (0, JOINER):
        own = [event.kind for event in run.events() if event.node == node and event.groups == (0,)]
        assert own[:2] == [Kind.JOIN, Kind.JOINED] and own[-1] is Kind.LEFT and Kind.DELIVER in own
    early = [event for event in run.events() if event.kind is Kind.SUBMIT and event.groups == (0,)]
    assert early[0].time_ns < 80 * MILLISECOND, "somebody sends to the group before anybody receives it"


def test_the_clients_of_a_closed_workload_give_up_what_nobody_receives() -> None:
    workload = WorkloadSpec(kind="closed", messages=40, timeout_ms=5)
    run = simulate(scenario({}, membership=((0, 1, 2, 3), ()), workload=workload, join=(), leave=()))
    clean(run)
    assert run.summary().submitted >= 40

"""Receivers that join and leave at a place in the order, in a model without a list of members."""

from bisect import bisect_right
from typing import Any

import pytest

from ordercast.core import GroupId, LocalError
from ordercast.judge import audit
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.sim.world import World
from ordercast.trace import Event, Kind
from tests.audit.tampering import foresees, tampered
from tests.audit.test_both_judges import columns_say, oracles_say
from tests.deep import deep_after
from tests.sim.models import subscriptions

JOINER = 3
"""The receiver that is in no group at the start."""


def scenario(seed: int = 0, **changes: Any) -> Scenario:
    """Three members of a group, one that joins and leaves, and messages all the time."""
    usual: dict[str, Any] = {
        "protocol": "",
        "seed": seed,
        "joiners": 1,
        "senders": 2,
        "network": NetworkSpec(latency=UniformSpec(50, 2000)),
        "workload": WorkloadSpec(messages=200, rate_per_s=1000),
        "join": (Join(at_ms=20, node=JOINER),),
        "leave": (Leave(at_ms=70, node=JOINER),),
        "settle_ms": 500,
        "liveness": True,
    }
    return Scenario(**(usual | changes))


def run(broken: subscriptions.MakeSubscriber | None = None, **changes: Any) -> Run:
    """Run the model, with a joiner of a broken make."""
    chosen = scenario(**changes)
    return simulate(chosen, subscriptions.plan(chosen.deployment(), broken))


def found(ended: Run) -> set[str]:
    """The properties that both judges find broken; they must agree."""
    told = {one.property for one in ended.violations}
    assert {one.property for one in audit(ended.description, ended.table).violations} == told
    return told


@pytest.mark.parametrize("seed", range(5))
def test_a_receiver_gets_what_is_ordered_between_its_join_and_its_leave(seed: int) -> None:
    ended = run(seed=seed)
    assert found(ended) == set()
    kinds = [event.kind for event in ended.events() if event.node == JOINER]
    assert kinds[0] is Kind.JOIN and kinds[1] is Kind.JOINED and kinds[-1] is Kind.LEFT
    joined, left = (next(e for e in ended.events() if e.kind is kind) for kind in (Kind.JOINED, Kind.LEFT))
    member, joiner = (
        {e.stamp_clock for e in ended.events() if e.node == node and e.kind is Kind.DELIVER}
        for node in (0, JOINER)
    )
    assert joined.stamp_clock is not None and left.stamp_clock is not None
    assert joiner == {place for place in member if joined.stamp_clock < (place or 0) <= left.stamp_clock}
    assert len(joiner) > 20


def test_a_founder_leaves_and_comes_back() -> None:
    ended = run(join=(Join(at_ms=60, node=0),), leave=(Leave(at_ms=20, node=0),))
    assert found(ended) == set()
    kinds = [event.kind for event in ended.events() if event.node == 0]
    assert kinds.index(Kind.LEFT) < kinds.index(Kind.JOINED)
    assert Kind.DELIVER in kinds[kinds.index(Kind.JOINED) :]


def test_groups_overlap_and_change_apart() -> None:
    ended = run(
        membership=((0, 1), (1, 2)),
        workload=WorkloadSpec(messages=200, rate_per_s=1000, spread=(0.5, 0.5)),
        join=(Join(at_ms=10, node=3, group=1), Join(at_ms=30, node=3), Join(at_ms=30, node=0, group=1)),
        leave=(Leave(at_ms=50, node=3, group=1), Leave(at_ms=40, node=1)),
    )
    assert found(ended) == set()


MUTANTS = [
    (subscriptions.Forgetful, {"agreement"}),
    (subscriptions.Hasty, {"tenure"}),
    (subscriptions.Unasked, {"integrity"}),
    (subscriptions.Lingering, {"integrity"}),
    (subscriptions.Early, {"tenure"}),
    (subscriptions.Impatient, {"agreement"}),
    (subscriptions.Deaf, {"joining"}),
    (subscriptions.Captive, {"joining"}),
]


@pytest.mark.parametrize(("broken", "breaks"), MUTANTS)
def test_a_broken_receiver_is_caught_by_both_judges(
    broken: subscriptions.MakeSubscriber, breaks: set[str]
) -> None:
    ended = run(broken)
    assert found(ended) >= breaks
    assert all(JOINER in one.nodes for one in ended.violations)


def test_a_request_is_not_waited_for_after_a_crash() -> None:
    world = World(subscriptions.plan(scenario().deployment(), subscriptions.Deaf))
    world.run(1000)
    world.members.join(JOINER, 0)
    world.run(2000)
    assert [row[3] for row in world.rows] == [Kind.JOIN]
    world.members.join(JOINER, 0)  # it has asked already
    world.run(3000)
    assert [row[3] for row in world.rows] == [Kind.JOIN]
    world.crash(JOINER)
    world.members.join(JOINER, 0)  # it is down
    world.restart(JOINER)
    world.members.join(JOINER, 0)
    world.run(4000)
    assert [row[3] for row in world.rows] == [Kind.JOIN, Kind.CRASH, Kind.RECOVER, Kind.JOIN]


def test_a_group_that_does_not_exist_cannot_be_joined() -> None:
    world = World(subscriptions.plan(scenario().deployment()))
    with pytest.raises(LocalError, match="there is no group 7; there are: 0"):
        world.members.join(JOINER, 7)


def test_a_receiver_that_swaps_two_groups_breaks_the_order_of_that_pair_only() -> None:
    chosen = scenario(membership=((0, 1, 2), (1, 2), ()), joiners=0, join=(), leave=(), liveness=False)
    ended = simulate(chosen, subscriptions.overlapping(chosen.deployment(), subscriptions.Swapping))
    assert found(ended) - {"agreement", "validity"} == {"pair-order"}
    assert all(2 in one.nodes for one in ended.violations)
    assert found(simulate(chosen, subscriptions.overlapping(chosen.deployment()))) == set()


def by_group(events: list[Event]) -> list[Event]:
    """The same with stamps of each group apart: the place in the order of the group, and the group."""
    places: dict[GroupId, set[int]] = {}
    for event in events:
        if event.kind is Kind.DELIVER and event.groups and event.stamp_clock is not None:
            places.setdefault(event.groups[0], set()).add(event.stamp_clock)
    ranks = {group: sorted(own) for group, own in places.items()}

    def moved(event: Event) -> Event:
        if event.stamp_clock is None or not event.groups:
            return event
        (group,) = event.groups
        rank = bisect_right(ranks.get(group, []), event.stamp_clock)
        return event._replace(stamp_clock=rank, stamp_issuer=group)

    return [moved(event) for event in events]


@pytest.mark.parametrize("first", deep_after(1, range(0, 200, 20)))
def test_places_of_each_group_apart_say_as_much_as_those_of_one_order(first: int) -> None:
    joined = tampered_for = 0
    for seed in range(first, first + 20):
        drawn = swarm_scenario("", seed, subscriptions.overlapping)
        run = simulate(drawn, subscriptions.overlapping(drawn.deployment()))
        events = by_group(run.events())
        joined += any(event.kind is Kind.JOINED for event in events)
        for number in range(4):
            changed = tampered(events, 1000 * seed + number) if number else events
            if foresees(changed):
                continue
            told = oracles_say(run.description, changed)
            assert columns_say(run.description, changed) == told, (seed, number)
            assert number or not told, seed
            tampered_for += bool(told)
    assert joined and tampered_for

"""What the store knows: the plans of a change, and commands that do not fit."""

from collections.abc import Iterable

import pytest

from ordercast.core import GroupId, NodeId
from ordercast.experiments.atoms.worlds import zipf_groups
from ordercast.protocols.atoms.commands import Command, Decide, Final, Greet, Prepare, Request, decode, encode
from ordercast.protocols.atoms.planning import SENDERS
from ordercast.protocols.atoms.records import GroupPlan, Membership, Part, Post, Tenure
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sites import PLACEMENTS

NODES = (10, 11, 12)
GROUPS: dict[GroupId, tuple[NodeId, ...]] = {0: (0, 1, 2), 1: (1, 2), 2: (3, 4), 3: (4, 5), 4: ()}
"""Groups 0 and 1 share an atom; 2 and 3 share one subscriber, and no atom; 4 has nobody."""


def registry(*, copies: int = 2, causal: bool = False) -> Registry:
    return Registry(GROUPS, NODES, copies, "shared_member", causal)


def request(node: NodeId, group: GroupId, *, wants: bool, number: int = 1, life: int = 1) -> Request:
    return Request(node, life, number, group, wants)


def final(plan: GroupPlan, length: int = 5, gone: tuple[NodeId, ...] = ()) -> Final:
    """So many entries of the epoch are in the log."""
    end = plan.base + length
    parts = tuple(Part(post, 0, end) for post in plan.holders)
    return Final(plan.group, end, 0, ((20, (1, 3)),), parts, gone)


def decide(known: Registry, *leave_out: GroupId, length: int = 5, gone: Iterable[NodeId] = ()) -> None:
    finals = [final(plan, length, tuple(gone)) for plan in known.sealing() if plan.group not in leave_out]
    known.apply(Decide(known.change + 1, tuple(finals)))


def change(known: Registry, *requests: Request, **others: tuple[object, ...]) -> None:
    """A whole change."""
    known.apply(Prepare(known.change + 1, requests, **others))  # type: ignore[arg-type]
    decide(known)


def sealed(known: Registry) -> set[GroupId]:
    return {plan.group for plan in known.sealing()}


def labels(known: Registry) -> dict[GroupId, int]:
    return {group: plan.label for group, plan in known.plans.items()}


# The beginning


def test_at_the_start_all_groups_of_a_tree_are_in_one_epoch() -> None:
    known = registry()
    told = labels(known)
    assert set(told) == {0, 1, 2, 3}
    assert told[0] == told[1]
    assert len({told[0], told[2], told[3]}) == 3
    assert all(plan.base == 0 and len(plan.holders) == 2 for plan in known.plans.values())
    assert known.plans[0].tenures == (Tenure(0, 0), Tenure(1, 0), Tenure(2, 0))
    assert known.memberships[4] == {2: Membership(2, told[2], 0), 3: Membership(3, told[3], 0)}
    assert not known.is_open(4)


def test_two_replicas_begin_alike() -> None:
    assert registry().snapshot() == registry().snapshot()


def test_for_causal_order_a_single_common_subscriber_is_enough_for_an_atom() -> None:
    known = registry(causal=True)
    assert len({known.plans[2].label, known.plans[3].label}) == 1
    assert {groups for _, groups in known.plans[2].begin.atoms} == {(2, 3)}
    assert all(SENDERS not in (one.node for one in plan.tenures) for plan in known.plans.values())


# A change


def test_a_change_ends_the_epochs_of_the_trees_that_it_touches_and_no_others() -> None:
    known = registry()
    before = dict(known.plans)
    known.apply(Prepare(1, (request(3, 1, wants=True),)))
    assert sealed(known) == {0, 1}
    decide(known)
    assert [group for group, plan in known.plans.items() if plan is not before[group]] == [0, 1]
    assert known.change == 1 and known.planned is None


def test_trees_that_merge_are_both_touched_and_get_one_label() -> None:
    known = registry()
    change(known, request(3, 3, wants=True))
    told = labels(known)
    assert told[2] == told[3] > told[0]


def test_trees_that_part_get_labels_of_their_own() -> None:
    known = registry()
    change(known, request(1, 1, wants=False))
    told = labels(known)
    assert told[0] != told[1]
    assert {plan.begin.floor for plan in (known.plans[0], known.plans[1])} == {min(told[0], told[1])}


def test_the_next_epoch_begins_where_the_log_ended() -> None:
    known = registry()
    change(known, request(3, 1, wants=True))
    plan = known.plans[1]
    assert plan.base == 5 and plan.serials == ((20, (1, 3)),)
    assert [(part.start, part.stop) for part in plan.parts] == [(0, 5), (0, 5)]
    assert plan.tenures == (Tenure(1, 0), Tenure(2, 0), Tenure(3, 5))
    assert known.memberships[3][1] == Membership(1, plan.label, 5)


def test_versions_and_labels_grow() -> None:
    known = registry()
    for number, wants in enumerate((True, False, True), 1):
        before = {group: (plan.version, plan.label) for group, plan in known.plans.items()}
        change(known, request(3, 1, wants=wants, number=number))
        for group in (0, 1):
            plan = known.plans[group]
            assert plan.version > before[group][0] and plan.label > before[group][1]
            assert plan.begin.floor > max(label for _, label in before.values())
        assert known.version == max(plan.version for plan in known.plans.values())


def test_kin_are_the_touched_groups_with_a_common_subscriber_now_or_until_now() -> None:
    known = registry()
    change(known, request(3, 3, wants=True))
    assert known.plans[2].begin.kin == (3,)
    assert known.plans[3].begin.kin == (2,)
    known = registry()
    known.apply(Prepare(1, (request(4, 2, wants=False), request(4, 3, wants=False, number=2))))
    decide(known)
    assert known.plans[2].begin.kin == (3,) and known.plans[3].begin.kin == (2,)


def test_a_subscriber_that_leaves_gets_the_log_up_to_the_entry_that_begins_the_next_epoch() -> None:
    known = registry()
    change(known, request(2, 1, wants=False))
    plan = known.plans[1]
    assert plan.tenures == (Tenure(1, 0), Tenure(2, 0, 6))
    membership = known.memberships[2][1]
    assert (membership.out, membership.stop, membership.lost) == (plan.label, 6, False)
    known.apply(Prepare(2, (request(3, 1, wants=True),)))
    decide(known, gone=(2,))
    assert known.plans[1].tenures == (Tenure(1, 0), Tenure(3, 10))


def test_a_subscriber_that_is_lost_gets_nothing_more() -> None:
    known = registry()
    change(known, lost=((1, 2),))
    assert known.plans[1].tenures == (Tenure(1, 0),)
    assert known.memberships[2][1].lost


def test_a_group_without_members_has_no_path_and_is_kept() -> None:
    known = registry()
    change(known, request(1, 1, wants=False), request(2, 1, wants=False))
    plan = known.plans[1]
    assert plan.begin.ends and plan.hops == () and plan.begin.atoms == ()
    assert len(plan.holders) == 2
    assert not known.is_open(1)
    change(known, request(0, 1, wants=True))
    assert known.is_open(1)
    assert known.plans[1].tenures == (Tenure(0, 10), Tenure(1, 0, 6), Tenure(2, 0, 6))


def test_the_first_member_of_a_group_begins_its_log() -> None:
    known = registry()
    change(known, request(5, 4, wants=True))
    assert known.is_open(4)
    assert known.plans[4].base == 0 and known.plans[4].tenures == (Tenure(5, 0),)
    assert not any(group in (0, 1) for group in known.plans[4].begin.kin)


# Sequencing nodes


def test_the_epochs_of_a_node_that_is_gone_end_and_go_elsewhere() -> None:
    known = registry()
    victim = known.plans[0].hops[0].post.node
    known.apply(Prepare(1, down=(victim,)))
    assert {0, 1} <= sealed(known)
    assert known.reporter(known.plans[0]) in set(NODES) - {victim}
    decide(known)
    for plan in known.plans.values():
        assert all(post.node != victim for post in plan.posts())
        assert len(plan.holders) == 2


def test_a_node_that_comes_back_is_trusted_in_its_new_life_only() -> None:
    known = registry()
    victim = known.plans[0].hops[0].post.node
    known.apply(Prepare(1, up=(Post(victim, 2),)))
    assert {0, 1} <= sealed(known)
    decide(known)
    for plan in known.plans.values():
        assert all(post.life == (2 if post.node == victim else 1) for post in plan.posts())


def test_the_last_node_is_never_given_up() -> None:
    known = registry()
    known.apply(Prepare(1, down=NODES))
    assert len(known.up) == 1


def test_a_change_waits_until_each_log_can_be_on_enough_nodes() -> None:
    known = registry()
    known.apply(Prepare(1, down=(10, 11)))
    decide(known)
    assert known.change == 0 and known.planned is not None
    known.apply(Prepare(1, up=(Post(10, 2),)))
    decide(known)
    assert known.change == 1
    assert all(len(plan.holders) == 2 for plan in known.plans.values())


def test_a_node_that_fails_meanwhile_is_added_to_the_change_under_way() -> None:
    known = registry()
    known.apply(Prepare(1, (request(5, 4, wants=True),)))
    assert sealed(known) == set()
    known.apply(Prepare(1, down=(known.plans[0].holders[-1].node,)))
    assert {0, 1} <= sealed(known)
    decide(known)
    assert known.is_open(4) and known.change == 1


def test_a_begin_that_nobody_has_reported_is_told_again() -> None:
    known = registry()
    change(known, request(3, 1, wants=True))
    begin = known.plans[1].begin
    known.apply(Prepare(2, (request(3, 1, wants=False, number=2),)))
    reporter = known.plans[1].holders[-1]
    known.apply(
        Decide(
            2,
            tuple(
                Final(plan.group, plan.base + 1, 0, (), (Part(reporter, 0, plan.base),), ())
                for plan in known.sealing()
            ),
        )
    )
    assert known.plans[1].begins == ((5, begin),)
    known.apply(Prepare(3, (request(3, 1, wants=True, number=3),)))
    decide(known, length=2)
    assert not known.plans[1].begins


# Placement


def test_with_subtrees_no_path_comes_back_to_a_node() -> None:
    members = zipf_groups(64, 30, seed=1)
    plans = {name: Registry(members, NODES, 2, name, False).plans for name in PLACEMENTS}
    mean = {name: sum(len(plan.hops) for plan in those.values()) / 30 for name, those in plans.items()}
    assert all(len({hop.post for hop in plan.hops}) == len(plan.hops) for plan in plans["subtrees"].values())
    assert mean["subtrees"] < mean["shared_member"] / 2


# Commands that do not fit


def unfit(known: Registry) -> list[Command]:
    known.apply(Greet(2, 3))
    known.apply(Prepare(1, (request(3, 1, wants=True),)))
    first, second = known.sealing()
    return [
        Prepare(2, (request(5, 1, wants=True),)),
        Prepare(0, (request(5, 1, wants=True),)),
        Decide(2, (final(first), final(second))),
        Decide(1, (final(first), final(second), final(known.plans[2]))),
        Greet(2, 3),
        Greet(2, 1),
        Prepare(1, (request(3, 1, wants=True),)),
        Prepare(1, (request(3, 2, wants=True, number=3),)),
        Prepare(1, (request(2, 1, wants=False, life=1),)),
    ]


@pytest.mark.parametrize("place", range(9))
def test_a_command_that_does_not_fit_changes_nothing(place: int) -> None:
    known = registry()
    command = unfit(known)[place]
    before = known.snapshot()
    known.apply(command)
    assert known.snapshot() == before


def test_a_decision_without_a_change_under_way_changes_nothing() -> None:
    known = registry()
    before = known.snapshot()
    known.apply(Decide(1, ()))
    assert known.snapshot() == before


def test_a_change_is_decided_in_parts() -> None:
    known = registry()
    known.apply(Prepare(1, (request(3, 1, wants=True),)))
    plans = known.sealing()
    assert len(plans) == 2
    for plan in plans:
        assert known.change == 0
        known.apply(Decide(1, (final(plan, length=2 + plan.group),)))
    assert known.change == 1 and known.planned is None
    assert [known.plans[plan.group].base for plan in plans] == [2 + plan.group for plan in plans]


def test_what_is_decided_of_a_log_stays_so_when_the_change_grows() -> None:
    known = registry()
    known.apply(Prepare(1, (request(3, 1, wants=True),)))
    known.apply(Decide(1, (final(known.plans[1]),)))
    assert known.planned is not None and len(known.planned.finals) == 1
    before = sealed(known)
    known.apply(Prepare(1, (), (), (11,)))
    assert before < sealed(known)
    known.apply(Decide(1, (final(known.plans[1], length=9),)))
    other = Registry({0: (0,)}, (10,), 2, "shared_member", False)
    other.restore(known.snapshot())
    assert other.change == 0
    decide(other, 1)
    assert other.change == 1 and other.plans[1].base == 5


def test_a_request_for_what_is_so_already_is_answered_without_a_new_epoch() -> None:
    known = registry()
    before = labels(known)
    change(known, request(1, 1, wants=True), request(5, 1, wants=False))
    assert labels(known) == before
    assert known.asked == {1: (1, 1), 5: (1, 1)}


def test_a_greeting_makes_requests_of_earlier_lives_void() -> None:
    known = registry()
    known.apply(Greet(3, 2))
    change(known, request(3, 1, wants=True, life=1))
    assert 3 not in [one.node for one in known.plans[1].tenures]
    change(known, request(3, 1, wants=True, life=2))
    assert 3 in [one.node for one in known.plans[1].tenures]


def test_commands_come_back_from_the_log_as_they_were() -> None:
    known = registry()
    for command in unfit(known):
        assert decode(encode(command)) == command


# Snapshots


@pytest.mark.parametrize("under_way", [False, True])
def test_a_replica_that_takes_a_snapshot_goes_on_alike(under_way: bool) -> None:
    known = registry()
    change(known, request(3, 1, wants=True), request(2, 0, wants=False))
    known.apply(Greet(4, 2))
    if under_way:
        known.apply(Prepare(2, (request(5, 4, wants=True),), down=(10,)))
    other = Registry({0: (0,)}, (10,), 2, "shared_member", False)
    other.restore(known.snapshot())
    assert other.snapshot() == known.snapshot()
    for one in (known, other):
        if not under_way:
            one.apply(Prepare(2, (request(5, 4, wants=True),), down=(10,)))
        decide(one)
        change(one, request(3, 1, wants=False, number=2))
    assert other.snapshot() == known.snapshot()
    assert labels(other) == labels(known)

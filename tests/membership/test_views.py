"""View synchrony as a component: views, messages between them, newcomers, leaves, and what waits for what."""

import pytest

from ordercast.components.membership import Seating, ViewOptions
from ordercast.components.membership.ballot import ballot_above
from ordercast.components.membership.messages import BeginChange, Data
from ordercast.components.membership.standing import ADMITTED, CHANGING, JOINING, MEMBER, OUT
from ordercast.core import MILLISECOND, LocalError
from tests.membership.harness import GroupWorld

DETECTED_MS = 200
"""Longer than it takes to exclude a member, and to take it in again."""


def test_founders_begin_in_the_first_view_and_deliver_in_the_order_of_each_sender() -> None:
    group = GroupWorld(3)
    for number in range(5):
        assert group[0].views.multicast(b"a%d" % number)
        assert group[1].views.multicast(b"b%d" % number)
    assert [payload for _, _, payload in group[0].delivered] == [b"a0", b"a1", b"a2", b"a3", b"a4"]
    group.run(5)
    for node in range(3):
        assert group[node].installed == [(1, (0, 1, 2), "")]
        for sender, letter in ((0, b"a"), (1, b"b")):
            told = [payload for view, source, payload in group[node].delivered if source == sender]
            assert told == [letter + b"%d" % number for number in range(5)]


def test_survivors_deliver_the_same_and_a_queued_message_goes_out_in_the_next_view() -> None:
    group = GroupWorld(3)
    group.run(20)
    group.world.crash(2)
    while group[0].views.standing is not CHANGING:
        group.run(0.01)
    assert group[0].views.multicast(b"queued")
    assert group[0].views.view is not None and group[0].views.view.number == 1
    group.run(DETECTED_MS)
    for node in (0, 1):
        assert group[node].installed[-1] == (2, (0, 1), "")
        assert group[node].delivered == [(2, 0, b"queued")]


def test_what_only_a_dead_member_sent_reaches_all_or_none() -> None:
    group = GroupWorld(4)
    group.cut((3,), (1, 2))  # only member 0 gets the message
    assert group[3].views.multicast(b"last words")
    group.run(1)
    group.world.crash(3)
    group.world.heal()
    group.run(DETECTED_MS)
    assert [group[node].delivered for node in range(3)] == [[(1, 3, b"last words")]] * 3
    assert {group.members(node) for node in range(3)} == {(0, 1, 2)}


def test_what_comes_after_a_member_stopped_is_not_acknowledged_for_the_next_view_may_lack_it() -> None:
    views = GroupWorld(3)[0].views
    traffic = views.exchange.traffic
    assert traffic is not None
    views.on_message(2, Data(1, 2, 0, b"before"))
    views.on_message(1, BeginChange(ballot_above(0, 1), views.journal.record))
    views.on_message(2, Data(1, 2, 1, b"after"))
    assert views.exchange.received == (0, 0, 2), "it may be needed for the cut"
    assert traffic.counts() == (0, 0, 1)


def test_a_minority_waits_and_comes_back_with_the_state() -> None:
    group = GroupWorld(3)
    group.run(5)
    group.cut((0,), (1, 2))
    assert group[0].views.multicast(b"alone")
    group.run(DETECTED_MS)
    assert group[0].installed == [(1, (0, 1, 2), "")]
    assert group.members(1) == group.members(2) == (1, 2)
    assert group[1].views.multicast(b"of the majority")
    group.world.heal()
    group.run(DETECTED_MS)
    assert group[0].returned == [b"alone"]
    assert [members for _, members, _ in group[0].installed] == [(0, 1, 2), (1, 2), (0, 1, 2)]
    assert group[0].installed[-1][2] == "anew"
    assert group[0].state == group[1].state == [b"of the majority"]


def test_a_group_that_shrank_by_failures_goes_on_with_any_majority_of_all() -> None:
    group = GroupWorld(3)
    group.world.crash(2)
    group.run(DETECTED_MS)
    assert group.members(0) == (0, 1)
    group.world.crash(0)
    group.world.restart(2)
    group.run(2 * DETECTED_MS)
    assert group.members(1) == group.members(2) == (1, 2)


@pytest.mark.parametrize("founders", [1, 2, 5])
def test_all_restart_at_the_same_time(founders: int) -> None:
    group = GroupWorld(founders)
    group[0].views.multicast(b"before")
    group.run(20)
    for node in range(founders):
        group.world.crash(node)
        group.world.restart(node)
    group.run(DETECTED_MS)
    everybody = tuple(range(founders))
    assert {group.members(node) for node in everybody} == {everybody}
    assert group[0].views.multicast(b"after")
    group.run(5)
    assert {tuple(group[node].state) for node in everybody} == {(b"after",)}


def test_a_voter_without_its_state_comes_back_and_votes_again_only_in_its_seat() -> None:
    group = GroupWorld(3)
    group[0].views.multicast(b"kept by the others")
    group.run(20)
    group.world.crash(1)
    group.world.restart(1, keep_state=False)
    group.run(0.001)
    abstained = group[1].views.journal.abstains
    group.run(DETECTED_MS)
    assert group.members(1) == (0, 1, 2)
    assert (abstained, group[1].views.journal.abstains) == (True, False)
    assert group[1].state == [b"kept by the others"]


def test_voters_without_their_state_do_not_keep_the_others_from_going_on() -> None:
    group = GroupWorld(5)
    group.run(20)
    for node in range(5):
        group.world.crash(node)
        group.world.restart(node, keep_state=node >= 2)
    group.run(DETECTED_MS)
    assert {group.members(node) for node in range(5)} == {(0, 1, 2, 3, 4)}


def test_a_node_that_was_no_founder_comes_in_with_the_state_and_goes_again() -> None:
    group = GroupWorld(2, others=1)
    group[0].views.multicast(b"before")
    group.run(20)
    assert group[2].views.standing is OUT and not group[2].views.multicast(b"too early")
    group[2].views.join((0,))
    group.run(50)
    assert group.members(0) == group.members(2) == (0, 1, 2)
    view = group[0].views.view
    assert view is not None and view.newcomers == (2,)
    assert group[2].installed == [(2, (0, 1, 2), "anew")]
    assert group[2].state == [b"before"]
    assert group[2].views.multicast(b"mine")
    group[2].views.leave()
    assert not group[2].views.multicast(b"too late")
    group.run(50)
    assert group[2].installed[-1] == (3, (0, 1), "")
    assert group[2].views.standing is OUT and group[2].returned == []
    assert {tuple(group[node].state) for node in range(3)} == {(b"before", b"mine")}
    assert group[0].views.journal.record.voters == (0, 1)


def test_one_that_leaves_before_it_has_the_state_is_out_at_once_and_gives_up_its_seat() -> None:
    group = GroupWorld(3, others=1)
    group[3].views.join((0,))
    while group[3].views.standing is not ADMITTED:
        group.run(0.01)
    group[3].views.leave()
    assert group[3].views.is_out
    group.run(DETECTED_MS)
    assert [group.members(node) for node in range(4)] == [(0, 1, 2)] * 3 + [()]


def test_groups_shrink_by_leaves_to_one_that_goes_on_alone() -> None:
    group = GroupWorld(3)
    for node in (0, 1):
        group.run(20)
        group[node].views.leave()
        group.run(50)
    assert group.members(2) == (2,)
    assert group[2].views.journal.record.voters == (2,)
    assert group[2].views.multicast(b"alone")
    group.world.crash(0)
    group.world.crash(1)
    group.run(DETECTED_MS)
    assert group[2].delivered[-1][1:] == (2, b"alone")


def test_one_that_left_stays_out_over_a_restart_and_may_join_again() -> None:
    group = GroupWorld(3)
    group[1].views.leave()
    group.run(50)
    group.world.crash(1)
    group.world.restart(1)
    group.run(50)
    assert group[1].views.standing is OUT
    group[1].views.join((0,))
    group.run(50)
    assert group.members(1) == group.members(0) == (0, 1, 2)


def test_a_state_of_many_pieces() -> None:
    group = GroupWorld(2, others=1, options=ViewOptions(chunk_bytes=10))
    for number in range(50):
        assert group[0].views.multicast(b"message %d" % number)
    group.run(20)
    group[2].views.join((0,))
    group.run(200)
    assert len(group[2].state) == 50 and group[2].state == group[0].state


def test_an_excluded_member_may_be_left_out_for_good() -> None:
    group = GroupWorld(3, options=ViewOptions(returns=False))
    group.cut((0,), (1, 2))
    group.run(DETECTED_MS)
    group.world.heal()
    group.run(DETECTED_MS)
    assert group[0].views.standing is OUT and group.members(1) == (1, 2)
    group[0].views.join((0,))
    group.run(DETECTED_MS)
    assert group[0].views.standing is MEMBER


def test_back_pressure() -> None:
    group = GroupWorld(2, options=ViewOptions(window=3))
    taken = [group[0].views.multicast(b"%d" % number) for number in range(5)]
    assert taken == [True, True, True, False, False]
    assert group[0].views.in_doubt == 3
    (wait,) = group[0].views.explain().waits
    assert (wait.subject, wait.on) == ("new messages", (1,))
    group.run(30)
    assert group[0].views.multicast(b"room again") and group[0].views.in_doubt == 1


def test_who_waits_for_whom() -> None:
    group = GroupWorld(5)
    group.run(20)
    group.cut((0, 1, 2), (3, 4))
    while group[1].views.standing is not CHANGING:
        group.run(0.01)
    (wait,) = group[1].views.explain().waits
    assert (wait.subject, wait.blocker) == ("view 2", "node 0, which leads the change to it")
    assert wait.on == (0,)
    group.run(DETECTED_MS)
    group.world.heal()
    while group[3].views.standing is not JOINING:
        group.run(0.01)
    told = group[3].views.explain()
    assert told.behind == "a view that takes it in"
    assert (told.waits[0].subject, told.waits[0].on) == ("a seat", (0, 1, 2, 4))


def test_the_coordinator_says_who_has_not_answered() -> None:
    group = GroupWorld(3)
    group.world.crash(2)
    while group[0].views.coordinator.change is None:
        group.run(0.01)
    (wait,) = group[0].views.explain().waits
    assert (wait.subject, wait.on) == ("view 2", (1, 2))
    assert group[0].views.suspects == (2,)
    assert group[0].views.explain().state["suspects"] == "2"


def test_options_and_founders_that_cannot_be() -> None:
    for wrong in (
        {"heartbeat_ns": 0},
        {"suspect_ns": 10 * MILLISECOND},
        {"chunk_bytes": 1 << 30},
        {"window": 0},
    ):
        with pytest.raises(LocalError, match="views"):
            ViewOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="must receive a group"):
        Seating({0: (), 1: ()})
    with pytest.raises(LocalError, match="limit"):
        GroupWorld(1)[0].views.multicast(bytes(1 << 21))


def test_a_member_that_missed_that_most_voters_left_comes_in_again() -> None:
    group = GroupWorld(5)
    group.run(20)
    group.cut((4,), (0, 1, 2, 3))
    group.run(DETECTED_MS)
    for node in (1, 2, 3):
        group[node].views.leave()
        group.run(50)
    assert group.members(0) == (0,) and group[0].views.journal.record.voters == (0, 4)
    group.world.heal()
    group.run(DETECTED_MS)
    assert group.members(0) == group.members(4) == (0, 4)


def test_a_joiner_that_knows_only_members_that_have_left_comes_in() -> None:
    group = GroupWorld(1, others=3)
    for comes, goes in ((1, 0), (2, 1)):
        group[comes].views.join((0,))
        group.run(50)
        group[goes].views.leave()
        group.run(50)
    assert group.members(2) == (2,)
    group[3].views.join((0,))  # it knows node 0, which knows node 1, which knows node 2
    group.run(DETECTED_MS)
    assert group.members(2) == group.members(3) == (2, 3)


def _let_others_leave(group: GroupWorld) -> None:
    """Members 1 and 2 exclude member 0, which does not hear them, and leave. Only member 0 keeps its vote."""
    group.run(DETECTED_MS)
    for node in (1, 2):
        group[node].views.leave()
    group.run(50)
    assert group[1].views.is_out and group[2].views.is_out
    assert group[1].views.newest.voters == (0,)


def test_a_member_that_was_down_when_all_others_left_goes_on_alone() -> None:
    group = GroupWorld(3)
    group.run(20)
    group.world.crash(0)
    _let_others_leave(group)
    without_members = group[1].views.newest
    assert without_members.members == ()
    group.world.crash(2)  # one that knows of the view is enough
    group.world.restart(0)
    group.run(DETECTED_MS)
    assert group[0].installed == [(without_members.number + 1, (0,), "anew")]
    assert group[0].views.multicast(b"alone")
    group[1].views.join((0,))
    group.run(DETECTED_MS)
    assert group.members(0) == group.members(1) == (0, 1)
    assert group[1].state == [b"alone"]


def test_a_member_that_was_cut_off_when_all_others_left_goes_on_alone() -> None:
    group = GroupWorld(3)
    group.run(20)
    group.cut((0,), (1, 2))
    _let_others_leave(group)
    group.world.heal()
    group.run(DETECTED_MS)
    assert group.members(0) == (0,)
    assert [members for _, members, _ in group[0].installed] == [(0, 1, 2), (), (0,)]


@pytest.mark.parametrize("sends", [True, False])
def test_a_member_that_slept_while_all_others_left_goes_on(sends: bool) -> None:
    group = GroupWorld(3, others=1)
    if sends:
        group[3].views.join(())
    group.run(50)
    group.world.pause(0, 3 * DETECTED_MS * MILLISECOND)
    group.cut((0,), (1, 2, 3))
    _let_others_leave(group)
    group.world.heal()
    group.run(4 * DETECTED_MS)
    assert group.members(0) == ((0, 3) if sends else (0,))


def test_a_member_that_comes_back_learns_of_the_view_from_one_that_it_does_not_know() -> None:
    group = GroupWorld(3, others=1)
    group.run(20)
    group.world.crash(0)
    group.run(DETECTED_MS)
    group[3].views.join(())  # it sends, and has no vote
    _let_others_leave(group)
    assert group.members(3) == (3,)
    group.world.crash(1)
    group.world.crash(2)
    group.world.restart(0)
    group.run(DETECTED_MS)
    assert group.members(0) == group.members(3) == (0, 3)

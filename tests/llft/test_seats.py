"""Replicas join their group and leave it on behalf of their applications: what nodes say and hear."""

import pytest

from ordercast.core import MILLISECOND, Deployment, Joined, Left, LocalError, RemoteError, ServiceSpec, View
from ordercast.kernel.memberships import Memberships
from ordercast.replication.llft.messages import Heartbeat, Progress, SeatAsk
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.orders import OrderLog, SeatOrder
from ordercast.replication.llft.protocol import deploy
from ordercast.replication.llft.seats import Seats
from ordercast.replication.llft.standing import Standing
from tests.llft.lab import Lab, kinds
from tests.llft.mutants import Mutant
from tests.llft.plays import Play
from tests.llft.plays_seats import MUTANTS, SEATED, joined
from tests.story import Story

OPTIONS = LlftOptions()
DETECT_MS, BEAT_MS = OPTIONS.detect_ns / MILLISECOND, OPTIONS.heartbeat_ns / MILLISECOND
JOIN_MS = 6 * BEAT_MS
"""Who asks to join has joined after so long."""
TYPES = pytest.mark.parametrize("replication", ["semi-active", "semi-passive"])


def seats(lab: Lab, node: int = 0) -> list[int]:
    """Who has a seat, as a replica knows it."""
    return sorted(lab.replica(node).performer.seats.since)


@pytest.mark.parametrize("play", SEATED, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Play) -> None:
    assert play() == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_breaks_a_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, attribute, value in ((mutant.owner, mutant.attribute, mutant.value), *mutant.also):
        monkeypatch.setattr(owner, attribute, value)
    assert mutant.breaks in mutant.play()


# Seats


def test_seats_follow_the_order() -> None:
    log, seated = OrderLog(), Seats(7, (0, 1))
    for place, entry in enumerate((SeatOrder(7, True), SeatOrder(0, False)), 1):
        log.append(entry)
        assert seated.after(log, 0, place) == {0, 1, 7} - ({0} if place == 2 else set())
    seated.silent = True
    assert seated.change(1, SeatOrder(7, True)) and not seated.silent
    assert not seated.change(2, SeatOrder(0, False))
    assert seated.since == {1: 0, 7: 1} and seated.changed_at == 2
    assert not seated.change(3, SeatOrder(7, False)) and seated.left_at == 3
    seated.restore({}, 0, 0)
    assert seated.since == {0: 0, 1: 0}, "a state in which nobody has moved does not list them"


def test_a_stranger_gets_no_seat() -> None:
    """Only the nodes of the plan can be in a group."""
    lab = Lab()
    with pytest.raises(RemoteError, match="place 1 is about node 3, which cannot join this group"):
        lab.replica(1).performer.step(1, SeatOrder(3, True))


def test_receivers_that_come_later_are_dealt_out_to_the_groups() -> None:
    """A replica has the service of one group, and stays with it."""
    plan = deploy(Deployment(((0, 1), (2,)), 1, joiners=3, service=ServiceSpec("story", Story)), OPTIONS)
    assert plan.joiners == (3, 4, 5) and plan.homes == {0: 0, 1: 0, 2: 1, 3: 0, 4: 1, 5: 0}
    lab = Lab(groups=2, joiners=1)
    with pytest.raises(LocalError, match="node 6 can only be in group 0, not in group 1"):
        Memberships(lab.plan, 6).ask(lab.receiver(6), "join", 1)


# Joining


def test_a_receiver_outside_sends_and_keeps_nothing() -> None:
    lab = Lab(joiners=1)
    lab.call("a")
    lab.wait_ms(4 * BEAT_MS)
    assert lab.receiver(3).replica is None and not lab.receiver(3).joined
    assert all(source != 3 for source, _, _ in lab.sent)
    assert all(to != 3 for _, to, _ in lab.sent_of(Heartbeat)), "nobody counts on it"
    assert lab.receiver(3).explain().state == {"role": "outside group 0"}


@TYPES
def test_a_newcomer_is_told_the_place_from_which_it_receives_the_group(replication: str) -> None:
    """It gets the state first; its application hears of the group from its seat on, in the present view."""
    lab = Lab(joiners=1, replication=replication)
    lab.call("a")
    lab.join(3)
    assert lab.receiver(3).explain().waits[0].subject == "membership"
    assert [wait.subject for wait in lab.receiver(3).explain().waits][-1] == "joining"
    lab.wait_ms(JOIN_MS)
    lab.call("b")
    lab.wait_ms(2 * BEAT_MS)
    told, view = lab.history.notices[3]
    assert isinstance(told, Joined) and isinstance(view, View) and view.begins_anew
    assert told.stamp is not None and told.stamp.clock == lab.replica(0).performer.seats.since[3]
    assert lab.delivered(3) == ["b"] and tuple(lab.receiver(3).joined) == (0,)
    assert replication == "semi-passive" or lab.told(3) == ["a", "b"], "it has the state of what was before"
    assert seats(lab) == seats(lab, 3) == [0, 1, 2, 3]
    assert lab.replica(3).explain().state["seats"] == "node 0, node 1, node 2, node 3"
    assert lab.finish() == set()


def test_the_next_seat_changes_when_the_last_change_is_settled() -> None:
    """So majorities before and after a change always meet."""
    lab = Lab(joiners=2, require_majority=True, detect_ns=1000 * MILLISECOND)
    lab.lost = lambda source, to, message: isinstance(message, Progress) and source in (1, 2)
    lab.join(3)
    lab.join(4)
    lab.wait_ms(10 * JOIN_MS)
    assert len(seats(lab)) == 4, "two of four have it, so it is not settled"
    assert len(lab.receiver(3).joined) + len(lab.receiver(4).joined) == 0
    lab.heal()
    lab.wait_ms(JOIN_MS)
    assert seats(lab) == [0, 1, 2, 3, 4]
    assert lab.finish() == set()


def test_majorities_are_of_those_with_a_seat() -> None:
    """Of three, two are a majority; when a fourth has joined, they are none."""
    lab = Lab(joiners=1, require_majority=True)
    lab.isolate(2)
    lab.call("a")
    assert "a" in lab.answers()
    lab.heal()
    joined(lab, 3)
    lab.cut((0, 1, 4), (2, 3))
    lab.call("b")
    lab.wait_ms(3 * DETECT_MS)
    assert "b" not in lab.answers()
    assert lab.finish() == set() and "b" in lab.answers()


def test_who_joined_is_in_the_group_after_a_restart() -> None:
    """Who had only asked is not, and asks again."""
    lab = joined(Lab(joiners=2), 3)
    lab.join(4)
    assert not lab.receiver(4).joined
    lab.crash(3, 4)
    lab.start(3, 4)
    lab.wait_ms(2 * JOIN_MS)
    assert lab.standing(3) is Standing.BACKUP and lab.receiver(3).joined
    assert lab.receiver(4).replica is None and 4 not in seats(lab)
    assert sum(isinstance(one, Joined) for one in lab.history.notices[3]) == 1, "it never left"
    assert lab.finish() == set()


def test_who_joined_on_a_side_branch_is_told_again() -> None:
    """Its seat is undone with all that its side did; it takes another one on the branch that survives."""
    lab = Lab(joiners=1, clients=2)
    lab.cut((0, 3, 4), (1, 2, 5))
    lab.join(3)
    lab.call("a")
    lab.wait_ms(6 * DETECT_MS)
    lab.call("b", 1)
    assert lab.receiver(3).joined and lab.primary() == 1
    lab.heal()
    lab.wait_ms(10 * JOIN_MS)
    places = [one.stamp for one in lab.history.notices[3] if isinstance(one, Joined)]
    assert len(places) == 2 and None not in places and places[0] != places[1]
    assert 3 in [node for node, _ in lab.history.undone]
    assert lab.finish() == set()


# Leaving


@TYPES
def test_a_backup_leaves_at_a_place(replication: str) -> None:
    """It delivers everything up to there, and is no member afterwards."""
    lab = Lab(replication=replication)
    lab.call("a")
    lab.leave(2)
    lab.call("b")
    lab.wait_ms(JOIN_MS)
    lab.call("c")
    left = lab.history.notices[2][-1]
    assert isinstance(left, Left) and left.stamp is not None and lab.receiver(2).replica is None
    heard = [one for part in lab.history.lives[2].stretches for one in part]
    assert [one.text for one in heard] == ["a", "b"] and heard[-1].place < left.stamp.clock
    assert lab.members(0) == (0, 1) and seats(lab) == [0, 1]
    before = len(lab.sent)
    lab.wait_ms(4 * BEAT_MS)
    assert all(
        2 not in (source, to) for source, to, message in lab.sent[before:] if isinstance(message, Heartbeat)
    )
    assert lab.finish() == set()


@pytest.mark.parametrize("require_majority", [False, True])
def test_a_primary_that_leaves_hands_over(require_majority: bool) -> None:
    """The next in precedence takes over at once: nobody waits until it misses the old one."""
    lab = Lab(require_majority=require_majority)
    lab.call("a")
    lab.leave(0)
    lab.wait_ms(JOIN_MS, until=lambda: not lab.receiver(0).joined)
    left = lab.now
    lab.call("b")
    assert lab.wait_ms(BEAT_MS, until=lambda: lab.primary() == 1)
    assert lab.now - left < OPTIONS.heartbeat_ns
    lab.wait_ms(2 * BEAT_MS)
    assert lab.answers()["b"] == "a b" and not lab.history.undone
    assert lab.finish() == set()


def test_a_primary_that_leaves_stops_ordering_until_backups_have_everything() -> None:
    lab = Lab(detect_ns=1000 * MILLISECOND)
    lab.lost = lambda source, to, message: (
        isinstance(message, Progress)
        and source == 2
        and message.performed > lab.replica(0).performer.notices.settled
    )
    lab.call("a")
    lab.leave(0)
    lab.wait_ms(4 * BEAT_MS)
    lab.call("b")
    assert "b" in lab.answers() and lab.receiver(0).joined, "its leave is not settled yet: it works on"
    lab.heal()
    lab.wait_ms(JOIN_MS)
    assert not lab.receiver(0).joined and lab.primary() == 1
    assert lab.finish() == set()


def test_the_last_one_stays_until_another_has_the_state() -> None:
    lab = Lab(1, joiners=1)
    lab.leave(0)
    lab.wait_ms(10 * JOIN_MS)
    lab.call("a")
    assert "a" in lab.answers() and lab.receiver(0).joined
    wait = next(one for one in lab.receiver(0).explain().waits if one.subject == "leaving")
    assert wait.blocker == "another replica in the group that has the state"
    lab.join(1)
    lab.wait_ms(4 * JOIN_MS)
    assert not lab.receiver(0).joined and lab.primary() == 1 and lab.told(1) == ["a"]
    assert lab.finish() == set()


def test_who_left_on_a_side_branch_has_left() -> None:
    """The branch that survives still counts on it, and learns that it is gone."""
    lab = Lab(4, clients=2)
    lab.cut((0, 1, 4), (2, 3, 5))
    lab.leave(1)
    lab.wait_ms(10 * DETECT_MS)
    assert not lab.receiver(1).joined and 1 in seats(lab, 2)
    lab.heal()
    lab.wait_ms(10 * JOIN_MS)
    assert seats(lab, 2) == [0, 2, 3] and not lab.receiver(1).joined
    assert lab.finish() == set()


def test_an_old_farewell_does_not_end_a_new_seat() -> None:
    """It names the place up to which it counts."""
    lab = Lab()
    lab.leave(2)
    lab.wait_ms(JOIN_MS)
    lab.hold = kinds(SeatAsk, source=2)
    lab.give(0, 2, lab.sent_of(Heartbeat)[-1][2])
    lab.pump()
    late = list(lab.held)
    lab.held.clear()
    lab.hold = lambda source, to, message: False
    joined(lab, 2)
    assert late and 2 in seats(lab)
    lab.held = late
    lab.release()
    lab.wait_ms(JOIN_MS)
    assert 2 in seats(lab) and lab.receiver(2).joined
    assert lab.finish() == set()


def test_who_leaves_hears_of_everything_until_it_goes() -> None:
    """Its seat has ended. But what it performs afterwards, perhaps no other replica will ever deliver: others
    may take over a state of it."""
    lab = Lab(require_majority=True, detect_ns=1000 * MILLISECOND)
    lab.lost = kinds(Progress, source=1)
    lab.leave(2)
    lab.wait_ms(4 * BEAT_MS)
    lab.call("a")
    assert seats(lab, 2) == [0, 1] and "a" not in lab.answers(), "of two, both are a majority"
    lab.heal()
    lab.wait_ms(JOIN_MS)
    left, heard = lab.history.notices[2][-1], [one for part in lab.history.lives[2].stretches for one in part]
    assert isinstance(left, Left) and left.stamp is not None and [one.text for one in heard] == ["a"]
    assert left.stamp.clock == heard[0].place
    assert lab.finish() == set()


def test_who_has_not_joined_yet_lets_others_become_primary_first() -> None:
    """If nobody else can, it does, and orders what comes when it has a seat."""
    lab = Lab(1, joiners=1)
    lab.lost = kinds(SeatAsk)
    lab.join(1)
    lab.wait_ms(JOIN_MS)
    assert lab.standing(1) is Standing.BACKUP and not lab.receiver(1).joined
    lab.crash(0)
    lab.heal()
    lab.call("a")
    lab.wait_ms(5 * DETECT_MS)
    assert lab.standing(1) is Standing.BACKUP
    lab.wait_ms(OPTIONS.regroup_ns / MILLISECOND)
    assert lab.primary() == 1 and lab.receiver(1).joined
    lab.wait_ms(10 * BEAT_MS)
    assert lab.delivered(1) == ["a"] and lab.answers() == {"a": "a"}
    assert lab.finish() == set()

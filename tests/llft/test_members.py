"""Backups come and go: each handler of Figure 10, with what section IV.C says about it."""

import pytest

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import (
    AcceptBackup,
    Copy,
    Heartbeat,
    MembersAck,
    Progress,
    ProposeBackup,
    RemoveBackup,
    Reply,
    Request,
    State,
    StateAsk,
    StateOffer,
)
from ordercast.replication.llft.names import Link
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.standing import Standing
from tests.llft.lab import Lab, kinds

OPTIONS = LlftOptions()
DETECT_MS, BEAT_MS = OPTIONS.detect_ns / MILLISECOND, OPTIONS.heartbeat_ns / MILLISECOND
JOIN_MS = 12 * BEAT_MS
"""A backup that is down for so long was removed, and one that comes back has joined."""


def link_of(message: Request | Copy) -> Link:
    """The connection of a message."""
    return message.link if isinstance(message, Copy) else message.head.link


def restarted(lab: Lab, node: int) -> None:
    """A process crashes and comes back at once, as a new process."""
    lab.crash(node)
    lab.start(node)


# The newcomer


def test_a_newcomer_asks_with_a_new_birth_id_in_each_life() -> None:
    """Lines 1 to 9: a recovering process is a new process with a new identity (section II.B)."""
    lab = Lab()
    lab.crash(0, 1)
    restarted(lab, 2)
    lab.wait_ms(2 * BEAT_MS)
    restarted(lab, 2)
    lab.wait_ms(2 * BEAT_MS)
    births = {message.birth for _, _, message in lab.sent_of(ProposeBackup)}
    assert len(births) == 2 and {source for source, _, _ in lab.sent_of(ProposeBackup)} == {2}
    assert lab.count(ProposeBackup) > 2 * len(births), "it asks again"


def test_a_newcomer_that_hears_nobody_does_not_found_a_group() -> None:
    """Line 11 would let it be the first member. Two that start together would both be, and a newcomer that
    is cut off would have no state, and the same precedence as the first member of the others."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.isolate(1, 2)
    restarted(lab, 1)
    restarted(lab, 2)
    lab.wait_ms(3000)
    assert lab.standing(1) is lab.standing(2) is Standing.OUTSIDE
    assert lab.primary() == 0
    (wait,) = lab.replica(2).explain().waits
    assert wait.blocker == "a primary that admits it"
    assert lab.finish() == set() and lab.history.undone == []


def test_a_newcomer_takes_the_place_that_the_primary_gives_it() -> None:
    """Lines 15 to 19, 22 to 26: its precedence is above all that were given before."""
    lab = Lab()
    restarted(lab, 1)
    lab.wait_ms(JOIN_MS)
    assert lab.members(0) == (0, 2, 1)
    assert lab.replica(0).membership.members == lab.replica(1).membership.members == (0, 2, 4)
    restarted(lab, 1)
    lab.wait_ms(JOIN_MS)
    assert lab.replica(0).membership.members == (0, 2, 7)
    assert lab.finish() == set()


def test_an_acceptance_of_an_earlier_life_is_ignored() -> None:
    """Line 15."""
    lab = Lab()
    lab.hold = kinds(AcceptBackup, to=1)
    restarted(lab, 1)
    lab.wait_ms(BEAT_MS)
    assert lab.held
    lab.isolate(1)
    lab.wait_ms(BEAT_MS)
    restarted(lab, 1)
    lab.release()
    assert lab.standing(1) is Standing.OUTSIDE
    assert lab.finish() == set()


def test_a_proposal_that_comes_twice_gives_one_precedence() -> None:
    """Line 22."""
    lab = Lab()
    lab.lost = kinds(AcceptBackup)
    restarted(lab, 1)
    lab.wait_ms(4 * BEAT_MS)
    assert lab.count(ProposeBackup) >= 3 * 2
    assert {message.precedence for _, _, message in lab.sent_of(AcceptBackup)} == {4}
    assert lab.finish() == set()


def test_a_newcomer_gets_the_state_and_the_messages_of_its_log() -> None:
    """Lines 20, 21 and 1: requests that came since it started are performed after the state."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    restarted(lab, 2)
    lab.lost = kinds(State)
    lab.call("b")
    lab.wait_ms(6 * BEAT_MS)
    assert lab.standing(2) is Standing.ADMITTED and lab.told(2) == []
    (wait,) = lab.replica(2).explain().waits
    assert (wait.blocker, wait.on) == ("the state of the primary", (0,))
    lab.call("c")
    lab.heal()
    lab.wait_ms(3 * BEAT_MS)
    assert lab.standing(2) is Standing.BACKUP and lab.told(2) == ["a", "b", "c"]
    assert lab.finish() == set()


def test_a_newcomer_that_has_the_state_can_be_the_primary() -> None:
    """With the client table: what was answered before it joined is not performed again."""
    lab = Lab()
    lab.call("a")
    lab.lost = kinds(Reply)
    lab.call("b")
    lab.wait_ms(5)
    restarted(lab, 1)
    lab.wait_ms(JOIN_MS)
    lab.crash(0, 2)
    lab.heal()
    lab.wait_ms(4 * DETECT_MS)
    assert lab.primary() == 1 and lab.told(1) == ["a", "b"]
    assert lab.answers() == {"a": "a", "b": "a b"}
    assert lab.finish() == set()


def test_a_large_state_comes_in_parts() -> None:
    lab = Lab()
    for turn in range(6):
        lab.call(f"{turn}" * 40_000)
        lab.wait_ms(3)
    restarted(lab, 2)
    lab.wait_ms(JOIN_MS)
    assert len({message.part for _, _, message in lab.sent_of(State)}) >= 4
    assert lab.told(2) == lab.told(0)
    assert lab.finish() == set()


@pytest.mark.parametrize(
    "kind", [StateOffer, StateAsk, State, MembersAck, AcceptBackup, ProposeBackup, Progress]
)
def test_a_join_goes_on_when_a_message_of_it_is_lost(kind: type) -> None:
    lab = Lab()
    lab.call("a" * 100_000)
    lab.wait_ms(20)
    restarted(lab, 2)
    lab.lose(kinds(kind), 3)
    lab.call("b")
    lab.wait_ms(2 * JOIN_MS)
    assert lab.standing(2) is Standing.BACKUP and lab.told(2) == lab.told(0)
    assert lab.finish() == set()


# The primary


@pytest.mark.parametrize(("node", "factor"), [(1, 1), (2, 3)])
def test_a_primary_waits_for_a_backup_as_long_as_its_rank_wants_it(node: int, factor: int) -> None:
    """Lines 27 to 29; section IV: the ranks "determine the timeouts for detection of faults in the primary
    or the backups"."""
    lab = Lab()
    lab.isolate(node)
    silent = lab.now
    assert lab.wait_ms(1000, until=lambda: node not in lab.members(0))
    waited = (lab.now - silent) / MILLISECOND
    assert factor * DETECT_MS - BEAT_MS <= waited <= factor * DETECT_MS + 2 * BEAT_MS
    other = 3 - node
    assert lab.members(other) == (0, other) and lab.replica(0).membership.rank(other) == 2
    assert lab.finish() == set()


def test_a_change_is_repeated_until_all_members_know_of_it() -> None:
    """Lines 30 to 32, 37 and 38."""
    lab = Lab(4)
    lab.crash(3)
    lab.lose(kinds(RemoveBackup), 3)
    lab.wait_ms(8 * DETECT_MS)
    assert lab.members(1) == lab.members(2) == (0, 1, 2), "a heartbeat says it, too"
    assert lab.finish() == set()


def test_a_member_that_does_not_confirm_a_change_is_excluded() -> None:
    """Lines 33 to 36."""
    lab = Lab(4)
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, MembersAck | Progress)
    restarted(lab, 3)
    excluded = lambda: any(2 not in message.members for _, _, message in lab.sent_of(RemoveBackup))  # noqa: E731
    assert not lab.wait_ms((OPTIONS.attempts - 1) * BEAT_MS, until=excluded)
    assert lab.wait_ms(3 * BEAT_MS, until=excluded)
    assert lab.finish() == set()


def test_the_checkpoint_is_taken_when_all_members_have_confirmed() -> None:
    """Lines 39 to 42: "The point at which the checkpoint is taken represents the virtual synchrony point"."""
    lab = Lab(4, attempts=1000)
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, MembersAck | Progress)
    restarted(lab, 3)
    lab.wait_ms(5 * BEAT_MS)
    assert lab.standing(3) is Standing.ADMITTED and lab.count(StateOffer) == 0
    lab.heal()
    lab.wait_ms(2 * BEAT_MS)
    assert lab.count(StateOffer) > 0 and lab.standing(3) is Standing.BACKUP
    assert lab.finish() == set()


def test_no_state_is_handed_over_of_which_no_application_was_told() -> None:
    """If all others then crash, nobody would ever say that this happened: the newcomer counts it as told."""
    lab = Lab(4, attempts=1000)
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, Progress)
    lab.call("a")
    restarted(lab, 3)
    lab.give(2, 0, MembersAck(lab.replica(0).view, 2, 1))
    lab.wait_ms(5 * BEAT_MS)
    assert lab.replica(0).performer.place > lab.replica(0).performer.notices.settled
    assert lab.standing(3) is Standing.ADMITTED and lab.count(StateOffer) == 0
    lab.heal()
    lab.wait_ms(3 * BEAT_MS)
    assert lab.standing(3) is Standing.BACKUP and lab.count(StateOffer) > 0
    assert lab.finish() == set()


def test_backups_update_their_members_and_confirm() -> None:
    """Lines 43 to 45."""
    lab = Lab(4)
    lab.crash(3)
    lab.wait_ms(6 * DETECT_MS)
    confirmed = {(source, message.change) for source, _, message in lab.sent_of(MembersAck)}
    assert confirmed == {(1, 1), (2, 1)}
    assert all(lab.replica(node).membership.change == 1 for node in (0, 1, 2))


def test_a_backup_that_was_removed_by_mistake_rejoins_under_a_new_precedence() -> None:
    """Line 46, and section II.F."""
    lab = Lab()
    lab.call("a")
    lab.lost = lambda source, to, message: source == 1 and to < 3
    lab.wait_ms(DETECT_MS + BEAT_MS)
    assert lab.members(0) == (0, 2) and lab.standing(1) is Standing.OUTSIDE
    assert lab.replica(1).why_outside == "the primary has removed it"
    lab.call("b")
    lab.heal()
    lab.wait_ms(JOIN_MS)
    assert lab.replica(0).membership.members == (0, 2, 4) and lab.told(1) == ["a", "b"]
    assert lab.finish() == set() and lab.history.undone == []


def test_a_process_that_was_paused_does_not_suspect_others() -> None:
    """It could not hear anybody; the primary was not silent."""
    lab = Lab()
    lab.pause(0)
    lab.wait_ms(DETECT_MS - 2 * BEAT_MS)
    lab.resume(0)
    lab.wait_ms(100)
    assert lab.members(0) == (0, 1, 2) and lab.count(RemoveBackup) == 0


def test_a_primary_that_is_left_alone_goes_on() -> None:
    lab = Lab()
    lab.call("a")
    lab.crash(1, 2)
    lab.call("b")
    lab.wait_ms(4 * DETECT_MS)
    lab.call("c")
    assert lab.answers()["c"] == "a b c"
    assert lab.delivered(0) == ["a", "b", "c"], "it is settled: nobody else could lack it"
    assert lab.finish() == set()


def test_a_newcomer_gets_messages_that_all_others_had_received_before() -> None:
    """The primary waits for a backup, so it has not delivered them where the state is taken. When it does,
    it may not forget them yet."""
    lab = Lab(clients=2, behind_max=2)
    for client in (0, 1):
        lab.call(f"first{client}", client)
    lab.wait_ms(40)
    link = lab.connection(0).link
    lab.lost = lambda source, to, message: (
        (to == 1 and isinstance(message, Request | Copy) and link_of(message) == link)
        or (to == 2 and isinstance(message, Copy))
    )
    lab.call("a", 0)
    for turn in range(4):
        lab.call(f"b{turn}", 1)
    lab.wait_ms(20)
    assert lab.told(0) == ["first0", "first1", "a", "b0"], "the backup lacks a"
    restarted(lab, 2)
    lab.wait_ms(JOIN_MS)
    lab.lost = kinds(Copy, to=2)
    lab.wait_ms(20)
    lab.heal()
    lab.wait_ms(60)
    assert lab.told(2) == lab.told(0) == ["first0", "first1", "a", "b0", "b1", "b2", "b3"]
    assert lab.finish() == set()


def test_a_newcomer_without_a_state_does_not_count_as_slow() -> None:
    """The backup that holds the group up is removed, not the one that still fetches its state."""
    lab = Lab(behind_max=2, slow_backup="remove")
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: (
        (to == 1 and isinstance(message, State)) or (to == 2 and isinstance(message, Request | Copy))
    )
    restarted(lab, 1)
    for turn in range(6):
        lab.call(f"b{turn}")
    lab.wait_ms(500)
    assert len(lab.told(0)) == 7
    assert {message.members for _, _, message in lab.sent_of(RemoveBackup)} >= {(0, 2), (0, 4)}
    assert lab.finish() == set()


def test_the_primary_crashes_while_a_backup_joins() -> None:
    lab = Lab()
    lab.call("a")
    restarted(lab, 2)
    lab.lost = kinds(State)
    lab.wait_ms(4 * BEAT_MS)
    assert lab.standing(2) is Standing.ADMITTED
    lab.crash(0)
    lab.heal()
    lab.call("b")
    lab.wait_ms(8 * DETECT_MS)
    assert lab.primary() == 1 and lab.standing(2) is Standing.BACKUP
    assert lab.told(1) == lab.told(2) == ["a", "b"]
    assert lab.finish() == set()


def test_a_heartbeat_of_a_view_without_it_excludes_a_replica() -> None:
    lab = Lab()
    lab.crash(0)
    lab.lost = lambda source, to, message: to == 2 and not isinstance(message, Heartbeat)
    lab.wait_ms(2 * DETECT_MS + 8 * BEAT_MS, until=lambda: lab.standing(2) is Standing.OUTSIDE)
    assert lab.replica(2).why_outside == "view 1 of primary 1 has begun without it"
    assert lab.finish() == set()


# Semi-passive replication


def test_the_example_of_two_clients() -> None:
    """Section II.E: the update of the first client's request has reached the backups with the state after the
    second one; the reply to the first client was never sent. The new primary must not perform it again."""
    lab = Lab(clients=2, replication="semi-passive", update_every=1)
    lab.call("a", 0)
    lab.wait_ms(4 * BEAT_MS)
    lab.lost = kinds(Reply, to=3)
    lab.call("first", 0)
    lab.call("second", 1)
    assert lab.answers() == {"a": "a", "second": "a first second"}
    lab.wait_ms(4 * BEAT_MS)
    assert lab.told(1) == ["a", "first", "second"], "a state of the primary"
    lab.crash(0)
    lab.heal()
    lab.wait_ms(3 * DETECT_MS)
    assert lab.primary() == 1 and lab.told(1) == ["a", "first", "second"]
    assert lab.answers()["first"] == "a first"
    assert lab.finish() == set()


def test_a_semi_passive_backup_performs_nothing_until_it_is_the_primary() -> None:
    """Section II.E: it "receives and logs incoming messages, and updates its state, but does not perform the
    operations"."""
    lab = Lab(replication="semi-passive", update_every=100)
    for text in ("a", "b", "c"):
        lab.call(text)
        lab.wait_ms(10)
    assert lab.told(1) == lab.told(2) == [] and lab.replica(1).performer.place == 3
    assert lab.delivered(1) == ["a", "b", "c"], "it has logged them at their places"
    lab.crash(0)
    lab.wait_ms(2 * DETECT_MS)
    assert lab.primary() == 1 and lab.told(1) == ["a", "b", "c"] and lab.told(2) == []
    assert lab.finish() == set()


@pytest.mark.parametrize("update_every", [1, 2, 3])
def test_a_semi_passive_backup_goes_on_from_the_last_state(update_every: int) -> None:
    lab = Lab(clients=2, replication="semi-passive", update_every=update_every)
    for turn in range(10):
        lab.call(f"a{turn}", turn % 2)
        lab.wait_ms(3)
    assert 0 < len(lab.told(2)) <= 10
    lab.lost = kinds(StateOffer, StateAsk, State)
    lab.call("b", 0)
    lab.call("c", 1)
    lab.lost = lambda source, to, message: isinstance(message, Request) and to == 0
    lab.crash(0, 1)
    lab.wait_ms(6 * DETECT_MS)
    assert lab.primary() == 2 and lab.told(2) == [*(f"a{turn}" for turn in range(10)), "b", "c"]
    assert lab.finish() == set()

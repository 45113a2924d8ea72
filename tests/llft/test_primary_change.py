"""The change of the primary: each handler of Figure 9, with what section IV.B says about it."""

import pytest

from ordercast.core import MILLISECOND, Message, NodeId
from ordercast.replication.llft.messages import (
    Accept,
    Heartbeat,
    Nack,
    NewPrimaryView,
    ProposePrimary,
    Reply,
    Request,
    Superseded,
    ViewAck,
)
from ordercast.replication.llft.names import ViewId
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.orders import ViewOrder
from ordercast.replication.llft.standing import Standing
from tests.llft.lab import Lab, kinds

OPTIONS = LlftOptions()
DETECT_MS, BEAT_MS = OPTIONS.detect_ns / MILLISECOND, OPTIONS.heartbeat_ns / MILLISECOND
QUERY_MS = OPTIONS.query_ns / MILLISECOND


def proposals(lab: Lab) -> list[tuple[NodeId, tuple[int, ...]]]:
    """Who proposed which members, each once."""
    found = ((source, message.members) for source, _, message in lab.sent_of(ProposePrimary))
    return list(dict.fromkeys(found))


def between_replicas(source: NodeId, to: NodeId, message: Message) -> bool:
    return source < 3 and to < 3


# The first phase


@pytest.mark.parametrize(("node", "factor"), [(1, 1), (2, 3)])
def test_a_backup_waits_as_long_as_its_rank_wants_it(node: NodeId, factor: int) -> None:
    """Lines 1 to 9 and section IV: rank 2 waits 10 ms, rank 3 waits 30 ms, for instance."""
    lab = Lab()
    lab.crash(*(other for other in (0, 1) if other != node))
    silent = lab.now
    assert lab.wait_ms(1000, until=lambda: lab.standing(node) is not Standing.BACKUP)
    waited = (lab.now - silent) / MILLISECOND
    assert factor * DETECT_MS - BEAT_MS <= waited <= factor * DETECT_MS + 2 * BEAT_MS


def test_a_proposer_leaves_out_the_old_primary_and_lower_precedences() -> None:
    """Line 4: a backup of lower precedence did not act in time, and is declared faulty."""
    lab = Lab(4)
    lab.crash(0, 1)
    lab.wait_ms(4 * DETECT_MS)
    assert proposals(lab) == [(2, (2, 3))]
    assert lab.primary() == 2 and lab.members(3) == (2, 3)
    assert lab.finish() == set()


def test_a_proposal_is_repeated_until_all_accept() -> None:
    """Lines 7, 12 and 13."""
    lab = Lab()
    lab.crash(0)
    lab.lose(kinds(Accept), 3)
    lab.wait_ms(2 * DETECT_MS)
    assert proposals(lab) == [(1, (1, 2))] and lab.count(ProposePrimary) == 4 * 2
    assert lab.primary() == 1 and lab.members(1) == (1, 2)
    assert lab.finish() == set()


def test_a_member_that_stays_silent_is_left_out() -> None:
    """Lines 10 and 11: so one replica that is left goes on without waiting for anyone."""
    lab = Lab()
    lab.crash(0, 2)
    lab.call("a")
    lab.wait_ms(DETECT_MS + (OPTIONS.attempts + 3) * BEAT_MS)
    assert proposals(lab) == [(1, (1, 2))]
    assert lab.primary() == 1 and lab.members(1) == (1,)
    assert lab.answers() == {"a": "a"}
    assert lab.finish() == set()


def test_a_member_accepts_and_hands_over_what_it_has() -> None:
    """Lines 17 to 24: the acknowledgement of a member, which may know more of the order than the proposer."""
    lab = Lab()
    lab.lost = lambda source, to, message: to == 1 and not isinstance(message, Request)
    lab.call("a")
    lab.wait_ms(5)
    assert lab.told(2) == ["a"] and lab.told(1) == []
    lab.crash(0, 3)
    lab.heal()
    lab.replica(1).heard_at -= 1000 * MILLISECOND
    lab.wait_ms(4 * BEAT_MS)
    accepted = next(message.orders for source, _, message in lab.sent_of(Accept) if source == 2)
    assert (accepted.after, accepted.end) == (0, 1)
    assert lab.told(1) == ["a"]
    assert lab.finish() == set()


def test_a_replica_that_is_left_out_resets_and_rejoins() -> None:
    """Line 25: under a new precedence."""
    lab = Lab()
    lab.call("a")
    lab.crash(0)
    lab.pause(1)
    lab.wait_ms(4 * DETECT_MS)
    assert lab.primary() == 2 and lab.members(2) == (2,)
    lab.resume(1)
    assert lab.standing(1) is Standing.OUTSIDE
    lab.wait_ms(10 * BEAT_MS)
    assert lab.members(2) == lab.members(1) == (2, 1)
    assert lab.replica(1).precedence == 4
    assert lab.finish() == set()


def test_of_two_proposers_the_one_of_higher_precedence_goes_on() -> None:
    """Section IV: "the backup with the lower precedence gives up and the backup with the higher precedence
    continues". Figure 9 would reset both if each left the other out; here one of them keeps the state."""
    lab = Lab(attempts=1000)
    lab.call("a")
    lab.wait_ms(10)
    lab.crash(0)
    lab.cut((1,), (2,))
    lab.wait_ms(4 * DETECT_MS)
    assert proposals(lab) == [(1, (1, 2)), (2, (2,))]
    lab.heal()
    lab.wait_ms(20 * BEAT_MS)
    assert lab.primary() == 2 and lab.told(2) == ["a"]
    assert lab.members(1) == lab.members(2) == (2, 1)
    assert lab.finish() == set()


def test_a_proposal_of_a_lower_precedence_is_refused() -> None:
    """Section IV.B: a backup that has acknowledged a proposal of a higher precedence accepts no lower one."""
    lab = Lab(4, attempts=1000)
    lab.crash(0)
    lab.cut((1,), (2, 3))
    lab.lost = lambda source, to, message: isinstance(message, Accept)
    lab.wait_ms(4 * DETECT_MS)
    assert lab.standing(1) is lab.standing(2) is Standing.PROPOSER
    assert lab.replica(3).promised == ViewId(2, 1)
    lab.heal()
    lab.lost = lambda source, to, message: source == 2 and not isinstance(message, Heartbeat)
    lab.wait_ms(BEAT_MS)
    assert [to for source, to, _ in lab.sent_of(Superseded) if source == 3] == [1]
    assert lab.standing(1) is Standing.OUTSIDE
    assert lab.finish() == set()


def test_a_proposer_of_an_older_state_does_not_replace_a_later_one() -> None:
    """A replica that comes back from a long separation would take the work of the others with it."""
    lab = Lab(4, attempts=8)
    lab.call("a")
    lab.wait_ms(10)
    lab.crash(0)
    lab.isolate(2)
    lab.wait_ms(DETECT_MS + 11 * BEAT_MS)
    assert lab.primary() == 1 and lab.members(1) == (1, 3)
    lab.call("b")
    lab.wait_ms(10)
    assert lab.standing(2) is Standing.PROPOSER and lab.told(2) == ["a"]
    lab.heal()
    lab.wait_ms(2 * BEAT_MS)
    assert {source for source, to, _ in lab.sent_of(Superseded) if to == 2} == {1, 3}
    assert lab.primary() == 1 and lab.told(1) == ["a", "b"]
    assert lab.finish() == set() and lab.history.undone == []


# The second phase


def test_a_new_primary_asks_all_remote_groups() -> None:
    """Lines 28 and 29."""
    lab = Lab(groups=2, clients=2)
    lab.call("a", 0, group=0)
    lab.crash(0)
    lab.wait_ms(2 * DETECT_MS)
    asked = {(source, to) for source, to, message in lab.sent_of(NewPrimaryView) if not message.final}
    assert asked == {(1, to) for to in (3, 4, 5, 6, 7)}
    told = {(source, to) for source, to, message in lab.sent_of(NewPrimaryView) if message.final}
    assert told == asked
    assert lab.finish() == set()


def test_a_remote_primary_says_what_it_has_received_and_sent() -> None:
    """Lines 36 to 41: the last message received without a gap, the last one sent, the order."""
    lab = Lab()
    lab.call("a")
    lab.lost = lambda source, to, message: to != 0 and isinstance(message, Request)
    lab.call("b")
    lab.wait_ms(2)
    lab.lost = kinds(Request)
    lab.call("c")
    lab.crash(0)
    lab.wait_ms(DETECT_MS + BEAT_MS)
    (answer,) = {message for _, _, message in lab.sent_of(ViewAck)}
    (link,) = answer.links
    assert (link.received, link.sent) == (2, 3)
    assert answer.orders is not None and answer.orders.end == 2
    assert lab.finish() == set()


def test_a_remote_primary_discards_what_came_after_a_gap() -> None:
    """Line 38: those messages belong to the numbers of the old view."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.lose(kinds(Reply))
    lab.call("b")
    lab.call("c")
    lab.pause(0)
    end = lab.client().messaging.connections[lab.connection(1).link].incoming
    assert set(end.kept) == {3} and end.upto == 1
    lab.wait_ms(DETECT_MS)
    lab.wait_ms(2 * BEAT_MS, until=lambda: lab.count(ViewAck) > 0)
    assert end.view == ViewId(1, 1) and end.base == 1
    lab.wait_ms(20)
    assert lab.answers() == {"a": "a", "b": "a b", "c": "a b c"}
    assert lab.finish() == set()


def test_a_new_primary_asks_for_messages_that_it_lacks() -> None:
    """Line 30: the client still has a request that only the old primary has got."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: to in (1, 2) and isinstance(message, Request)
    lab.call("b")
    assert lab.answers()["b"] == "a b"
    lab.crash(0)
    lab.lost = lambda source, to, message: isinstance(message, Request) and lab.count(Nack, source=1) == 0
    lab.wait_ms(3 * DETECT_MS)
    assert (1, 3) in {(source, to) for source, to, _ in lab.sent_of(Nack)}
    assert lab.told(1) == ["a", "b"]
    assert lab.finish() == set()


def test_a_new_primary_gets_the_order_from_the_remote_group() -> None:
    """Lines 31 and 32: and reproduces what the old one did. No backup knew of it."""
    lab = Lab(clients=2)
    lab.hold = lambda source, to, message: source == 3 and to in (1, 2) and isinstance(message, Request)
    lab.call("a", 0)
    lab.call("b", 1)
    assert lab.answers() == {"a": "a", "b": "a b"}
    lab.crash(0)
    lab.release()
    lab.wait_ms(2 * DETECT_MS)
    assert lab.told(1) == lab.told(2) == ["a", "b"], "they have received b before a"
    assert lab.finish() == set()


def test_what_was_taken_before_an_answer_keeps_its_place() -> None:
    """Section III.C sends with a message only the entries of its connection. A primary that took a request
    of one client, then one of another, answered this one and died would leave a hole: its answer rests on
    the first request, whose place nobody knows."""
    lab = Lab(clients=2)
    lab.lost = lambda source, to, message: to == 3 and isinstance(message, Reply)
    lab.call("first", 0)
    lab.call("second", 1)
    assert lab.answers() == {"second": "first second"}
    lab.crash(0, 3)
    lab.heal()
    lab.call("third", 1)
    lab.wait_ms(4 * DETECT_MS)
    assert lab.told(1) == ["first", "second", "third"]
    assert lab.finish() == set()


def test_message_numbers_begin_again_in_a_new_view() -> None:
    """Line 33: on the wire they count from one in every view."""
    lab = Lab()
    lab.call("a")
    lab.call("b")
    lab.crash(0)
    lab.wait_ms(2 * DETECT_MS)
    lab.call("c")
    numbers = {
        (message.head.view.number, message.index - message.head.base) for _, _, message in lab.sent_of(Reply)
    }
    assert numbers == {(0, 1), (0, 2), (1, 1)}
    assert lab.answers()["c"] == "a b c"


def test_ranks_move_up_in_a_new_view() -> None:
    """Line 34."""
    lab = Lab()
    lab.crash(0)
    lab.wait_ms(2 * DETECT_MS)
    assert [lab.replica(2).membership.rank(one) for one in (1, 2)] == [1, 2]
    lab.crash(1)
    silent = lab.now
    lab.wait_ms(1000, until=lambda: lab.standing(2) is not Standing.BACKUP)
    assert (lab.now - silent) / MILLISECOND <= DETECT_MS + 2 * BEAT_MS


def test_backups_change_their_view_at_a_place_in_the_order() -> None:
    """Line 35: when they have performed everything that was ordered before."""
    lab = Lab()
    lab.call("a")
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request)
    lab.call("b")
    lab.wait_ms(3)
    lab.crash(0)
    lab.lost = lambda source, to, message: to == 2 and type(message).__name__ == "Copy"
    lab.wait_ms(2 * DETECT_MS)
    assert lab.primary() == 1
    behind = lab.replica(2)
    assert behind.view == ViewId(1, 1) and behind.performer.view == ViewId(0, 0)
    assert isinstance(behind.log.at(behind.begin), ViewOrder) and behind.performer.place == 1
    lab.heal()
    lab.wait_ms(30)
    assert behind.performer.view == ViewId(1, 1)
    began = [[view.stamp for view in lab.history.lives[node].views] for node in (1, 2)]
    assert began[0] == began[1] and len(began[0]) == 1
    assert lab.finish() == set()


def test_a_silent_remote_group_does_not_hold_a_new_primary_up_for_ever() -> None:
    lab = Lab(clients=2)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.wait_ms(10)
    lab.crash(0, 4)
    lab.wait_ms(DETECT_MS + QUERY_MS - BEAT_MS)
    assert lab.standing(1) is Standing.RECOVERING
    (wait,) = lab.replica(1).explain().waits
    assert wait.blocker == "what 1 remote groups know of the old primary" and wait.on == (4,)
    lab.wait_ms(4 * BEAT_MS)
    assert lab.primary() == 1
    assert lab.finish() == set()


def test_an_order_whose_message_is_lost_for_good_is_given_up() -> None:
    """Only the old primary and the client, which both crashed, had the request. No answer of it is left."""
    lab = Lab(clients=2)
    lab.call("a", 1)
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: source == 3 and to in (1, 2)
    lab.call("lost", 0)
    lab.lost = lambda source, to, message: to == 4 and isinstance(message, Reply)
    lab.call("b", 1)
    lab.heal()
    lab.crash(0, 3)
    lab.wait_ms(DETECT_MS + 4 * QUERY_MS)
    assert lab.primary() == 1 and lab.told(1)[:1] == ["a"] and "lost" not in lab.told(1)
    assert lab.finish() == set()


def test_an_old_primary_is_not_heard_any_more() -> None:
    """Lines 39 and 40: the remote group expects the new view only."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.pause(0)
    lab.call("b")
    lab.wait_ms(3 * DETECT_MS)
    assert lab.primary() in (0, 1) and lab.answers()["b"] == "a b"
    assert lab.replica(1).leads
    lab.blocked |= {(0, 1), (0, 2), (1, 0), (2, 0)}
    lab.call("c")
    lab.resume(0)
    lab.wait_ms(50)
    assert lab.answers()["c"] == "a b c"
    assert lab.standing(0) is Standing.OUTSIDE, "the client has told it"
    assert lab.finish() == set()


def test_a_view_is_not_begun_twice() -> None:
    lab = Lab()
    lab.crash(0)
    lab.wait_ms(DETECT_MS + 2 * BEAT_MS)
    (proposal,) = {message for _, _, message in lab.sent_of(ProposePrimary)}
    place = lab.replica(2).performer.place
    lab.give(1, 2, proposal)
    lab.pump()
    assert lab.standing(2) is Standing.BACKUP and lab.replica(2).performer.place == place
    assert lab.finish() == set()


def test_primaries_of_two_groups_crash_at_once() -> None:
    lab = Lab(groups=2, clients=2)
    for group in (0, 1):
        lab.call(f"a{group}", 0, group)
        lab.call(f"b{group}", 1, group)
    lab.crash(0, 3)
    lab.wait_ms(3 * DETECT_MS)
    assert (lab.primary(0), lab.primary(1)) == (1, 4)
    assert lab.told(1) == lab.told(2) == ["a0", "b0"] and lab.told(4) == lab.told(5) == ["a1", "b1"]
    assert lab.finish() == set()


def test_the_service_goes_on_through_many_changes() -> None:
    """Theorems 5 and 6: while a replica of each view survives, there is a next view, and work goes on."""
    lab = Lab(clients=2)
    for turn in range(12):
        primary = lab.primary()
        assert primary is not None
        lab.call(f"a{turn}", turn % 2)
        lab.crash(primary)
        lab.call(f"b{turn}", turn % 2)
        assert lab.wait_ms(400, until=lambda: not lab.client(0).in_doubt and not lab.client(1).in_doubt)
        lab.start(primary)
        assert lab.wait_ms(400, until=lambda: lab.whole(0))
    assert lab.finish() == set()
    numbers = [view.config for view in lab.history.lives[lab.primary() or 0].views]
    assert numbers == sorted(set(numbers))

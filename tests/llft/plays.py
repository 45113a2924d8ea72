"""Plays: short stories of failures, each of which ends with the names of the promises that were broken.

`test_plays.py` plays each; `test_mutants.py` plays it again with a replica or a client that is broken on
purpose.
"""

from collections.abc import Callable

from ordercast.core import MILLISECOND, Message, NodeId
from ordercast.replication.llft.messages import (
    Accept,
    Copy,
    FirstAck,
    Heartbeat,
    KeepAlive,
    Letter,
    NewPrimaryView,
    Progress,
    ProposePrimary,
    Reply,
    Request,
)
from ordercast.replication.llft.standing import Standing
from tests.hand_driven import Chosen, nothing
from tests.llft.lab import Lab, kinds

Play = Callable[[], set[str]]


def to_others(client: NodeId, primary: NodeId = 0) -> Chosen:
    """The requests of a client to all but the primary."""

    def chosen(source: NodeId, to: NodeId, message: Message) -> bool:
        return source == client and to != primary and isinstance(message, Request)

    return chosen


def certain(lab: Lab, broken: set[str]) -> set[str]:
    """What is broken, and whether something is undone although no network was cut."""
    return broken | ({"undone"} if lab.history.undone else set())


# The order of a primary


def backups_get_requests_in_another_order() -> set[str]:
    """The primary decides."""
    lab = Lab(clients=2)
    lab.hold = to_others(3)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.release()
    lab.wait_ms(20)
    return lab.finish()


def only_a_client_knows_the_order() -> set[str]:
    """The primary answers two clients and crashes; backups have their requests the other way round."""
    lab = Lab(clients=2)
    lab.hold = to_others(3)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.crash(0)
    lab.release()
    lab.lost = kinds(FirstAck, KeepAlive)
    lab.wait_ms(100)
    return certain(lab, lab.finish())


def an_answer_rests_on_the_request_of_another_client() -> set[str]:
    """Section III.C: the primary takes a request of one client, then of another, answers this one and
    dies. The first client dies as well, and backups got its request last."""
    lab = Lab(clients=2)
    lab.hold = to_others(3)
    lab.lost = kinds(Reply, to=3)
    lab.call("first", 0)
    lab.call("second", 1)
    lab.crash(0, 3)
    lab.heal()
    lab.release()
    lab.wait_ms(200)
    return certain(lab, lab.finish())


def only_a_client_has_a_request_that_was_answered() -> set[str]:
    """The new primary asks for it."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = to_others(3)
    lab.call("b")
    lab.crash(0)
    lab.lost = lambda source, to, message: isinstance(message, Request) and lab.now < 75 * MILLISECOND
    lab.wait_ms(150)
    return certain(lab, lab.finish())


def a_reply_is_lost_before_a_change() -> set[str]:
    """The client has a later one, which it must not count as received."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.lose(kinds(Reply))
    lab.call("b")
    lab.call("c")
    lab.crash(0)
    lab.wait_ms(100)
    lab.call("d")
    return certain(lab, lab.finish())


def a_view_fails_before_its_backup_has_entered_it() -> set[str]:
    """The client has an answer of that view, and knows its order."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(0)
    lab.lost = kinds(Heartbeat, Letter, FirstAck, KeepAlive, to=2)
    lab.wait_ms(60, until=lambda: lab.standing(1) is Standing.PRIMARY)
    lab.call("b")
    lab.crash(1)
    lab.wait_ms(100, until=lambda: lab.standing(2) is not Standing.BACKUP)
    lab.heal()
    lab.wait_ms(150)
    return certain(lab, lab.finish())


def _a_view_of_which_only_the_client_knows(lab: Lab) -> None:
    """The primary fails, and a view of nodes 1 and 2 begins. The others cannot hear them, and nodes 1 and 2
    fail, too; the client has an answer of them."""
    others = tuple(node for node in lab.groups[0] if node > 2)
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(0)
    lab.cut((1, 2), others)
    lab.lost = lambda source, to, message: source in lab.clients and to in others
    assert lab.wait_ms(100, until=lambda: lab.standing(1) is Standing.PRIMARY)
    lab.call("b")
    lab.crash(1, 2)
    lab.lost = nothing


def a_view_begins_with_the_number_of_a_proposal(replicas: int = 4) -> set[str]:
    """Only the client tells the proposer of it, and any that follow it agree to another number."""
    lab = Lab(replicas)
    _a_view_of_which_only_the_client_knows(lab)
    assert lab.wait_ms(200, until=lambda: lab.standing(3) is Standing.PRIMARY)
    broken = set() if lab.replica(3).view.number == 2 else {"number"}
    left_out = set() if lab.members(3) == tuple(range(3, replicas)) else {"members"}
    return certain(lab, broken | left_out | lab.finish())


def a_second_proposal_is_overtaken() -> set[str]:
    """A replica that has proposed another number cannot be heard, and one of higher precedence goes on,
    which learns of the view from the client as well."""
    lab = Lab(5, attempts=8)
    _a_view_of_which_only_the_client_knows(lab)
    lab.lost = lambda source, to, message: isinstance(message, Accept) and message.view.number == 2
    assert lab.wait_ms(200, until=lambda: lab.replica(3).promised.number == 2)
    assert lab.standing(3) is Standing.PROPOSER
    lab.cut((3,), (4,))
    assert lab.wait_ms(400, until=lambda: lab.standing(4) is Standing.PRIMARY)
    lab.call("c")
    return certain(lab, lab.finish())


def a_call_follows_a_change() -> set[str]:
    """Its reply has a number that the client expects."""
    lab = Lab()
    lab.call("a")
    lab.call("b")
    lab.wait_ms(20)
    lab.crash(0)
    lab.wait_ms(100)
    lab.call("c")
    lab.wait_ms(20)
    return certain(lab, lab.finish())


def a_backup_lacks_what_all_others_have_long_forgotten() -> set[str]:
    """They have not: it may still ask for it."""
    lab = Lab(detect_ns=1000 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    lab.call("b")
    lab.wait_ms(200)
    lab.call("c")
    lab.wait_ms(200)
    return lab.finish()


def a_connection_is_closed_before_a_backup_has_its_messages() -> set[str]:
    """The client is gone. The others have the request that the backup lacks, or give it a state."""
    lab = Lab(clients=2, close_ns=100 * MILLISECOND, behind_max=4)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    lab.call("a", 0)
    lab.crash(3)
    lab.wait_ms(300)
    lab.heal()
    for turn in range(8):
        lab.call(f"b{turn}", 1)
    lab.wait_ms(300)
    return lab.finish()


def a_backup_hears_no_heartbeat_and_no_acknowledgement() -> set[str]:
    """It gets the order later, when others are long done."""
    lab = Lab(detect_ns=1000 * MILLISECOND, close_ns=10_000 * MILLISECOND)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Heartbeat | FirstAck)
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Heartbeat | Letter | FirstAck)
    lab.call("b")
    lab.wait_ms(20)
    return lab.finish()


def a_first_ack_comes_before_the_order() -> set[str]:
    """A backup that has not produced a reply does not confirm that it was received."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    lab.call("b")
    lab.wait_ms(30)
    lab.heal()
    lab.wait_ms(30)
    early = any(not known for known in lab.confirmed)
    return lab.finish() | ({"second-ack"} if early else set())


# Changes of the primary


def an_old_primary_answers() -> set[str]:
    """It was cut off from the other replicas, and does not know that there is a new view. It takes the
    requests of two clients in another order than the new primary."""
    lab = Lab(clients=2)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.wait_ms(20)
    lab.cut((0,), (1, 2))
    lab.pause(0)
    lab.wait_ms(60)
    lab.lost = lambda source, to, message: (source == 3 and to == 0) or (source == 1 and to == 4)
    lab.call("c", 0)
    lab.wait_ms(5)
    lab.call("d", 1)
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: source == 3 and to == 0
    lab.resume(0)
    lab.wait_ms(20)
    return certain(lab, lab.finish())


def two_propose_at_once(*, majority: bool = False) -> set[str]:
    """Each leaves the other out; the one of higher precedence wins."""
    lab = Lab(5 if majority else 4, attempts=1000, require_majority=majority)
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(0)
    lab.cut((1,), (2, 3, *((4,) if majority else ())))
    lab.lost = lambda source, to, message: source == 3
    lab.wait_ms(120)
    lab.call("b")
    lab.heal()
    lab.wait_ms(100)
    return certain(lab, lab.finish())


def an_older_proposal_comes_late() -> set[str]:
    """Two replicas have promised a view of a higher precedence, whose primary still recovers."""
    lab = Lab(5, clients=2, require_majority=True)
    client = lab.clients[0]
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(0)
    lab.cut((1,), (2,))
    lab.hold = kinds(ProposePrimary, source=1)
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, NewPrimaryView)
    lab.wait_ms(200, until=lambda: lab.replica(2).recovers)
    lab.release()
    lab.wait_ms(5)
    lab.call("b")
    lab.wait_ms(45)
    assert client in lab.drivers
    lab.wait_ms(40)
    return lab.finish()


def a_proposer_has_an_older_state() -> set[str]:
    """It was cut off when the others changed their view, and proposes one of a higher precedence."""
    lab = Lab(4, attempts=8)
    lab.call("a")
    lab.wait_ms(10)
    lab.crash(0)
    lab.isolate(2)
    lab.wait_ms(90)
    lab.call("b")
    lab.wait_ms(5)
    lab.heal()
    lab.wait_ms(60)
    return certain(lab, lab.finish())


def only_a_member_knows_the_order() -> set[str]:
    """Another one proposes, which got the requests the other way round; the clients have crashed."""
    lab = Lab(clients=2, require_majority=True)
    lab.hold = kinds(Request, source=3, to=1)
    lab.lost = lambda source, to, message: 1 in (source, to) and not isinstance(message, Request)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.release()
    lab.wait_ms(10)
    lab.crash(0, 3, 4)
    lab.heal()
    lab.wait_ms(100)
    return lab.finish()


def a_backup_restarts_before_the_primary_crashes() -> set[str]:
    """It has nothing of what it had confirmed before."""
    lab = Lab(require_majority=True)
    lab.lost = lambda source, to, message: to == 2
    lab.call("a")
    lab.wait_ms(10)
    lab.crash(1)
    lab.start(1)
    lab.wait_ms(1)
    lab.crash(0, 3)
    lab.heal()
    lab.wait_ms(500)
    lab.start(0, 3)
    lab.call("b")
    lab.wait_ms(500)
    done = set(lab.answers())
    return {"answers"} if {"a", "b"} <= done and "a" not in lab.answers()["b"].split() else set()


def an_answer_before_a_majority_has_it() -> set[str]:
    """The primary is cut off when it gets a request, and crashes."""
    lab = Lab(require_majority=True)
    lab.call("a")
    lab.wait_ms(10)
    lab.cut((0, 3), (1, 2))
    lab.call("b")
    lab.wait_ms(10)
    lab.crash(0)
    lab.isolate(3)
    lab.wait_ms(200)
    return lab.finish()


# Members


def a_newcomer_becomes_primary_and_a_call_is_repeated() -> set[str]:
    """It has the answers that were given before."""
    lab = Lab(close_ns=100 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = kinds(Reply)
    lab.call("b")
    lab.wait_ms(10)
    lab.crash(1)
    lab.start(1)
    lab.wait_ms(60)
    lab.isolate(3)
    lab.wait_ms(200)
    lab.crash(0, 2)
    lab.wait_ms(100)
    lab.heal()
    lab.wait_ms(200)
    return certain(lab, lab.finish())


def a_state_comes_with_half_a_message() -> set[str]:
    """A newcomer must go on in the middle of a fragmented request, which its predecessor had begun."""
    lab = Lab(fragment_bytes=64)
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: isinstance(message, Request) and message.index > 4
    lab.call("b" * 400)
    lab.crash(2)
    lab.start(2)
    lab.wait_ms(60)
    lab.heal()
    lab.wait_ms(60)
    return certain(lab, lab.finish())


def an_order_is_left_whose_message_nobody_has() -> set[str]:
    """Only the primary had performed it, and crashes; the client has another connection by now."""
    lab = Lab(require_majority=True, close_ns=100 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(20)
    lab.lost = lambda source, to, message: to in (1, 2) and isinstance(message, Request | Copy)
    lab.call("b")
    lab.wait_ms(10)
    lab.isolate(3)
    lab.crash(0)
    lab.wait_ms(300)
    lab.heal()
    lab.wait_ms(300)
    return lab.finish()


# Partitions


def two_sides_work_and_meet() -> set[str]:
    """The work of one is undone, and everybody is told."""
    lab = Lab(clients=2)
    lab.call("a", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 2, 4))
    lab.call("left", 0)
    lab.wait_ms(150)
    lab.call("right", 1)
    lab.wait_ms(100)
    return lab.finish()


def an_answer_of_a_lost_branch_had_fewer_fragments() -> set[str]:
    """The client got a short answer from the side that loses. On the other side, the answer to the same
    request is longer: what follows it must not be taken for its end."""
    lab = Lab(clients=2, fragment_bytes=64)
    lab.call("b", 1)
    lab.wait_ms(20)
    lab.cut((0,), (1, 2, 4))
    lab.lost = lambda source, to, message: source in (1, 2) and to == 3
    lab.wait_ms(200)
    lab.call("y" * 200, 1)
    lab.wait_ms(5)
    lab.call("x", 0)
    lab.wait_ms(20)
    lab.heal()
    lab.call("z", 0)
    lab.wait_ms(300)
    return lab.finish()


def a_minority_is_called() -> set[str]:
    """With `require_majority` it does nothing."""
    lab = Lab(clients=2, require_majority=True)
    lab.call("a", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 2, 4))
    lab.wait_ms(150)
    lab.call("left", 0)
    lab.call("right", 1)
    lab.wait_ms(100)
    return lab.finish()


def backups_are_slow(policy: str = "wait") -> set[str]:
    """One confirms nothing for a while."""
    lab = Lab(behind_max=2, window=4, slow_backup=policy)
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = kinds(Progress, source=2)
    for turn in range(8):
        lab.call(f"b{turn}")
    lab.wait_ms(500)
    return lab.finish()


PLAYS: tuple[Play, ...] = (
    backups_get_requests_in_another_order,
    only_a_client_knows_the_order,
    an_answer_rests_on_the_request_of_another_client,
    only_a_client_has_a_request_that_was_answered,
    a_reply_is_lost_before_a_change,
    a_view_fails_before_its_backup_has_entered_it,
    a_view_begins_with_the_number_of_a_proposal,
    a_second_proposal_is_overtaken,
    a_call_follows_a_change,
    a_backup_lacks_what_all_others_have_long_forgotten,
    a_connection_is_closed_before_a_backup_has_its_messages,
    a_backup_hears_no_heartbeat_and_no_acknowledgement,
    a_first_ack_comes_before_the_order,
    an_old_primary_answers,
    two_propose_at_once,
    an_older_proposal_comes_late,
    a_proposer_has_an_older_state,
    only_a_member_knows_the_order,
    a_backup_restarts_before_the_primary_crashes,
    an_answer_before_a_majority_has_it,
    a_newcomer_becomes_primary_and_a_call_is_repeated,
    a_state_comes_with_half_a_message,
    an_order_is_left_whose_message_nobody_has,
    two_sides_work_and_meet,
    an_answer_of_a_lost_branch_had_fewer_fragments,
    a_minority_is_called,
    backups_are_slow,
)

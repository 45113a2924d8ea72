"""The Low Latency Messaging Protocol: each handler of Figure 6, with what section III says about it."""

from typing import Any

import pytest

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import (
    Copy,
    FirstAck,
    Heartbeat,
    KeepAlive,
    Nack,
    Progress,
    RemoveBackup,
    Reply,
    Request,
    Reset,
    SecondAck,
)
from ordercast.replication.llft.options import LlftOptions
from tests.llft.lab import Lab, kinds

ACK_MS = LlftOptions().ack_ns / MILLISECOND
RETRANSMIT_MS = LlftOptions().retransmit_ns / MILLISECOND


def talking(**options: Any) -> Lab:
    """A group and a client that have talked before, so that each knows of the room of the other."""
    lab = Lab(**options)
    lab.call("first")
    lab.wait_ms(40)
    return lab


# Sending


def test_a_primary_multicasts_and_a_backup_only_logs() -> None:
    """Figure 6, lines 1 to 17: the primary sends to all members of the group; a backup creates the same
    messages with the same timestamps, and sends none."""
    lab = Lab()
    lab.call("a")
    lab.call("b")
    assert [(source, to) for source, to, _ in lab.sent_of(Request)] == [(3, 0), (3, 1), (3, 2)] * 2
    assert {source for source, _, _ in lab.sent_of(Reply)} == {0}
    produced = [lab.connection(node).outgoing for node in (0, 1)]
    assert [one.produced for one in produced] == [2, 1], "the reply to b is not ordered at backups yet"
    assert produced[1].sent[1].payload == lab.sent_of(Reply)[0][2].payload
    assert produced[1].sent[1].timestamp == lab.sent_of(Reply)[0][2].timestamp
    assert lab.finish() == set()


def test_a_message_acknowledges_what_came_without_a_gap() -> None:
    """Figure 6, lines 2 and 10."""
    lab = Lab()
    lab.call("a")
    lab.call("b")
    assert [message.head.ack for _, _, message in lab.sent_of(Request)][::3] == [0, 1]
    assert [message.head.ack for _, _, message in lab.sent_of(Reply)] == [1, 2]


def test_a_message_is_sent_again_until_it_is_acknowledged() -> None:
    """Figure 6, lines 45 and 46."""
    lab = Lab()
    lab.lose(kinds(Request, source=3), 9)
    lab.call("a")
    lab.wait_ms(RETRANSMIT_MS - 1)
    assert lab.count(Request) == 3 and lab.answers() == {}
    lab.wait_ms(3 * RETRANSMIT_MS + 5)
    assert lab.answers() == {"a": "a"}
    sent = lab.count(Request)
    lab.wait_ms(10 * RETRANSMIT_MS)
    assert lab.count(Request) == sent


def test_a_repeated_message_waits_longer_each_time() -> None:
    lab = Lab()
    lab.lost = kinds(Request)
    lab.call("a")
    lab.wait_ms(7.5 * RETRANSMIT_MS)
    assert lab.count(Request) == 3 * 4, "after 0, 1, 3 and 7 times the first wait"


# Acknowledgements


def test_a_primary_without_a_message_sends_a_first_ack() -> None:
    """Figure 6, lines 47 and 48: the client has no further request that would acknowledge the reply."""
    lab = Lab()
    lab.call("a")
    assert lab.count(FirstAck) == 0
    lab.wait_ms(ACK_MS)
    assert [(source, to) for source, to, _ in lab.sent_of(FirstAck)] == [(3, 0), (3, 1), (3, 2)]
    assert lab.sent_of(FirstAck)[0][2].head.ack == 1


def test_a_backup_confirms_a_first_ack_once_it_has_produced_the_message() -> None:
    """Section III.B: "only if the backup application has generated the message that the FirstAck message
    acknowledges" (Figure 6, lines 60 to 68)."""
    lab = Lab()
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    lab.call("a")
    lab.wait_ms(2 * RETRANSMIT_MS)
    confirmed = {(source, message.index) for source, _, message in lab.sent_of(SecondAck)}
    assert confirmed == {(1, 1)}, "node 2 lacks the request, and cannot have produced the reply"


def test_a_backup_that_lacks_the_order_does_not_confirm() -> None:
    """It has received the request, but does not know its place."""
    lab = Lab()
    lab.call("a")
    lab.pause(0)
    driver = lab.drivers[2]
    told = FirstAck(lab.client().messaging.head(next(iter(lab.client().messaging.connections.values()))))
    assert told.head.reflected is not None and told.head.ack == 1
    without = FirstAck(
        type(told.head)(*(getattr(told.head, name) for name in told.head.__struct_fields__[:-1]))
    )
    driver.receive(3, without)
    assert not [message for _, message in driver.take_sent() if isinstance(message, SecondAck)]
    driver.receive(3, told)
    driver.receive(3, told)
    sent = [(to, message.index) for to, message in driver.take_sent() if isinstance(message, SecondAck)]
    assert (3, 1) in sent


def test_a_primary_with_backups_does_not_confirm() -> None:
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    assert lab.count(SecondAck) > 0 and lab.count(SecondAck, source=0) == 0


def test_a_primary_that_is_alone_confirms() -> None:
    """Section III.B: "If there is no backup in group C, the primary in group C carries out this
    responsibility."
    """
    lab = Lab(1)
    lab.call("a")
    lab.wait_ms(ACK_MS)
    assert [(source, to) for source, to, _ in lab.sent_of(SecondAck)] == [(0, 1)]


def test_a_first_ack_is_repeated_until_a_second_ack_comes() -> None:
    """Figure 6, lines 47, 48, 70 and 71."""
    lab = Lab()
    lab.lost = kinds(SecondAck)
    lab.call("a")
    lab.wait_ms(5 * RETRANSMIT_MS)
    repeated = lab.count(FirstAck, source=3)
    assert repeated >= 3 * 4
    lab.heal()
    lab.wait_ms(2 * RETRANSMIT_MS)
    confirmed = lab.count(FirstAck, source=3)
    lab.wait_ms(10 * RETRANSMIT_MS)
    assert lab.count(FirstAck, source=3) == confirmed


def test_too_many_first_acks_slow_the_primary_down() -> None:
    """Section III.B and Figure 6, lines 65 and 66: the backups are behind, so that nobody confirms."""
    lab = Lab(first_acks_max=3, detect_ns=3000 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(10)
    lab.pause(1, 2)
    lab.call("b")
    lab.wait_ms(3 * RETRANSMIT_MS)
    assert lab.replica(0).primary.slow_until == 0
    lab.wait_ms(2 * RETRANSMIT_MS)
    assert lab.replica(0).primary.slow_until > 0
    lab.resume(1, 2)
    lab.wait_ms(100)
    assert lab.replica(0).primary.slow_until < lab.now
    assert lab.finish() == set()


# Missing messages


def test_a_gap_at_a_primary_is_asked_for_at_the_remote_group() -> None:
    """Figure 6, lines 24 and 49 to 50."""
    lab = talking()
    lab.lose(kinds(Request, to=0))
    lab.call("a")
    lab.call("b")
    lab.wait_ms(RETRANSMIT_MS - 2)
    assert [(source, to) for source, to, _ in lab.sent_of(Nack)] == [(0, 3)]
    assert lab.answers()["b"] == "first a b", "before the timeout of the client"


def test_a_gap_at_a_backup_is_asked_for_in_its_own_group() -> None:
    """Figure 6, lines 24, 51 to 52 and 73 to 75: whoever holds the message sends it."""
    lab = talking()
    lab.lose(kinds(Request, to=2))
    lab.call("a")
    lab.call("b")
    lab.wait_ms(RETRANSMIT_MS)
    assert {(source, to) for source, to, _ in lab.sent_of(Nack)} == {(2, 0), (2, 1)}
    assert {(source, to) for source, to, _ in lab.sent_of(Copy)} == {(0, 2), (1, 2)}
    assert lab.told(2) == ["first", "a", "b"]
    assert lab.finish() == set()


def test_an_order_that_names_a_message_makes_a_backup_ask_for_it() -> None:
    """Section III.B: "a message ... that orders a message that the backup has not received"."""
    lab = talking()
    lab.lose(kinds(Request, to=2))
    lab.call("a")
    lab.wait_ms(ACK_MS)
    assert lab.replica(2).log.end == 2 and lab.told(2) == ["first"]
    assert lab.connection(2).incoming.missing() == ((2, 2),)
    lab.wait_ms(RETRANSMIT_MS)
    assert lab.told(2) == ["first", "a"]


def test_a_second_ack_that_names_a_message_makes_a_backup_ask_for_it() -> None:
    """Figure 6, line 72: the client's group of one is asked by nobody, so a backup is told by hand."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    link = lab.connection(2).link
    lab.drivers[2].receive(3, SecondAck(link, 0, 3))
    assert lab.connection(2).incoming.missing() == ((2, 3),)
    lab.wait_ms(RETRANSMIT_MS)
    assert {(source, message.missing) for source, _, message in lab.sent_of(Nack)} == {(2, ((2, 3),))}


def test_a_message_that_fills_a_gap_late_is_taken_once() -> None:
    """Figure 6, lines 26 to 30."""
    lab = Lab()
    lab.hold = lambda source, to, message: isinstance(message, Request) and message.index == 1
    lab.call("a")
    lab.call("b")
    assert lab.answers() == {}
    lab.release()
    lab.release()
    assert lab.answers() == {"a": "a", "b": "a b"}
    assert lab.finish() == set()


# Delivery


def test_a_backup_delivers_only_what_is_ordered() -> None:
    """Figure 6, delivery: "find first msg order; if found and msg order orders M then deliver M"."""
    lab = Lab()
    lab.lost = lambda source, to, message: isinstance(message, FirstAck | Heartbeat)
    lab.call("a")
    lab.wait_ms(15)
    assert lab.told(0) == ["a"]
    assert lab.told(1) == lab.told(2) == [] and lab.connection(1).incoming.upto == 1


def test_backups_follow_the_order_of_the_primary_not_of_their_arrivals() -> None:
    lab = Lab(clients=2)
    lab.hold = lambda source, to, message: source == 3 and to != 0 and isinstance(message, Request)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.release()
    lab.wait_ms(20)
    assert lab.told(1) == lab.told(2) == ["a", "b"]


def test_orders_do_not_come_from_the_primary_but_from_remote_groups() -> None:
    """Section III.C: "A backup in group C does not receive the ordering information directly from the
    primary in group C. Instead, the primary in group S reflects back the ordering information"."""
    lab = Lab()
    lab.lost = kinds(Heartbeat)
    lab.call("a")
    lab.wait_ms(ACK_MS)
    assert lab.told(1) == lab.told(2) == ["a"]


def test_orders_reach_backups_if_the_remote_group_is_gone() -> None:
    """They come with a heartbeat then."""
    lab = Lab()
    lab.call("a")
    lab.crash(3)
    lab.wait_ms(10)
    assert lab.told(1) == lab.told(2) == ["a"]


def test_orders_are_sent_and_reflected_until_they_are_safe() -> None:
    """Section III.C: the primary "includes the ordering information in each message it sends until it
    receives that information reflected back to it"; here until all backups have performed it."""
    lab = Lab(clients=2)
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, Progress)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.wait_ms(4)
    lab.call("c", 0)
    carried = [message.head.orders.entries for _, _, message in lab.sent_of(Reply)]
    assert [len(entries) for entries in carried] == [1, 2, 3], "whatever their connection"
    lab.wait_ms(2)
    reflected = [message.head.reflected for _, _, message in lab.sent_of(FirstAck)]
    assert reflected[-1].after == 0 and reflected[-1].end == 3
    lab.heal()
    lab.wait_ms(20)
    lab.call("d", 0)
    assert [entry.first for entry in lab.sent_of(Reply)[-1][2].head.orders.entries] == [3]


# Idle connections


def test_an_idle_connection_is_kept_alive() -> None:
    """Figure 6, lines 54 and 55: both primaries say that they live, backups do not."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(20)
    before = lab.count(KeepAlive)
    lab.wait_ms(180)
    assert before == 0
    assert {(source, to) for source, to, _ in lab.sent_of(KeepAlive)} == {(0, 3), (3, 0), (3, 1), (3, 2)}
    assert 3 <= lab.count(KeepAlive, source=0) <= 4


def test_a_connection_whose_other_end_is_gone_is_closed_at_the_same_place_everywhere() -> None:
    lab = Lab(clients=2, close_ns=100 * MILLISECOND)
    lab.call("a", 0)
    lab.call("b", 1)
    lab.wait_ms(20)
    lab.crash(3)
    lab.wait_ms(300)
    for node in (0, 1, 2):
        replica = lab.replica(node)
        assert [one.remote for one in replica.messaging.connections.values()] == [lab.clients[1] + 1]
        assert replica.performer.place == lab.replica(0).performer.place
    lab.start(3)
    lab.call("c", 0)
    assert lab.answers()["c"] == "a b c"
    assert lab.finish() == set()


def test_a_connection_that_nobody_knows_is_reset() -> None:
    """A client that was cut off for long opens another connection, and calls again what has no answer."""
    lab = Lab(close_ns=100 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(20)
    lab.isolate(3)
    lab.call("b")
    lab.wait_ms(90)
    lab.call("c")
    lab.wait_ms(300)
    assert lab.replica(0).messaging.connections == {}
    lab.heal()
    lab.wait_ms(300)
    assert lab.count(Reset) > 0
    assert lab.answers() == {"a": "a", "b": "a b", "c": "a b c"}
    assert lab.finish() == set()


def test_the_primary_and_its_backups_exchange_heartbeats() -> None:
    """Figure 6, lines 56 to 59."""
    lab = Lab()
    lab.wait_ms(50)
    assert {(source, to) for source, to, _ in lab.sent_of(Heartbeat)} == {(0, 1), (0, 2)}
    assert {(source, to) for source, to, _ in lab.sent_of(Progress)} == {(1, 0), (2, 0)}
    assert lab.count(Heartbeat, source=0) >= 2 * 9


# Buffers


@pytest.mark.parametrize("replication", ["semi-active", "semi-passive"])
def test_buffers_are_emptied(replication: str) -> None:
    """Section III.D and Figure 6, lines 76 to 84: by timestamps and the watermarks of groups."""
    lab = Lab(clients=2, replication=replication, update_every=4)
    for turn in range(20):
        lab.call(f"a{turn}", turn % 2)
        lab.wait_ms(2)
    lab.wait_ms(200)
    assert {node: lab.kept(node) for node in lab.drivers} == dict.fromkeys(lab.drivers, 0)
    assert lab.finish() == set()


def test_a_message_is_kept_as_long_as_one_member_lacks_it() -> None:
    lab = Lab(detect_ns=1000 * MILLISECOND)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    for turn in range(5):
        lab.call(f"a{turn}")
        lab.wait_ms(4)
    lab.wait_ms(100)
    assert len(lab.connection(0).incoming.kept) == len(lab.connection(1).incoming.kept) == 5
    assert lab.kept(3) == 5
    lab.heal()
    lab.wait_ms(200)
    assert [lab.kept(node) for node in lab.drivers] == [0, 0, 0, 0]


def test_timestamps_are_the_same_at_all_replicas() -> None:
    """Section III.A.3: "The primary and the backups use the same timestamp value for a message"."""
    lab = Lab(clients=2)
    lab.lost = kinds(FirstAck, SecondAck, KeepAlive)
    for turn in range(6):
        lab.call(f"a{turn}", turn % 2)
    lab.wait_ms(10)
    for client in (0, 1):
        sent = [lab.connection(node, client).outgoing.sent for node in (0, 1, 2)]
        common = set(sent[0]) & set(sent[1]) & set(sent[2])
        assert common
        assert all(sent[0][index] == sent[1][index] == sent[2][index] for index in common)
    assert len({lab.replica(node).messaging.clock for node in (0, 1, 2)}) == 1


# Flow control


@pytest.mark.parametrize("window", [1, 3])
def test_a_client_sends_no_more_than_the_window(window: int) -> None:
    lab = talking(window=window)
    lab.lost = kinds(Reply, FirstAck)
    for turn in range(6):
        lab.call(f"a{turn}")
    assert lab.count(Request) == 3 * (1 + window)
    lab.heal()
    lab.wait_ms(300)
    assert lab.answers()["a5"] == "first a0 a1 a2 a3 a4 a5"
    assert lab.finish() == set()


def test_a_primary_that_waits_lets_the_client_wait() -> None:
    """Section III: flow control "to ensure that processing in the primary receiver, and in the backups,
    can keep up with the primary sender"."""
    lab = Lab(behind_max=2, window=4, detect_ns=1000 * MILLISECOND)
    lab.call("a")
    lab.wait_ms(10)
    lab.pause(2)
    for turn in range(12):
        lab.call(f"b{turn}")
    lab.wait_ms(50)
    assert len(lab.told(0)) == 3, "it may be two places ahead of its backups"
    assert lab.connection(0).incoming.room(4) == 0
    assert "backups that are behind" in {wait.blocker for wait in lab.replica(0).explain().waits}
    assert len(lab.connection(0).incoming.kept) <= 2 + 4
    assert max(message.index for _, _, message in lab.sent_of(Request)) <= 3 + 4 + 1, "one asks for room"
    lab.resume(2)
    lab.wait_ms(400)
    assert len(lab.told(2)) == 13
    assert lab.finish() == set()


@pytest.mark.parametrize("policy", ["wait", "remove"])
def test_a_slow_backup_holds_the_group_up_or_is_removed(policy: str) -> None:
    lab = talking(behind_max=2, slow_backup=policy)
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, Request | Copy)
    for turn in range(6):
        lab.call(f"b{turn}")
    lab.wait_ms(150)
    assert len(lab.told(0)) == 3 and len(lab.told(2)) == 1
    (wait,) = [one for one in lab.replica(0).explain().waits if one.subject == "the messages of clients"]
    assert (wait.blocker, wait.on) == ("backups that are behind", (2,))
    lab.wait_ms(450)
    removed = {message.members for _, _, message in lab.sent_of(RemoveBackup)}
    if policy == "wait":
        assert len(lab.told(0)) == 3 and removed == set()
    else:
        assert len(lab.told(0)) == len(lab.told(1)) == 7 and removed == {(0, 1)}
    assert lab.finish() == set()


# Fragments


@pytest.mark.parametrize("window", [1, 2, 256])
def test_a_large_message_travels_in_fragments(window: int) -> None:
    lab = Lab(fragment_bytes=64, window=window)
    lab.call("a" * 300)
    lab.call("b")
    lab.wait_ms(400)
    fragments = {message.index for _, _, message in lab.sent_of(Request) if len(message.payload) == 64}
    assert len(fragments) >= 4
    assert lab.answers() == {"a" * 300: "a" * 300, "b": "a" * 300 + " b"}
    assert lab.told(1) == lab.told(2) == ["a" * 300, "b"]
    assert lab.finish() == set()


def test_a_primary_crashes_between_the_fragments_of_a_message() -> None:
    for lost in range(1, 12):
        lab = Lab(fragment_bytes=64)
        lab.call("a")
        lab.wait_ms(10)
        lab.lost = lambda source, to, message, lost=lost: (  # type: ignore[misc]
            to == 0 and isinstance(message, Request) and message.index > lost
        )
        lab.call("b" * 500)
        lab.crash(0)
        lab.heal()
        lab.wait_ms(100)
        assert lab.finish() == set(), lab.details

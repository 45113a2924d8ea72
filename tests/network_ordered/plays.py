"""Plays: short stories of failures, each of which ends with all promises kept.

`test_plays.py` plays each; `test_mutants.py` plays it again with a replica that is broken on purpose, which
must break a promise.
"""

from ordercast.components.network_ordered.messages import (
    Entries,
    GapCommit,
    GapCommitReply,
    GapRequest,
    Reply,
    SyncPrepare,
)
from tests.hand_driven import Chosen
from tests.network_ordered.lab import CLIENT, Lab

SILENT: Chosen = lambda source, to, message: True  # noqa: E731
"""Nothing comes anywhere."""


def without(*kinds: type) -> Chosen:
    """Lose all messages of some kinds."""
    return lambda source, to, message: isinstance(message, kinds)


# The required tests


def a_follower_misses_one() -> None:
    """The leader supplies it."""
    lab = Lab()
    lab.call("a", 0, 1)
    lab.call("b")
    lab.wait_ms(1)
    assert lab.answers == {"a": "a", "b": "a b"}
    assert lab.log(2) == ["a", "b"]
    assert lab.kinds(GapCommit) == 0
    lab.finish("a", "b")


def the_leader_misses_one() -> None:
    """A follower supplies it; nothing is given up."""
    lab = Lab()
    lab.call("a", 1, 2)
    lab.call("b")
    lab.wait_ms(1)
    assert lab.answers == {"a": "a", "b": "a b"}
    assert lab.kinds(GapCommit) == 0
    lab.finish("a", "b")


def all_miss_one() -> None:
    """The slot is given up; the client's retry is executed once."""
    lab = Lab()
    lab.stamp(1, "a")
    lab.call("b")
    lab.wait_ms(3)
    assert lab.kinds(GapCommit) > 0
    assert lab.answers == {"b": "b"}
    lab.call("a", sequencer=2)
    lab.call("a")
    lab.finish("a", "b")
    assert lab.answers["a"] == "b a"


def one_holds_what_is_given_up() -> None:
    """The leader and another miss a call, and the answer of the third is lost: it must let the call go."""
    lab = Lab()
    lab.lost = lambda source, to, message: source == 2 and isinstance(message, Entries)
    lab.call("a", 2)
    lab.call("b")
    assert lab.log(2) == ["a", "b"]
    lab.wait_ms(6)
    assert lab.answers == {"b": "b"}
    assert lab.log(2) == ["b"]
    lab.finish("b")


def a_leader_dies_while_it_gives_up(acked: bool) -> None:
    """Whether one other has taken note or not, the outcome is the same at all."""
    lab = Lab()
    lab.stamp(1, "a")

    def lost(source: int, to: int, message: object) -> bool:
        gone = isinstance(message, GapCommitReply)
        return gone or (isinstance(message, GapCommit) and not (acked and to == 1))

    lab.lost = lost
    lab.call("b")
    lab.wait_ms(4)
    assert lab.answers == {}, "nothing passes a slot before f others have given it up"
    lab.crash(0)
    lab.finish("b")
    assert lab.answers["b"] == "b"


def a_slot_is_given_up_by_the_leader_alone() -> None:
    """The leader must wait for f others: else the next leader fills the slot, under an answer."""
    lab = Lab()
    quiet = (GapRequest, Entries, GapCommit, SyncPrepare)
    lab.lost = without(*quiet)
    packet = lab.stamp(1, "a")
    lab.give(packet, 1, 2)
    lab.call("b")
    lab.wait_ms(8)
    lab.crash(0)
    lab.finish("a", "b")


def a_leader_dies_after_it_answered() -> None:
    """The call survives, and a copy of it gets the same answer."""
    lab = Lab()
    lab.call("a", 0, 1)
    lab.call("b", 0, 1)
    assert lab.answers == {"a": "a", "b": "a b"}
    lab.crash(0)
    lab.wait_ms(120)
    del lab.answers["a"]
    lab.call("a", sequencer=2)
    assert lab.answers["a"] == "a", "the answer of the first execution"
    lab.finish("a", "b")


def a_stale_longest_log_returns() -> None:
    """A replica with the longest log of an old view is cut off for two view changes, and comes back."""
    lab = Lab(durable=True)
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: source == 0
    lab.call("x", 0)
    lab.call("y", 0)
    lab.crash(0)
    lab.lost = without(Entries)  # those slots cannot be found, so they are given up
    lab.call("b")
    lab.wait_ms(120)
    assert lab.answers["b"] == "a b"
    second = lab.leader()
    lab.lost = lambda source, to, message: False
    lab.start(0)
    lab.tell(0)
    lab.crash(second)
    lab.wait_ms(150)
    lab.call("c", sequencer=2)
    lab.finish("a", "b", "c")


def a_retry_through_another_sequencer() -> None:
    """The replies are lost, and the retry is stamped by the other sequencer: it is executed once."""
    lab = Lab()
    lab.lost = without(Reply)
    lab.call("a")
    lab.call("b", sequencer=2)
    lab.lost = without()
    lab.call("a", sequencer=2)
    assert lab.answers["a"] == "a"
    lab.finish("a", "b")


def a_drop_is_seen_at_different_places() -> None:
    """Two sequencers: the same lost message lies between different messages at different replicas."""
    lab = Lab()
    lab.give(lab.stamp(1, "a"))
    lab.stamp(1, "lost")
    late = lab.stamp(1, "c")
    lab.give(late, 0)
    other = lab.stamp(2, "b")
    lab.give(other)
    lab.give(late, 1, 2)
    lab.flush()
    lab.wait_ms(4)
    assert set(lab.answers) == {"a", "b", "c"}
    lab.finish("a", "b", "c")


def a_recovered_message_ranks_among_buffered_ones() -> None:
    """What a peer supplies goes to its place, not to the end."""
    lab = Lab()
    first, second = lab.stamp(1, "a"), lab.stamp(2, "b")
    third = lab.stamp(1, "c")
    lab.give(first, 0, 1)
    for packet in (second, third):
        lab.give(packet)
    lab.flush()
    lab.wait_ms(2)
    assert lab.log(2) == ["a", "b", "c"]
    lab.finish("a", "b", "c")


def a_reconfiguration_while_a_slot_is_given_up() -> None:
    """The tag changes in the middle of gap agreement; an idle sequencer's flushes are lost before."""
    lab = Lab()
    lab.lost = without(GapCommit)
    lab.stamp(1, "a")
    lab.give(lab.stamp(1, "b"))
    lab.wait_ms(3)
    lab.lost = without()
    lab.plan("removed", 2)
    lab.decide("removed", 2, lab.clock, 0)
    lab.wait_ms(5)
    assert lab.answers == {"b": "b"}
    lab.finish("b")


def a_sequencer_reaches_only_the_leader() -> None:
    """It is removed, and the leader has executed what nobody else will have: it goes back."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.numbers[1] += 0
    only = lab.stamp(1, "only")
    lab.give(only, 0)
    lab.flush(0)
    lab.call("b", sequencer=2)
    assert "b" not in lab.answers or lab.answers["b"] == "a b"
    for node in (1, 2):
        lab.plan("removed", 1, node)
    lab.decide("removed", 1, only.clock - 1, 1)
    lab.flush(only=(2,))
    assert lab.log(0) == ["a", "b"]
    lab.finish("a", "b")
    assert lab.answers["b"] == "a b"


def a_quorum_over_two_views() -> None:
    """The leader answers in an old view, and a follower in the new one: their logs are not the same."""
    lab = Lab()
    lab.lost = lambda source, to, message: 0 in (source, to) and to != CLIENT
    lab.call("x", 0)
    lab.begin_view(1, 1, 2)
    lab.wait_ms(10)
    assert [lab.replica(node).view for node in (0, 1, 2)] == [0, 1, 1]
    lab.lost = lambda source, to, message: (0 in (source, to) and to != CLIENT) or (source, to) == (1, CLIENT)
    packet = lab.stamp(2, "b")
    lab.give(packet, 1, 2)
    lab.flush(1, 2)
    assert lab.log(1) == ["b"]
    lab.give(packet, 0)
    lab.flush(0)
    assert lab.log(0) == ["x", "b"]
    lab.wait_ms(100)
    lab.finish("b")


def a_noop_survives_a_view_change() -> None:
    """A slot was given up by the leader and one other, under an answer; the third has its call."""
    lab = Lab()
    lab.lost = lambda source, to, message: (
        isinstance(message, SyncPrepare) or (isinstance(message, GapCommit | Entries) and 2 in (source, to))
    )
    lab.call("a", 2)
    lab.call("b")
    lab.wait_ms(6)
    assert lab.answers == {"b": "b"}
    lab.crash(0)
    lab.finish("b")


def a_packet_comes_after_the_report() -> None:
    """Two replicas have reported the end of a sequencer; then a packet comes, to one of them and to the
    leader. It must not be answered: the step cuts it off."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    packet = lab.stamp(1, "beyond")
    lab.plan("removed", 1, 1, 2)
    lab.give(packet, 0, 1)
    lab.flush(0, 1)
    assert "beyond" not in lab.answers
    lab.decide("removed", 1, packet.clock - 1, 1)
    lab.finish("a")


PLAYS = (
    a_follower_misses_one,
    the_leader_misses_one,
    all_miss_one,
    one_holds_what_is_given_up,
    a_slot_is_given_up_by_the_leader_alone,
    a_leader_dies_after_it_answered,
    a_stale_longest_log_returns,
    a_retry_through_another_sequencer,
    a_drop_is_seen_at_different_places,
    a_recovered_message_ranks_among_buffered_ones,
    a_reconfiguration_while_a_slot_is_given_up,
    a_sequencer_reaches_only_the_leader,
    a_quorum_over_two_views,
    a_noop_survives_a_view_change,
    a_packet_comes_after_the_report,
)

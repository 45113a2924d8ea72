"""Plays about logs: which one wins, what is certain of it, and who learns that a slot is missing."""

import msgspec

from ordercast.components.network_ordered.messages import (
    BaseChunk,
    Entries,
    FetchEntries,
    GapCommit,
    Reply,
    SyncPrepare,
    SyncReply,
)
from ordercast.core import MILLISECOND
from tests.network_ordered.lab import OPTIONS, Lab
from tests.network_ordered.plays import without


def the_longest_log_has_fewer_calls() -> None:
    """Two calls were given up under an answer, and a replica that does not know it has both. Its log has more
    calls than that of the other, and ends before the call that was answered."""
    lab = Lab()
    lab.lost = lambda source, to, message: (
        isinstance(message, SyncPrepare) or (isinstance(message, GapCommit | Entries) and 1 in (source, to))
    )
    lab.call("a")
    lab.call("x", 1)
    lab.call("y", 1)
    lab.call("b", 0, 2)
    lab.wait_ms(6)
    assert lab.answers == {"a": "a", "b": "a b"}
    assert (lab.log(1), lab.log(2)) == (["a", "x", "y"], ["a", "b"])
    lab.lost = without(Entries, SyncPrepare)
    lab.crash(0)
    lab.wait_ms(150)
    lab.finish("a", "b")


def a_checkpoint_lies_ahead_of_what_is_certain() -> None:
    """The leader has run ahead when a part of its log becomes certain: only the state there counts."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=1))
    lab.lost = without(SyncReply)
    packet = lab.call("a")
    lab.wait_ms(6)
    lab.call("x", 0)
    assert lab.log(0) == ["a", "x"]
    lab.lost = lambda source, to, message: isinstance(message, Entries | FetchEntries)
    lab.wait_ms(6)
    assert lab.delivered[0] == ["a"]
    assert [one.stamp.clock for one in lab.checkpoints[0]] == [packet.clock]
    assert lab.replica(0).log.base.rank == (packet.clock, 1)
    lab.finish("a")


def a_question_tells_that_a_slot_exists() -> None:
    """A flush tells a follower alone that there was a last call: the leader learns it from the question."""
    lab = Lab()
    lab.stamp(1, "lost")
    lab.flush(2)
    lab.wait(4 * MILLISECOND)
    assert lab.kinds(GapCommit) > 0
    assert {slot for node in (0, 1, 2) for slot in lab.replica(node).log.noops} == {(1, 1)}
    lab.call("b")
    lab.finish("b")


def in_parts() -> Lab:
    """Eight calls have become certain, and a follower has executed the first two of them."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, spread=4))
    for name in "abcdefgh":
        lab.call(name)
    while not lab.delivered[1]:
        lab.wait(MILLISECOND // 10)
    assert lab.delivered[1] == ["a", "b"] and lab.delivered[0] == [*"abcdefgh"]
    return lab


def what_is_certain_is_executed_in_parts() -> None:
    """A follower goes on confirming calls between two parts, and ends them before the next proposal."""
    lab = in_parts()
    before = lab.kinds(Reply)
    lab.give(lab.stamp(1, "i"), 1)
    lab.flush(1)
    assert lab.kinds(Reply) == before + 1 and lab.delivered[1] == ["a", "b"]
    for certain in ("abcd", "abcdef", "abcdefgh"):
        lab.wait(OPTIONS.sync_ns // 8)
        assert lab.delivered[1] == [*certain]
    lab.wait(OPTIONS.sync_ns // 8)
    assert lab.delivered[1] == [*"abcdefgh"]
    lab.finish(*"abcdefghi")


def a_view_ends_between_two_parts() -> None:
    """What was not executed yet is certain again in the next view."""
    lab = in_parts()
    lab.crash(0)
    lab.wait_ms(150)
    assert lab.delivered[1] == lab.delivered[2] == [*"abcdefgh"]
    lab.start(0, forgot=True)
    lab.finish(*"abcdefgh")


def a_replica_that_returns_executes_what_it_may_have_delivered_at_once() -> None:
    """It delivers nothing of that, so it says only once up to where its state is restored."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, spread=4, checkpoint_every=64))
    for name in "abcdefgh":
        lab.call(name)
    lab.wait_ms(12)
    lab.crash(2)
    lab.delivered[2].clear()
    lab.start(2, forgot=True)
    lab.tell_all()
    lab.wait_ms(150)
    assert lab.delivered[2] == [] and sum(one.restored for one in lab.checkpoints[2]) == 1
    lab.finish(*"abcdefgh")


def a_chunk_is_lost() -> None:
    """A state is asked for again from where it stopped, and nothing of it comes twice."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=64))
    lab.lost = lambda source, to, message: 2 in (source, to)
    for name in "abcdef":
        lab.call(name, 0, 1)
        lab.wait_ms(6)
    seen = 0

    def every_other(source: int, to: int, message: object) -> bool:
        nonlocal seen
        seen += type(message).__name__ == "BaseChunk"
        return type(message).__name__ == "BaseChunk" and seen % 2 == 1

    lab.lost = every_other
    lab.wait_ms(60)
    assert seen > 4
    lab.finish(*"abcdef")
    assert any(one.restored for one in lab.checkpoints[2])


def a_state_is_fetched_while_calls_go_on() -> None:
    """The others take many checkpoints before a replica has all chunks of a state: what it fetches is kept
    for it, and the log behind it too."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=256))
    lab.lost = lambda source, to, message: 2 in (source, to)
    for number in range(20):
        lab.call(f"early{number}", 0, 1)
        lab.wait_ms(1)
    lab.wait_ms(10)
    chunks = 0

    def slowly(source: int, to: int, message: object) -> bool:
        nonlocal chunks
        chunks += isinstance(message, BaseChunk)
        return isinstance(message, BaseChunk) and chunks % 4 != 1  # it is asked for again and again

    lab.lost = slowly
    for number in range(150):
        lab.call(f"late{number}")
        lab.wait_ms(1)
        if lab.delivered[2]:
            break
    assert any(one.restored for one in lab.checkpoints[2])
    assert number > 20, "it took a while"
    assert number < 140, "calls did not have to stop"
    lab.finish("early0", "early19", "late0")


LOGS = (
    what_is_certain_is_executed_in_parts,
    a_view_ends_between_two_parts,
    a_replica_that_returns_executes_what_it_may_have_delivered_at_once,
    a_state_is_fetched_while_calls_go_on,
    the_longest_log_has_fewer_calls,
    a_checkpoint_lies_ahead_of_what_is_certain,
    a_question_tells_that_a_slot_exists,
    a_chunk_is_lost,
)

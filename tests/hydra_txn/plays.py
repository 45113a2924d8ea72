"""Plays of shards that lose messages, each of which ends with all of a call in its shards, or nothing.

`test_plays.py` plays each; `test_mutants.py` plays it again with something broken on purpose, which must
break a promise.
"""

import msgspec

from ordercast.components.cross_shard.messages import (
    FindMessages,
    FoundMessages,
    Gone,
    Promised,
    Question,
    Shown,
)
from ordercast.core import Message, NodeId
from tests.hand_driven import Chosen
from tests.hydra_txn.lab import OPTIONS, SHARDS, Lab

FIRST, SECOND = SHARDS[0], SHARDS[1]


def without(*kinds: type[Message], to: tuple[NodeId, ...] = (), source: tuple[NodeId, ...] = ()) -> Chosen:
    """Lose all messages of some kinds, or those to, or of, some nodes."""
    return lambda sender, receiver, message: (
        isinstance(message, kinds) and (not to or receiver in to) and (not source or sender in source)
    )


def any_of(*losses: Chosen) -> Chosen:
    """Lose what any of these loses."""
    return lambda source, to, message: any(lost(source, to, message) for lost in losses)


def between(*nodes: NodeId) -> Chosen:
    """Cut these off from the other replicas of their shard."""
    return lambda source, to, message: (source in nodes) != (to in nodes) and source < 6 and to < 6


# Found


def a_shard_lacks_what_the_other_has() -> None:
    """All of the first shard miss it: the coordinator finds it in the second."""
    lab = Lab()
    lab.give(lab.stamp("both"), *SECOND)
    lab.call("next")
    lab.wait_ms(4)
    lab.finish("both", "next")
    assert lab.kinds(FoundMessages) > 0
    assert lab.kinds(Gone) == 0


def one_replica_has_it() -> None:
    """One replica of six is enough for it to count, whatever the others promised before."""
    lab = Lab()
    lab.lost = without(Promised)
    packet = lab.stamp("rare")
    lab.call("next")
    lab.wait_ms(3)
    assert all(lab.replica(node).book for node in (*FIRST, *SECOND))
    lab.give(packet, 5)
    lab.wait_ms(8)
    assert not any(lab.replica(node).book for node in (*FIRST, *SECOND))
    lab.finish("rare", "next")


def a_message_to_one_shard_is_lost() -> None:
    """Its shard cannot know that it went nowhere else, so it is searched for everywhere too."""
    lab = Lab()
    lab.stamp("lost", (0,))
    lab.call("next")
    lab.wait_ms(4)
    assert lab.kinds(Gone) > 0
    lab.finish("next", never=("lost",))


# Gone


def nobody_has_it() -> None:
    """It is gone for good: a late copy counts nowhere, and the client's retry counts once."""
    lab = Lab()
    packet = lab.stamp("late")
    lab.call("next")
    lab.wait_ms(6)
    assert lab.answered["next"] == {0, 1}
    lab.give(packet)
    lab.wait_ms(20)
    assert lab.order(0) == lab.order(1) == ["next"]
    lab.call("late", sequencer=2)
    lab.finish("late", "next")


def _dropped_by_the_first_shard(lab: Lab, *, lost: Chosen) -> None:
    """The first shard notices that it lacks a message, and gives it up; the second has not noticed. Then the
    message comes there."""
    packet = lab.stamp("late")
    lab.lost = lost
    lab.flush(*FIRST)
    lab.wait_ms(8, *FIRST)
    assert lab.kinds(Gone) > 0
    lab.give(packet, *SECOND)


def a_late_copy_comes_to_another_shard() -> None:
    """A drops, B is not to take it any more, though it has lost nothing itself."""
    lab = Lab()
    _dropped_by_the_first_shard(lab, lost=without())
    lab.wait_ms(4)
    lab.finish(never=("late",))


def a_shard_is_not_told() -> None:
    """B has promised, and does not hear of the decision: it waits with the message, and asks."""
    lab = Lab()
    _dropped_by_the_first_shard(lab, lost=without(Gone, to=SECOND))
    lab.wait_ms(30)
    waits = lab.order(1) == []
    lab.finish(never=("late",))
    assert waits


def a_shard_changes_its_view_after_it_promised() -> None:
    """The promise goes along to the next view."""
    lab = Lab()
    lost = without(Gone, to=SECOND)
    packet = lab.stamp("late")
    lab.lost = lost
    lab.flush(*FIRST)
    lab.wait_ms(8, *FIRST)
    lab.begin_view(1, *SECOND)
    lab.wait_ms(8, *FIRST)
    assert [lab.replica(node).view for node in SECOND] == [1, 1, 1]
    lab.give(packet, *SECOND)
    lab.wait_ms(20)
    lab.finish(never=("late",))


def a_shard_restarts_after_it_promised() -> None:
    """All of its replicas at once: what was promised is on their disks."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, durable=True))
    packet = lab.stamp("late")
    lab.lost = without(Gone, to=SECOND)
    lab.flush(*FIRST)
    lab.wait_ms(8, *FIRST)
    lab.restart(*SECOND)
    lab.wait_ms(20, *FIRST)
    lab.give(packet, *SECOND)
    lab.wait_ms(20)
    lab.finish(never=("late",))


def a_shard_forgets_a_promise_of_few() -> None:
    """One replica promised, and is not in the next view: the view is free to take the message."""
    lab = Lab()
    packet = lab.stamp("late")
    lab.lost = any_of(without(Question, to=SECOND[1:]), without(Shown))
    lab.flush(*FIRST)
    lab.wait_ms(2, *FIRST)
    assert [len(lab.replica(node).book) for node in SECOND] == [1, 0, 0]
    lab.lost = any_of(between(3), without(Question, to=SECOND), without(Shown))
    lab.begin_view(1, 4, 5)
    lab.wait_ms(4, *FIRST)
    assert [lab.replica(node).view for node in SECOND[1:]] == [1, 1]
    lab.give(packet, 4, 5)
    lab.flush(4, 5)
    assert [len(lab.replica(node).log.entries) for node in SECOND] == [0, 1, 1]
    lab.finish("late")


# Who decides


def only_the_leader_has_it() -> None:
    """Its followers promise not to take it, and no word of the leader comes: that decides nothing. Then they
    have it from the leader."""
    lab = Lab()
    packet = lab.stamp("held")
    lab.lost = any_of(without(Shown), without(Question, to=(3,)), without(Gone, to=SECOND), between(3))
    lab.give(packet, 3)
    lab.flush(3, *FIRST)
    lab.wait_ms(3, *FIRST)
    assert [len(lab.replica(node).book) for node in SECOND] == [0, 1, 1]
    lab.lost = any_of(without(Shown), without(Question, to=(3,)), without(Gone, to=SECOND))
    lab.wait_ms(12, *FIRST)
    assert lab.order(1) == ["held"]
    lab.finish("held")
    assert lab.kinds(Gone) == 0


def promises_of_two_views() -> None:
    """The old view's leader promises, and a follower in the new one; the new leader takes the message."""
    lab = Lab()
    packet = lab.stamp("held")
    lab.lost = any_of(without(Question, to=SECOND[1:]), without(Shown))
    lab.flush(*FIRST)
    lab.wait_ms(2, *FIRST)
    assert [len(lab.replica(node).book) for node in SECOND] == [1, 0, 0]
    quiet = any_of(without(Shown), without(Gone, to=SECOND), without(Question, to=(3,)))
    lab.lost = any_of(between(3), quiet, without(Question))
    lab.begin_view(1, 4, 5)
    lab.wait_ms(2, *FIRST)
    lab.give(packet, 4)
    lab.flush(4)
    lab.lost = any_of(between(3), between(4), quiet)
    lab.wait_ms(20, *FIRST)
    assert [len(lab.replica(node).book) for node in SECOND[::2]] == [1, 1]
    lab.lost = any_of(between(3), quiet)
    lab.wait_ms(12, *FIRST)
    assert lab.order(1) == ["held"]
    lab.finish("held")
    assert lab.kinds(Gone) == 0


def the_coordinator_loses_its_leader() -> None:
    """It had decided, and told one shard alone. The next leader says the same."""
    lab = Lab(coordinators=3)
    packet = lab.stamp("late")
    lab.lost = without(Gone, to=SECOND)
    lab.flush(*FIRST)
    lab.wait_ms(8, *FIRST)
    assert lab.kinds(Gone) > 0
    chief = lab.chief()
    lab.crash(chief)
    lab.lost = without(Shown)
    lab.give(packet, *SECOND)
    lab.wait_ms(150)
    assert lab.chief() != chief
    lab.finish(never=("late",))


def the_coordinator_loses_its_leader_in_a_question() -> None:
    """All have promised, and nobody has counted it: who waits asks the next leader."""
    lab = Lab(coordinators=3)
    packet = lab.stamp("late")
    lab.lost = without(Promised)
    lab.call("next")
    lab.wait_ms(4)
    lab.crash(lab.chief())
    lab.wait_ms(2)
    lab.lost = without()
    lab.wait_ms(200)
    assert lab.answered["next"] == {0, 1}
    lab.give(packet)
    lab.finish("next", never=("late",))


# Sequencers that are removed


def _partly_beyond(lab: Lab, *, holder: NodeId) -> None:
    """A sequencer is removed with 3 and 0 as its last numbers. One replica, which was not asked, has a
    message with the numbers 2 and 1: it counts nowhere, though 2 alone would."""
    lab.call("a", (0,))
    beyond = lab.stamp("beyond")
    after = lab.stamp("after", (0,))
    lab.give(beyond, holder)
    lab.give(after, *FIRST)
    lab.flush(holder)
    asked = [node for node in (*FIRST, *SECOND) if node != holder]
    lab.plan_removal(1, *asked)
    lab.decide_removal(1, after.clock, (3, 0), *asked)


def a_stamp_is_beyond_in_another_shard() -> None:
    """The leader has the message in its log, by a number that counts."""
    lab = Lab()
    lab.lost = between(0)
    _partly_beyond(lab, holder=0)
    assert [entry.number for entry in lab.replica(0).log.entries[-2:]] == [2, 3]
    lab.tell_steps(0)
    lab.wait_ms(2)
    lab.finish("a", "after", never=("beyond",))


def what_is_found_is_beyond() -> None:
    """Who shows it does not know of the removal: it is found, and counts nowhere nevertheless."""
    lab = Lab()
    lab.lost = between(3)
    _partly_beyond(lab, holder=3)
    lab.wait_ms(10)
    lab.finish("a", "after", never=("beyond",))
    assert lab.kinds(FoundMessages) > 0


PLAYS = (
    a_shard_lacks_what_the_other_has,
    one_replica_has_it,
    a_message_to_one_shard_is_lost,
    nobody_has_it,
    a_late_copy_comes_to_another_shard,
    a_shard_is_not_told,
    a_shard_changes_its_view_after_it_promised,
    a_shard_restarts_after_it_promised,
    a_shard_forgets_a_promise_of_few,
    only_the_leader_has_it,
    promises_of_two_views,
    the_coordinator_loses_its_leader,
    the_coordinator_loses_its_leader_in_a_question,
    a_stamp_is_beyond_in_another_shard,
    what_is_found_is_beyond,
)
TOLD = (FindMessages, Question, Promised, Shown, FoundMessages, Gone)
"""What the coordinator and replicas tell each other."""


def one_kind_is_lost_for_a_while(kind: type[Message], *, is_there: bool) -> None:
    """Nothing of it comes, so nothing is decided that a shard does not hear of later."""
    lab = Lab(coordinators=3)
    lab.lost = without(kind)
    packet = lab.stamp("rare")
    if is_there:
        lab.give(packet, 3)  # a leader: without it nothing is gone
    lab.call("next")
    lab.wait_ms(20)
    lab.finish("next", *(["rare"] if is_there else []), never=() if is_there else ("rare",))


def first_of_a_kind_is_lost(kind: type[Message], number: int, *, is_there: bool) -> None:
    """One message of it is lost."""
    lab = Lab(coordinators=3)
    count = 0

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        nonlocal count
        count += isinstance(message, kind)
        return isinstance(message, kind) and count == number

    lab.lost = lost
    packet = lab.stamp("rare")
    if is_there:
        lab.give(packet, 3)  # a leader: without it nothing is gone
    lab.call("next")
    lab.wait_ms(20)
    assert lab.answered["next"] == {0, 1}
    lab.finish("next", *(["rare"] if is_there else []), never=() if is_there else ("rare",))


def a_process_crashes(number: int, node: NodeId | None, *, is_there: bool) -> bool:
    """A replica, or the leader of the coordinator, crashes after so many messages about what was lost.
    Returns whether it did."""
    lab = Lab(coordinators=3)
    packet = lab.stamp("rare")
    lab.crash_at = number, lab.chief() if node is None else node
    if is_there:
        lab.give(packet, 3)
    lab.call("next")
    lab.wait_ms(12)
    crashed = lab.crash_at is None
    lab.crash_at = None
    lab.give(packet, 1, 2, 4)
    lab.finish("next")
    return crashed

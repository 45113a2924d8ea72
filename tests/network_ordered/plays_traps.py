"""Plays about the traps of replication over many sequencers: see `plays.py`."""

import msgspec

from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.messages import (
    Entries,
    FetchEntries,
    GapCommit,
    GapRequest,
    StartView,
    StepsTold,
    SyncCommit,
    SyncPrepare,
)
from ordercast.core import MILLISECOND
from ordercast.protocols.hydra.messages import Revived
from tests.network_ordered.lab import CLIENT, OPTIONS, SERVICE, Lab
from tests.network_ordered.plays import without


def a_boundary_above_what_a_group_knows() -> None:
    """Another group has reported a higher clock: a message of the removed sequencer that only the leader has
    lies below the boundary, so configurations of deliveries cannot tell the logs apart; steps can."""
    lab = Lab(groups=2)
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: to in SERVICE
    only = lab.stamp(1, "only")
    lab.give(only, 0)
    packet = lab.stamp(2, "b")
    lab.give(packet, 0)
    lab.flush(0)
    lab.plan("removed", 1, 1, 2)
    lab.decide("removed", 1, lab.clock + 1000, 1, 1, 2)
    lab.give(packet, 1, 2)
    lab.flush(1, 2, only=(2,))
    assert lab.answers.get("b", "a b") == "a b", "'only' never was"
    lab.tell(0)
    lab.flush(only=(2,))
    lab.finish("a", "b")


def who_has_reported_takes_nothing_beyond() -> None:
    """Two replicas have reported the end of a sequencer; the third has more, and becomes the leader. What it
    brings along must not be answered: the step cuts it off."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    packet = lab.stamp(1, "beyond")
    lab.give(packet, 1)
    lab.flush(1)
    lab.plan("removed", 1, 0, 2)
    lab.crash(0)
    lab.wait_ms(120)
    assert lab.kinds(StartView) > 0
    assert "beyond" not in lab.answers
    lab.decide("removed", 1, packet.clock - 1, 1)
    lab.call("b", sequencer=2)
    lab.finish("a", "b")
    assert lab.answers["b"] == "a b"


def steps_are_told_by_replicas() -> None:
    """A replica that the service does not reach learns of a step from the others in a view change."""
    lab = Lab()
    lab.call("a")
    lab.plan("removed", 1, 0, 1)
    lab.decide("removed", 1, lab.clock, 1, 0, 1)
    assert lab.replica(2).tag == 0
    lab.crash(0)
    lab.call("b", sequencer=2)
    lab.wait_ms(100)
    assert lab.kinds(StepsTold) > 0
    assert lab.answers["b"] == "a b"
    lab.finish("a", "b")


def a_replica_without_memory_returns() -> None:
    """It answered a client together with the leader, forgot, and the leader died: it must not vote."""
    lab = Lab()
    lab.lost = without(SyncPrepare, SyncCommit)
    lab.call("a", 0, 1)
    assert lab.answers == {"a": "a"}
    lab.crash(1)
    lab.disks[1] = {}
    lab.start(1, forgot=True)
    # The leader is cut off now: the others alone cannot know of the call.
    lab.lost = lambda source, to, message: 0 in (source, to)
    lab.call("b", 1, 2, sequencer=2)
    lab.wait_ms(200)
    assert "b" not in lab.answers, "two replicas, of which one forgot, are no majority"
    lab.lost = without()
    lab.tell()
    lab.wait_ms(400)
    lab.finish("a")
    lab.call("b", sequencer=2)
    lab.finish("a", "b")


def an_old_view_does_not_take_back_a_replica() -> None:
    """A leader that does not know of its successor must not bring a replica back that has forgotten."""
    lab = Lab()
    lab.call("z")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: 0 in (source, to)
    lab.begin_view(1, 1, 2)
    lab.call("a", 1, 2)
    assert lab.answers["a"] == "z a"
    assert lab.replica(0).is_normal and lab.replica(0).leads
    lab.crash(2)
    lab.disks[2] = {}
    lab.lost = lambda source, to, message: not isinstance(message, Revived)
    lab.start(2, forgot=True)
    lab.tell(0)
    lab.lost = lambda source, to, message: 1 in (source, to)
    lab.replica(0).views.tell(2)
    lab.pump()
    assert not lab.replica(2).is_normal
    lab.lost = without()
    lab.tell()
    lab.wait_ms(400)
    lab.finish("z", "a")


def going_back_crosses_a_removal() -> None:
    """A replica delivered beyond a removal and goes back to before it: the removed lane is still needed."""
    lab = Lab()
    lab.lost = without(SyncPrepare, SyncCommit)
    first, second = lab.stamp(1, "a"), lab.stamp(1, "b")
    lab.give(first)
    lab.give(second, 1, 2)
    lab.flush(1, 2)
    lab.plan("removed", 1, 1, 2)
    lab.decide("removed", 1, second.clock, 2)
    lab.call("c", sequencer=2)
    lab.wait_ms(2)
    lab.crash(0)
    lab.finish("a", "b", "c")


def a_noop_is_undone() -> None:
    """A slot was given up at one replica only, which misses the view change: the others have its call."""
    lab = Lab()
    lab.lost = without(GapRequest, Entries, GapCommit, SyncPrepare)
    packet = lab.stamp(1, "a")
    lab.give(packet, 1, 2)
    lab.flush()
    lab.call("b")
    lab.wait_ms(6)
    assert lab.replica(0).log.noops
    lab.lost = lambda source, to, message: 0 in (source, to)
    lab.wait_ms(120)
    assert lab.answers["b"] == "a b"
    lab.finish("a", "b")


def only_what_is_certain_is_a_checkpoint() -> None:
    """A leader runs ahead and is replaced: the state that it had then counts for nothing."""
    lab = Lab(options=ahead_options())
    lab.lost = lambda source, to, message: source == 0
    lab.call("x", 0)
    lab.call("y", 0)
    assert lab.checkpoints[0] == []
    lab.lost = lambda source, to, message: 0 in (source, to) or isinstance(message, Entries)
    lab.call("b", 1, 2)
    lab.wait_ms(120)
    assert lab.answers["b"] == "b"
    lab.finish("b")


def ahead_options() -> ReplicaOptions:
    """A checkpoint after every call."""
    return msgspec.structs.replace(OPTIONS, checkpoint_every=1)


def a_leader_executed_too_much() -> None:
    """A deposed leader undoes its execution, its table included: the retry is executed again."""
    lab = Lab()
    lab.lost = lambda source, to, message: source == 0 or isinstance(message, Entries)
    lab.call("x", 0)
    lab.lost = lambda source, to, message: 0 in (source, to) or isinstance(message, Entries | FetchEntries)
    lab.call("b", 1, 2)
    lab.wait_ms(120)
    assert lab.answers["b"] == "b"
    lab.lost = without()
    lab.wait_ms(120)
    lab.call("x", sequencer=2)
    assert lab.answers["x"] == "b x"
    lab.finish("b", "x")


def a_read_of_a_deposed_leader() -> None:
    """A leader that does not know of its successor must not answer a read alone."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: {source, to} - {CLIENT} in ({0, 1}, {0, 2}, {1, 0}, {2, 0})
    lab.call("b", 1, 2)
    lab.begin_view(1, 1, 2)
    assert lab.answers["b"] == "a b"
    assert lab.replica(0).is_normal and lab.replica(0).leads
    lab.read("read", 0)
    assert "read" not in lab.answers
    lab.read("read again")
    assert lab.answers["read again"] == "a b"
    lab.finish("a", "b")


def a_read_of_what_is_not_certain() -> None:
    """A read shows nothing that only the leader has: the others say how far their logs are."""
    lab = Lab()
    lab.call("a")
    lab.call("x", 0)
    lab.read("read")
    assert "read" not in lab.answers
    lab.lost = lambda source, to, message: 0 in (source, to) or isinstance(message, Entries)
    lab.crash(0)
    lab.call("b", 1, 2)
    lab.wait_ms(120)
    lab.read("read again")
    assert lab.answers["read again"] == "a b"
    lab.finish("a", "b")


def a_state_is_transferred() -> None:
    """A replica was away for so long that the others have forgotten the log."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=64))
    lab.call("a")
    lab.lost = lambda source, to, message: 2 in (source, to)
    for name in "bcdefgh":
        lab.call(name, 0, 1)
        lab.wait_ms(6)
    lab.finish(*"abcdefgh")
    assert any(one.restored for one in lab.checkpoints[2])


def all_restart_at_once() -> None:
    """Durable replicas lose nothing that was answered."""
    lab = Lab(durable=True)
    lab.lost = without(SyncPrepare)
    lab.call("a")
    lab.call("b", 0, 1)
    assert lab.answers == {"a": "a", "b": "a b"}
    for node in (0, 1, 2):
        lab.crash(node)
    lab.lost = without()
    lab.now += 100 * MILLISECOND
    for node in (0, 1, 2):
        lab.start(node)
    lab.finish("a", "b")
    lab.call("c", sequencer=2)
    lab.finish("a", "b", "c")


def a_sequencer_is_added_below_what_was_delivered() -> None:
    """A replica that had not reported delivered beyond the start of a new sequencer: it goes back, and the
    messages of the new one fall into their places."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    start = lab.clock
    late = lab.stamp(2, "late", start + 50)
    lab.lost = lambda source, to, message: 0 in (source, to)
    lab.give(late, 0)
    lab.clock = start + 100
    lab.flush(0)
    assert lab.log(0) == ["a", "late"]
    lab.decide("added", 3, start, 0, 1, 2)
    early = lab.stamp(3, "early", start + 20)
    lab.give(early)
    lab.clock = start + 200
    lab.lost = without()
    lab.tell()
    lab.give(late)
    lab.give(early)
    lab.flush()
    assert lab.log(0) == ["a", "early", "late"]
    lab.finish("a", "early", "late")


def a_view_change_with_a_vote_of_an_old_view() -> None:
    """The longest log does not count if its replica last worked in an earlier view."""
    lab = Lab(durable=True)
    lab.lost = without(SyncPrepare, SyncCommit)
    lab.call("a")
    lab.lost = lambda source, to, message: 0 in (source, to) or isinstance(message, SyncPrepare | SyncCommit)
    first = lab.stamp(1, "x")
    lab.give(first, 0)
    lab.flush(0)
    second = lab.stamp(1, "y")
    lab.give(second, 0)
    lab.flush(0)
    lab.lost = lambda source, to, message: (
        0 in (source, to) or isinstance(message, SyncPrepare | SyncCommit | Entries)
    )
    lab.call("b", 1, 2)
    lab.wait_ms(100)
    assert lab.answers["b"] == "a b"
    lab.crash(1)
    lab.lost = without(SyncPrepare, SyncCommit)
    lab.wait_ms(150)
    lab.finish("a", "b")


def a_leader_that_gave_up_a_slot_restarts() -> None:
    """The other one that gave it up is away, and the third holds the call: the slot stays empty."""
    lab = Lab(durable=True)
    lab.call("a")
    lab.lost = lambda source, to, message: 2 in (source, to)
    lab.give(lab.stamp(1, "x"), 2)
    lab.call("b", 0, 1)
    lab.wait_ms(30)
    assert lab.answers["b"] == "a b", "the slot of x was given up by two of three"
    for node in (0, 1):
        lab.crash(node)
    lab.lost = without()
    lab.start(0)
    lab.wait_ms(150)
    lab.start(1)
    lab.finish("a", "b")


TRAPS = (
    a_boundary_above_what_a_group_knows,
    who_has_reported_takes_nothing_beyond,
    steps_are_told_by_replicas,
    a_replica_without_memory_returns,
    an_old_view_does_not_take_back_a_replica,
    going_back_crosses_a_removal,
    a_noop_is_undone,
    only_what_is_certain_is_a_checkpoint,
    a_leader_executed_too_much,
    a_read_of_a_deposed_leader,
    a_read_of_what_is_not_certain,
    a_state_is_transferred,
    all_restart_at_once,
    a_sequencer_is_added_below_what_was_delivered,
    a_view_change_with_a_vote_of_an_old_view,
    a_leader_that_gave_up_a_slot_restarts,
)

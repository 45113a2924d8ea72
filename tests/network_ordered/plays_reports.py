"""Plays about what a replica may not take after it has told the configuration service how far it is."""

import msgspec

from ordercast.components.network_ordered.messages import Entries, SyncPrepare
from ordercast.components.network_ordered.place import LogEntry
from ordercast.protocols.hydra.messages import Groupcast, Revived
from tests.network_ordered.lab import OPTIONS, Lab
from tests.network_ordered.plays import without


def entry_of(packet: Groupcast) -> LogEntry:
    """A packet as another replica supplies it."""
    return LogEntry(packet.clock, packet.sequencer, packet.numbers[0], packet.sender, packet.payload)


def lab_with_a_call_beyond() -> tuple[Lab, Groupcast]:
    """The leader has a call of sequencer 1 that the others have not seen when they report its end."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    packet = lab.stamp(1, "beyond")
    lab.lost = without(SyncPrepare)
    lab.give(packet, 0)
    lab.flush(0)
    assert lab.log(0) == ["a", "beyond"]
    lab.plan("removed", 1, 1, 2)
    assert [(node, report.numbers) for node, report in lab.reports] == [(1, (1,)), (2, (1,))]
    return lab, packet


def an_answer_to_a_gap_brings_what_was_not_reported() -> None:
    """The answer of the leader comes late: the replica that asked has reported meanwhile."""
    lab, packet = lab_with_a_call_beyond()
    lab.drivers[1].receive(0, Entries(0, 0, (entry_of(packet),), ()))
    lab.flush(1)
    assert "beyond" not in lab.answers
    lab.decide("removed", 1, packet.clock - 1, 1)
    lab.call("b", sequencer=2)
    lab.finish("a", "b")
    assert lab.log(0) == ["a", "b"]


def a_synchronisation_brings_what_was_not_reported() -> None:
    """The leader wants to make certain what the others have not reported."""
    lab, packet = lab_with_a_call_beyond()
    lab.lost = without()
    lab.wait(20_000_000)
    assert "beyond" not in lab.answers
    assert lab.log(1) == lab.log(2) == ["a"]
    lab.decide("removed", 1, packet.clock - 1, 1)
    lab.call("b", sequencer=2)
    lab.finish("a", "b")
    assert lab.log(0) == ["a", "b"]


def a_state_brings_what_was_not_reported() -> None:
    """Two replicas have more for certain than the third has reported: it waits for the step."""
    options = msgspec.structs.replace(OPTIONS, checkpoint_every=1, keep=0)
    lab = Lab(options=options)
    lab.call("a")
    lab.wait_ms(10)
    lab.plan("removed", 1, 2)
    packet = lab.stamp(1, "b")
    lab.give(packet, 0, 1)
    lab.flush(0, 1)
    lab.wait(40_000_000)
    assert lab.delivered[0] == ["a", "b"]
    assert lab.log(2) == ["a"]
    lab.decide("removed", 1, packet.clock, 2)
    lab.finish("a", "b")
    assert any(one.restored for one in lab.checkpoints[2])


def an_addition_was_reported() -> None:
    """Two replicas have said that a new sequencer may begin above their last call. The leader has a later
    one: what the new sequencer stamps may come before it."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = without(SyncPrepare)
    start = lab.clock
    late = lab.stamp(2, "late", start + 500)
    lab.give(late, 0)
    lab.flush(0)
    assert lab.log(0) == ["a", "late"]
    lab.numbers[3] = 0
    lab.plan("added", 3, 1, 2)
    lab.clock = start
    lab.flush(1, 2, only=(3,))
    reported = {node: report.clock for node, report in lab.reports}
    assert reported == {1: start + 10, 2: start + 10}
    lab.clock = start + 500
    lab.lost = without()
    lab.wait(20_000_000)
    assert "late" not in lab.answers and lab.log(1) == ["a"]
    lab.decide("added", 3, start + 10, 0)
    lab.give(lab.stamp(3, "early", start + 20))
    lab.finish("a", "early", "late")
    assert lab.log(1) == ["a", "early", "late"]


def a_log_with_other_steps_is_not_merged() -> None:
    """A replica that has not heard of a step votes with a call that the step has cut off."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    packet = lab.stamp(1, "beyond")
    lab.give(packet, 2)
    lab.flush(2)
    assert lab.log(2) == ["a", "beyond"]
    lab.lost = lambda source, to, message: 2 in (source, to)
    lab.plan("removed", 1, 0, 1)
    lab.decide("removed", 1, packet.clock - 1, 1, 0, 1)
    lab.crash(0)
    lab.lost = without()
    lab.wait_ms(120)
    assert lab.log(1) == lab.log(2) == ["a"]
    lab.call("b", sequencer=2)
    assert lab.answers["b"] == "a b"
    lab.finish("a", "b")


def who_has_forgotten_reports_nothing() -> None:
    """Its report would say that there was nothing, and cut off what its earlier life answered."""
    lab = Lab()
    lab.lost = without(SyncPrepare)
    lab.call("a", 0, 1)
    assert lab.answers == {"a": "a"}
    lab.crash(1)
    lab.disks[1] = {}
    lab.lost = lambda source, to, message: not isinstance(message, Revived)
    lab.start(1, forgot=True)
    lab.tell_all()
    lab.plan("removed", 1, 1, 2)
    assert {node for node, _ in lab.reports} == {2}, "of those, only replica 2 knows what it has"
    lab.lost = without()
    lab.plan("removed", 1, 0)
    numbers = max(report.numbers[0] for _, report in lab.reports)
    lab.decide("removed", 1, lab.clock, numbers)
    lab.finish("a")
    lab.wait_ms(300)
    assert lab.replica(1).is_normal
    lab.finish("a")


def a_call_is_answered_with_the_tag_of_its_step() -> None:
    """Replies with different tags do not match. So replicas reply anew after a step, and a client that has
    all of them need not call again."""
    lab = Lab()
    lab.lost = without(SyncPrepare)
    packet = lab.stamp(1, "a")
    lab.give(packet, 0)
    lab.flush(0)
    lab.plan("removed", 2)
    lab.decide("removed", 2, lab.clock + 5, 0)
    lab.give(packet, 1, 2)
    lab.flush(only=(1,))
    assert lab.answers == {"a": "a"}
    lab.finish("a")


REPORTS = (
    an_answer_to_a_gap_brings_what_was_not_reported,
    a_synchronisation_brings_what_was_not_reported,
    a_state_brings_what_was_not_reported,
    an_addition_was_reported,
    a_log_with_other_steps_is_not_merged,
    who_has_forgotten_reports_nothing,
    a_call_is_answered_with_the_tag_of_its_step,
)

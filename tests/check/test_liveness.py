"""Progress and probes: both judges find silences and probes that are missing, and nothing else."""

import msgspec
import pytest

from ordercast.core import MICROSECOND, Guarantees, NodeId
from ordercast.judge import Violation, audit, verdict
from ordercast.trace import LOST, PROBE, Kind, Stretch, build_table
from tests.check.traces import NOTIFIED, Trace

SILENCE = 10 * MICROSECOND
END = 1000 * MICROSECOND


def judged(trace: Trace, *stretches: Stretch, probed: bool = False) -> list[Violation]:
    """What both judges find, which is the same."""
    described = msgspec.structs.replace(trace.description, stretches=stretches, probed=probed)
    found = verdict(described, trace.events).violations
    assert audit(described, build_table("test", trace.events)).violations == found
    return found


def stretch(begin: int = 0, end: int = END, receivers: tuple[NodeId, ...] = (0, 1, 2)) -> Stretch:
    return Stretch(begin, end, SILENCE, (3, 4), receivers)


def quiet_node(late: int = 0) -> Trace:
    """Nodes 0 and 1 deliver at once; node 2 delivers after so many more rows, or never."""
    trace = Trace(Guarantees())
    message = trace.submit()
    trace.deliver(0, message)
    trace.deliver(1, message)
    if late:
        trace.time_ns += late
        trace.deliver(2, message)
    return trace


def test_a_receiver_that_is_silent_is_found_and_named() -> None:
    (found,) = judged(quiet_node(), stretch())
    assert (found.property, found.nodes) == ("progress", (3, 2))
    assert found.messages and "node 2" in found.detail and "any more" in found.detail


def test_a_silence_that_ends_too_late_says_when() -> None:
    (found,) = judged(quiet_node(late=SILENCE), stretch())
    assert "until" in found.detail
    assert judged(quiet_node(late=MICROSECOND), stretch()) == []


@pytest.mark.parametrize(
    "spared",
    [
        stretch(receivers=(0, 1)),
        stretch(begin=5 * MICROSECOND),
        stretch(end=SILENCE),
        Stretch(0, END, SILENCE, (4,), (0, 1, 2)),
    ],
)
def test_only_what_the_stretch_covers_is_judged(spared: Stretch) -> None:
    assert judged(quiet_node(), spared) == []


def test_any_delivery_or_notification_of_the_group_breaks_the_silence() -> None:
    trace = Trace(NOTIFIED)
    trace.submit()
    for node in range(3):
        trace.drop(node, 1)
    assert [one for one in judged(trace, stretch()) if one.property == "progress"] == []


def test_another_group_does_not_break_the_silence() -> None:
    trace = Trace(Guarantees(), {0: (0, 1), 1: (0, 2)})
    first = trace.submit(groups=(0,))
    other = trace.submit(groups=(1,))
    for node in (0, 1):
        trace.deliver(node, first)
    trace.deliver(2, other)
    (found,) = judged(trace, stretch())
    assert found.nodes == (3, 0) and "group 1" in found.detail


def probing(*receivers: NodeId, kind: Kind = Kind.DELIVER) -> Trace:
    trace = Trace(Guarantees(out_of_order=True))
    message = trace.submit()
    trace.events[-1] = trace.events[-1]._replace(label=PROBE)
    for node in receivers:
        trace.deliver(node, message)
        trace.events[-1] = trace.events[-1]._replace(kind=kind)
    return trace


def test_a_probe_that_is_missing_somewhere_is_found() -> None:
    (found,) = judged(probing(0, 2), probed=True)
    assert (found.property, found.nodes) == ("probe", (3, 1))
    assert judged(probing(0, 1, 2), probed=True) == []


def test_a_probe_out_of_order_does_not_count() -> None:
    (found,) = judged(probing(0, 1, 2, kind=Kind.OUT_OF_ORDER), probed=True)
    assert found.nodes == (3, 0, 1, 2)


def test_receivers_that_are_down_owe_no_probe_but_those_that_lost_their_state_do() -> None:
    for back, wanted in ((False, []), (True, [(3, 1)])):
        trace = Trace(Guarantees())
        trace.row(1, Kind.CRASH)
        if back:
            trace.row(1, Kind.RECOVER, label=LOST)
        message = trace.submit()
        trace.events[-1] = trace.events[-1]._replace(label=PROBE)
        for node in (0, 2):
            trace.deliver(node, message)
        assert [found.nodes for found in judged(trace, probed=True)] == wanted


def test_other_messages_are_no_probes() -> None:
    assert judged(quiet_node(), probed=True) == []

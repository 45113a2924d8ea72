"""What every honest run keeps beside its order: configurations, answers, digests, and reasons of drops."""

import msgspec
import pytest

from ordercast.core import Gaps, Guarantees
from ordercast.trace import Fate, Kind
from tests.check.traces import Trace

NOTHING = Guarantees(out_of_order=True)
GAPS = Guarantees(gaps=Gaps.NOTIFIED)
GROUPS = {0: (0, 1), 1: (1, 2)}


# Configurations


def test_a_configuration_begins_with_its_view_at_each_node() -> None:
    trace = Trace(NOTHING)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, config=0)
    trace.view(0, 3, 0, 1, 2)
    trace.deliver(0, b, config=3)
    trace.deliver(1, a, config=0)
    trace.clean()
    trace.deliver(1, b, config=3)
    found = trace.only("configuration")
    assert (found.nodes, found.messages) == ((1,), (b,))
    assert "node 1 has a row deliver 3#1 in configuration 3 at 7 us" in found.detail


def test_a_notification_names_its_configuration_too() -> None:
    trace = Trace(GAPS)
    trace.row(0, Kind.DROP, groups=(0,), numbers=(1,), stamp_issuer=9, config=2)
    found = trace.only("configuration")
    assert (found.nodes, found.messages) == ((0,), ())
    assert "a row drop in configuration 2" in found.detail


@pytest.mark.parametrize("kind", [Kind.DELIVER, Kind.OUT_OF_ORDER])
def test_a_view_that_comes_later_or_of_another_group(kind: Kind) -> None:
    trace = Trace(NOTHING, GROUPS)
    a, b = trace.submit(groups=(0,)), trace.submit(groups=(0, 1))
    trace.view(1, 2, 1, 2, group=1)
    trace.deliver(1, b, kind=kind, config=2)
    trace.clean()
    trace.deliver(1, a, kind=kind, config=2)
    assert trace.only("configuration").messages == (a,)
    trace.view(1, 2, 0, 1, group=0)
    assert trace.only("configuration").messages == (a,)


@pytest.mark.parametrize(("label", "count"), [("saved", 0), ("lost", 1)])
def test_a_node_without_its_state_begins_with_the_first_configuration(label: str, count: int) -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.view(0, 1, 0, 1, 2)
    trace.crash(0)
    trace.recover(0, label)
    trace.deliver(0, a, config=1)
    assert [violation.property for violation in trace.judge()] == ["configuration"] * count


def test_a_node_that_goes_on_from_an_earlier_run_has_a_configuration() -> None:
    trace = Trace(NOTHING)
    trace.description = msgspec.structs.replace(trace.description, resumed=(0,))
    a, b, c = trace.submit(), trace.submit(), trace.submit()
    trace.deliver(0, a, config=7)
    trace.clean()
    trace.view(0, 8, 0, 1, 2)
    trace.deliver(0, b, config=8)
    trace.clean()
    trace.deliver(0, c, config=7)  # this run does not say that it was installed
    assert trace.only("configuration").messages == (c,)
    trace.events = trace.events[:3]
    trace.crash(0)
    trace.recover(0, "lost")
    trace.deliver(0, a, config=7)
    assert trace.only("configuration").nodes == (0,)


# Answers


def complete(trace: Trace, message: int | None, node: int = 3) -> None:
    trace.row(node, Kind.COMPLETE, message=message)


def test_answers_come_after_all_deliveries() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a, kind=Kind.OUT_OF_ORDER)
    trace.deliver(2, a)
    complete(trace, a)
    trace.clean()


def test_answers_before_a_delivery() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(0, a)
    complete(trace, a)
    trace.deliver(1, a)
    trace.deliver(2, a)
    complete(trace, a)
    found = trace.only("completion")
    assert (found.nodes, found.messages, found.step) == ((3, 1, 2), (a,), 2)
    assert "all answers to 3#0 (at 3 us), which nodes 1, 2 had not delivered" in found.detail


def test_a_notification_is_no_answer() -> None:
    trace = Trace(GAPS)
    a = trace.submit()
    trace.numbered(0, a, 1)
    trace.numbered(1, a, 1)
    trace.drop(2, 1)
    complete(trace, a)
    assert trace.only("completion").nodes == (3, 2)


@pytest.mark.parametrize("message", [None, 77])
def test_answers_to_what_nobody_submitted(message: int | None) -> None:
    trace = Trace(NOTHING)
    complete(trace, message)
    found = trace.only("completion")
    assert found.nodes == (3,)
    assert "which nobody submitted" in found.detail


def test_a_delivery_in_an_earlier_life_was_answered() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(0, a)
    trace.crash(0)
    trace.recover(0, "lost")
    trace.deliver(1, a)
    trace.deliver(0, a)
    complete(trace, a)
    assert trace.only("completion").nodes == (3, 2)
    trace.deliver(2, a)
    complete(trace, a)
    trace.only("completion")


def test_machines_have_no_common_order() -> None:
    trace = Trace(NOTHING, source="live")
    a = trace.submit()
    complete(trace, a)
    for node in range(2):
        trace.deliver(node, a)
    assert trace.only("completion").nodes == (3, 2)
    trace.deliver(2, a)
    trace.clean()


# Digests


@pytest.mark.parametrize("kind", [Kind.DELIVER, Kind.OUT_OF_ORDER])
def test_a_delivery_without_a_digest(kind: Kind) -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(1, a, kind=kind, digest=None)
    found = trace.only("digests")
    assert (found.nodes, found.messages) == ((1,), (a,))
    assert f"node 1 has a row {kind} of 3#0 without a digest" in found.detail


def test_a_submission_without_a_digest() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.events[-1] = trace.events[-1]._replace(digest=None)
    trace.deliver(1, a)
    assert trace.only("digests").nodes == (3,)


# Reasons of drops


def dropped(trace: Trace, number: int, label: str | None) -> None:
    trace.row(0, Kind.DROP, groups=(0,), numbers=(number,), stamp_issuer=9, config=0, label=label)


@pytest.mark.parametrize("fate", [Fate.RECEIVED, Fate.UNSENT])
def test_a_drop_without_a_reason(fate: Fate) -> None:
    trace = Trace(GAPS)
    dropped(trace, 1, Fate.LOST)
    dropped(trace, 2, str(fate))
    found = trace.only("drop-reason")
    assert (found.nodes, found.step) == ((0,), 1)
    assert "of the drop of number 2 of issuer 9 in group 0, which" in found.detail


@pytest.mark.parametrize("label", [None, Fate.LOST, Fate.LATE, Fate.REFUSED, "a note"])
def test_a_drop_with_a_reason_or_without_a_label(label: str | None) -> None:
    trace = Trace(GAPS)
    dropped(trace, 1, label)
    trace.clean()


def test_a_live_run_knows_nothing_of_packets() -> None:
    trace = Trace(GAPS, source="live")
    dropped(trace, 1, Fate.RECEIVED)
    trace.clean()

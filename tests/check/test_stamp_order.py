"""Receivers deliver in the order of stamps, and tag only what comes after a later stamp."""

import pytest

from ordercast.core import Guarantees, MessageId, Order
from ordercast.trace import Kind
from tests.check.traces import Trace

TAGS = Guarantees(order=Order.ACROSS, out_of_order=True)


def stamped(trace: Trace, node: int, message: MessageId, clock: int, issuer: int = 9) -> None:
    trace.deliver(node, message, stamp_clock=clock, stamp_issuer=issuer)


def tagged(trace: Trace, node: int, message: MessageId, clock: int, issuer: int = 9) -> None:
    trace.deliver(node, message, kind=Kind.OUT_OF_ORDER, stamp_clock=clock, stamp_issuer=issuer)


def start(groups: int = 1) -> tuple[Trace, list[MessageId]]:
    trace = Trace(TAGS, {0: (0, 1, 2)} if groups == 1 else {0: (0, 1), 1: (1, 2)})
    return trace, [trace.submit() for _ in range(4)]


@pytest.mark.parametrize("later", [(5, 10), (6, 1)])
def test_stamps_compare_by_clock_then_by_issuer(later: tuple[int, int]) -> None:
    trace, (a, b, *_) = start()
    stamped(trace, 0, a, 5)
    stamped(trace, 0, b, *later)
    trace.clean()
    trace, (a, b, *_) = start()
    stamped(trace, 0, a, *later)
    stamped(trace, 0, b, 5)
    found = trace.only("stamp-order")
    assert (found.nodes, found.messages) == ((0,), (b, a))
    assert f"node 0 delivered 3#1 (at 6 us) with stamp (5, 9) after 3#0 (at 5 us) with stamp {later}" in (
        found.detail
    )


def test_one_receiver_is_enough_and_each_late_delivery_is_told() -> None:
    trace, (a, b, c, d) = start()
    for message, clock in ((a, 5), (b, 9), (c, 6), (d, 7)):
        stamped(trace, 1, message, clock)
    assert {violation.messages for violation in trace.judge()} == {(c, b), (d, b)}


def test_deliveries_without_a_stamp_say_nothing() -> None:
    trace, (a, b, c, _) = start()
    stamped(trace, 0, a, 5)
    trace.deliver(0, b)
    trace.deliver(0, c, stamp_clock=3)
    trace.clean()


def test_where_no_order_is_promised_stamps_come_in_any_order() -> None:
    trace = Trace(Guarantees(out_of_order=True))
    a, b = trace.submit(), trace.submit()
    stamped(trace, 0, a, 5)
    stamped(trace, 0, b, 4)
    trace.clean()


@pytest.mark.parametrize(("label", "count"), [("saved", 1), ("lost", 0)])
def test_a_receiver_without_its_state_is_a_new_one(label: str, count: int) -> None:
    trace, (a, b, *_) = start()
    stamped(trace, 0, a, 5)
    trace.crash(0)
    trace.recover(0, label)
    stamped(trace, 0, b, 4)
    assert [violation.property for violation in trace.judge()] == ["stamp-order"] * count


def test_a_tag_after_a_later_stamp() -> None:
    trace, (a, b, c, _) = start()
    stamped(trace, 0, a, 5)
    tagged(trace, 0, b, 4)
    tagged(trace, 0, c, 4, 8)
    trace.clean()


def test_a_tag_without_a_reason() -> None:
    trace, (a, b, *_) = start()
    stamped(trace, 0, a, 5)
    tagged(trace, 0, b, 6)
    found = trace.only("stamp-order")
    assert (found.nodes, found.messages) == ((0,), (b, a))
    assert "3#1 (at 6 us) with stamp (6, 9) tagged as out of order, but the last in order was 3#0" in (
        found.detail
    )


def test_a_tag_where_nothing_was_in_order() -> None:
    trace, (a, b, *_) = start()
    tagged(trace, 0, b, 6)
    tagged(trace, 0, a, 5)  # another tagged delivery is no reason
    assert [v.messages for v in trace.judge()] == [(b,), (a,)]
    assert "but the last in order was none" in trace.judge()[0].detail


@pytest.mark.parametrize(("label", "count"), [("saved", 0), ("lost", 1)])
def test_a_reason_is_kept_over_a_restart_with_state(label: str, count: int) -> None:
    trace, (a, b, *_) = start()
    stamped(trace, 0, a, 5)
    trace.crash(0)
    trace.recover(0, label)
    tagged(trace, 0, b, 4)
    assert [violation.property for violation in trace.judge()] == ["stamp-order"] * count


def test_a_message_that_a_receiver_does_not_get_may_have_passed_the_place() -> None:
    trace, (a, b, *_) = start(2)
    tagged(trace, 0, a, 6)  # node 0 is not in group 1
    trace.clean()
    tagged(trace, 1, b, 6, 8)  # node 1 is in both
    assert trace.only("stamp-order").nodes == (1,)


OVERLAPS = Guarantees(order=Order.OVERLAPS, out_of_order=True)
BOTH = {0: (0, 1), 1: (0, 1)}


@pytest.mark.parametrize("order", [Order.OVERLAPS, Order.GROUP, Order.ACROSS])
def test_where_groups_overlap_each_has_stamps_of_its_own(order: Order) -> None:
    trace = Trace(Guarantees(order=order), BOTH)
    a, b, c = (trace.submit(groups=(group,)) for group in (0, 1, 0))
    stamped(trace, 0, a, 5, issuer=0)
    stamped(trace, 0, b, 1, issuer=1)
    stamped(trace, 0, c, 6, issuer=0)
    if order is Order.OVERLAPS:
        trace.clean()
    else:
        assert trace.only("stamp-order").messages == (b, a)


def test_where_groups_overlap_the_stamps_of_each_grow() -> None:
    trace = Trace(OVERLAPS, BOTH)
    a, b, c, d = (trace.submit(groups=(group,)) for group in (0, 1, 0, 1))
    stamped(trace, 0, a, 5, issuer=0)
    stamped(trace, 0, b, 1, issuer=1)
    stamped(trace, 0, c, 4, issuer=0)
    stamped(trace, 0, d, 2, issuer=1)
    found = trace.only("stamp-order")
    assert (found.nodes, found.messages) == ((0,), (c, a))
    trace.crash(0)
    trace.recover(0, "lost")
    stamped(trace, 0, c, 4, issuer=0)
    trace.only("stamp-order")


def test_where_groups_overlap_a_message_of_another_group_may_have_passed_the_place() -> None:
    trace = Trace(OVERLAPS, BOTH)
    a = trace.submit(groups=(0,))
    tagged(trace, 0, a, 5, issuer=0)
    trace.clean()
    trace = Trace(OVERLAPS)  # there is no other group
    tagged(trace, 0, trace.submit(), 5, issuer=0)
    trace.only("stamp-order")

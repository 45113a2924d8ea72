import msgspec
import pytest

from ordercast.core import Agreement, Gaps, Guarantees, MessageId
from ordercast.trace import Kind
from tests.check.traces import NOTIFIED, Trace

GAPS = Guarantees(gaps=Gaps.NOTIFIED)
LOOSE = msgspec.structs.replace(NOTIFIED, agreement=Agreement.NONE, validity=False)


def start(promise: Guarantees = LOOSE, count: int = 3) -> tuple[Trace, list[MessageId]]:
    trace = Trace(promise)
    return trace, [trace.submit() for _ in range(count)]


def test_numbers_in_a_row_are_clean() -> None:
    trace, messages = start()
    for number, message in enumerate(messages, 1):
        trace.numbered(0, message, number)
    trace.clean()


def test_a_gap() -> None:
    trace, (a, _, c) = start()
    trace.numbered(0, a, 1)
    trace.numbered(0, c, 3)
    found = trace.only("drop-detection")
    assert (found.nodes, found.messages) == ((0,), (c,))
    assert "3#2, number 3 of issuer 9 in group 0" in found.detail
    assert "neither message nor notification for number 2" in found.detail


def test_a_gap_at_the_start() -> None:
    trace, (a, *_) = start()
    trace.numbered(0, a, 5)
    assert "for numbers 1 to 4" in trace.only("drop-detection").detail


def test_a_gap_that_is_notified_in_time_or_early() -> None:
    trace, (a, b, c) = start()
    trace.drop(0, 3)
    trace.numbered(0, a, 1)
    trace.drop(0, 2)
    trace.numbered(0, b, 4)
    trace.numbered(0, c, 5)
    trace.clean()


def test_a_late_notification_is_told_once() -> None:
    trace, (a, _, c) = start()
    trace.numbered(0, a, 1)
    trace.drop(0, 3)
    trace.numbered(0, c, 5)
    trace.drop(0, 2)
    trace.drop(0, 4)
    trace.only("drop-detection")


def test_a_message_after_its_notification() -> None:
    trace, (a, *_) = start()
    trace.drop(0, 1)
    trace.numbered(0, a, 1)
    assert "after the notification that it was dropped" in trace.only("drop-detection").detail


def test_a_notification_after_its_message() -> None:
    trace, (a, *_) = start()
    trace.numbered(0, a, 1)
    trace.drop(0, 1)
    assert "after it had delivered that message" in trace.only("drop-detection").detail


def test_a_notification_twice() -> None:
    trace, _ = start()
    trace.drop(0, 1)
    trace.drop(0, 1)
    trace.drop(0, 7)
    trace.drop(0, 7)
    assert "twice" in trace.only("drop-detection", 2).detail


def test_two_messages_with_one_number() -> None:
    trace, (a, b, c) = start()
    trace.numbered(0, a, 1)
    trace.numbered(0, b, 2)
    trace.numbered(0, c, 1, clock=1)
    found = {violation.property: violation.messages for violation in trace.judge()}
    assert found == {"drop-detection": (c,), "stamp-owner": (a, c)}


def test_messages_of_one_bundle_share_a_number() -> None:
    trace, (a, b, c) = start()
    trace.numbered(0, a, 1)
    trace.numbered(0, b, 1)
    trace.numbered(0, c, 2)
    trace.clean()
    trace = Trace(GAPS)
    trace.numbered(0, trace.submit(3), 1)
    trace.numbered(0, trace.submit(4), 1)  # of another sender: no bundle
    assert {violation.property for violation in trace.judge()} == {"drop-detection", "stamp-owner"}


def test_each_issuer_group_and_receiver_counts_for_itself() -> None:
    trace = Trace(GAPS, {0: (0, 1), 1: (0,), 2: (2,)})
    a, b, c = trace.submit(groups=(0, 2)), trace.submit(groups=(0, 1)), trace.submit(groups=(0,))
    trace.numbered(0, a, 1, 7)  # node 0 has no part in group 2
    trace.numbered(0, b, 2, 1)
    trace.numbered(0, c, 1, issuer=8)
    trace.numbered(1, c, 1, issuer=8)
    trace.clean()
    trace.numbered(1, b, 2, 1)
    assert trace.only("drop-detection").nodes == (1,)


def test_too_few_numbers() -> None:
    trace = Trace(LOOSE, {0: (0,), 1: (1,)})
    trace.numbered(0, trace.submit(groups=(0, 1)), 1)
    assert "1 numbers for 2 groups" in trace.only("drop-detection").detail


def test_a_restart_goes_on_with_its_state_and_begins_anywhere_without() -> None:
    for label in ("saved", "lost"):
        trace, (a, b, c) = start()
        trace.numbered(0, a, 1)
        trace.crash(0)
        trace.recover(0, label)
        trace.numbered(0, b, 4)
        trace.numbered(0, c, 5)
        if label == "saved":
            trace.only("drop-detection")
        else:
            trace.clean()


def test_numbers_that_began_in_an_earlier_run_begin_anywhere() -> None:
    for resumed in ((), (0,)):
        trace, (a, b, _) = start()
        trace.description = msgspec.structs.replace(trace.description, resumed=resumed)
        trace.removed(0, 1, 8, 7)
        trace.numbered(0, a, 4)
        trace.numbered(0, b, 5)
        if resumed:
            trace.clean()
            trace.numbered(0, trace.submit(), 7)
            assert "notification for number 6" in trace.only("drop-detection").detail
        else:
            assert "got neither message nor notification" in trace.only("drop-detection", 2).detail


def test_not_promised_not_judged() -> None:
    trace, (a, *_) = start(Guarantees())
    trace.numbered(0, a, 5)
    trace.clean()


def test_a_message_tagged_as_out_of_order_uses_its_number_too() -> None:
    trace, (a, *_) = start(Guarantees(gaps=Gaps.NOTIFIED, out_of_order=True))
    trace.drop(0, 1)
    trace.deliver(0, a, kind=Kind.OUT_OF_ORDER, numbers=(1,), stamp_issuer=9)
    trace.only("drop-detection")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stamp_issuer": 9},
        {"numbers": (), "stamp_issuer": 9},
        {"numbers": (None,), "stamp_issuer": 9},
        {"numbers": (1,)},
    ],
)
def test_a_delivery_without_number_or_issuer(fields: dict[str, object]) -> None:
    trace, (a, *_) = start()
    trace.deliver(0, a, **fields)
    assert "delivered 3#0 without numbers or without their issuer" in trace.only("drop-detection").detail


def test_numbers_at_the_ends_of_what_a_trace_can_hold() -> None:
    trace, (a, b, c) = start()
    trace.crash(0)
    trace.recover(0, "lost")
    trace.numbered(0, a, -(2**63))
    trace.numbered(0, b, 2**63 - 1)
    trace.drop(0, 2**63 - 2)
    trace.numbered(0, c, 0)
    trace.only("drop-detection")

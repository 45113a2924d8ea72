import pytest

from ordercast.core import Guarantees, RemoteError, message_id
from ordercast.judge import judge
from ordercast.trace import Kind
from tests.check.traces import NOTIFIED, Trace

TWO_GROUPS = {0: (0, 1), 1: (1, 2)}


def test_each_message_once_to_each_receiver_is_clean() -> None:
    trace = Trace()
    trace.deliver_to_all(trace.submit(), trace.submit())
    trace.clean()


def test_a_second_delivery() -> None:
    trace = Trace()
    a, b = trace.submit(), trace.submit()
    trace.deliver_to_all(a, b)
    trace.deliver(1, a)
    found = trace.only("integrity")
    assert (found.nodes, found.messages) == ((1,), (a,))
    assert found.step == len(trace.events) - 1
    assert "node 1 delivered 3#0" in found.detail
    assert "a second time" in found.detail


@pytest.mark.parametrize("first", [Kind.DELIVER, Kind.OUT_OF_ORDER])
@pytest.mark.parametrize("second", [Kind.DELIVER, Kind.OUT_OF_ORDER])
def test_out_of_order_is_a_delivery_too(first: Kind, second: Kind) -> None:
    trace = Trace(Guarantees(out_of_order=True))
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.events.pop()
    trace.deliver(2, a, kind=first)
    trace.deliver(2, a, kind=second)
    assert trace.only("integrity").nodes == (2,)


def test_a_message_that_nobody_submitted() -> None:
    trace = Trace()
    made_up = message_id(3, 7)
    trace.deliver(0, made_up)
    found = trace.only("integrity")
    assert (found.nodes, found.messages) == ((0,), (made_up,))
    assert "3#7" in found.detail
    assert "had not been submitted" in found.detail


def test_a_delivery_before_its_submission() -> None:
    trace = Trace()
    trace.deliver(0, message_id(3, 0), submitted_ns=None)
    trace.deliver_to_all(trace.submit())
    del trace.events[2]  # node 0 has it already
    assert trace.only("integrity").nodes == (0,)


def test_a_delivery_timed_before_its_submission() -> None:
    trace = Trace()
    trace.time_ns = 1_000_000
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.events[2] = trace.events[2]._replace(time_ns=5, clock_ns=5)
    found = trace.only("integrity")
    assert found.nodes == (1,)
    assert "was submitted only at 1.001 ms" in found.detail


def test_a_receiver_that_was_not_addressed() -> None:
    trace = Trace(groups=TWO_GROUPS)
    a = trace.submit(groups=(0,))
    trace.deliver_to_all(a)
    trace.deliver(2, a)
    found = trace.only("integrity")
    assert found.nodes == (2,)
    assert "group 0, which node 2 does not receive" in found.detail


def test_other_groups_than_submitted() -> None:
    trace = Trace(groups=TWO_GROUPS)
    a = trace.submit(groups=(0,))
    trace.deliver(0, a)
    trace.deliver(1, a, groups=(1,))
    assert "went to group 1, but was submitted to group 0" in trace.only("integrity").detail


def test_groups_that_the_run_does_not_have() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a, groups=(0, 44))
    trace.deliver(2, a, groups=None)
    assert trace.only("integrity", 2).nodes == (1,)


def test_a_submission_to_a_group_that_the_run_does_not_have() -> None:
    trace = Trace()
    a = trace.submit(groups=(0, 44))
    for node in range(3):
        trace.deliver(node, a, groups=(0,))
    assert "submitted 3#0 (at 1 us) to groups 0, 44" in trace.only("integrity").detail
    trace = Trace()
    trace.submit(groups=(44,))
    trace.only("integrity")


def test_changed_bytes() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a, digest=96)
    trace.deliver(2, a)
    assert "has digest 96" in trace.only("integrity").detail


def test_another_time_of_submission() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a, submitted_ns=7)
    trace.deliver(2, a, submitted_ns=None)
    assert "names 7 ns as its time of submission, but was submitted at 1 us" in trace.only("integrity").detail


def test_a_sender_that_takes_another_name() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.events[0] = trace.events[0]._replace(node=4)
    found = trace.only("integrity")
    assert (found.nodes, found.messages) == ((4,), (a,))


def test_a_second_submission() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.row(3, Kind.SUBMIT, message=a, groups=(0,), digest=a % 97)
    assert "again" in trace.only("integrity").detail


def test_bytes_that_are_no_message() -> None:
    trace = Trace()
    trace.row(1, Kind.DELIVER, groups=(0,), label="bundle of 3 bytes is shorter than its head")
    found = trace.only("integrity")
    assert found.messages == ()
    assert "shorter than its head" in found.detail


def test_a_restart_with_saved_state_allows_no_second_delivery() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.crash(1)
    trace.recover(1, "saved")
    trace.deliver(1, a)
    trace.only("integrity")


def test_a_restart_without_state_begins_a_new_receiver() -> None:
    trace = Trace()
    a, b = trace.submit(), trace.submit()
    trace.deliver_to_all(a, b)
    trace.crash(1)
    trace.recover(1, "lost")
    trace.deliver(1, a, b)
    trace.clean()
    trace.deliver(1, a)
    trace.only("integrity")


def test_notifications_and_views_of_strange_groups_or_members() -> None:
    trace = Trace(groups=TWO_GROUPS)
    trace.drop(2, 1, group=0)
    trace.drop(2, 1, group=44)
    trace.view(0, 1, 0, 1, group=44)
    trace.view(0, 1, 0, 77)
    found = trace.only("integrity", 4)
    assert found.nodes == (2,)


@pytest.mark.parametrize("kind", [k for k in Kind if k.value not in ("send", "receive", "lose")])
def test_rows_of_unknown_nodes_are_the_trace_writers_fault(kind: Kind) -> None:
    trace = Trace()
    trace.row(99, kind, message=1, groups=(0,), numbers=(1,), stamp_issuer=1, config=1, members=(0,))
    if kind.value == "complete":  # no oracle judges it
        return
    with pytest.raises(RemoteError, match="node 99"):
        judge(trace.description, trace.events)


@pytest.mark.parametrize("kind", [Kind.SUBMIT, Kind.DROP, Kind.VIEW])
def test_rows_without_their_fields_are_the_trace_writers_fault(kind: Kind) -> None:
    trace = Trace()
    trace.row(0, kind)
    with pytest.raises(RemoteError, match=r"event 0: a .* must have"):
        judge(trace.description, trace.events)


def test_a_description_that_contradicts_itself_is_refused() -> None:
    trace = Trace(groups={0: (0, 1)})
    trace.description.groups[0] = (0, 88)
    with pytest.raises(RemoteError, match="receiver 88"):
        trace.judge()


def test_where_integrity_is_not_promised_the_gate_is_silent() -> None:
    trace = Trace(Guarantees(integrity=False))
    a = trace.submit()
    trace.deliver(0, a, a, message_id(4, 9))
    trace.clean()


def test_the_sender_that_the_protocol_names() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a, peer=3)
    trace.deliver(1, a, peer=4)
    trace.deliver(2, a, peer=None)
    found = trace.only("integrity")
    assert found.nodes == (1,)
    assert "delivered 3#0 (at 3 us), which the protocol said came from node 4" in found.detail


def test_out_of_order_where_that_is_not_promised() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a)
    trace.deliver(2, a, kind=Kind.OUT_OF_ORDER)
    assert "not promised" in trace.only("integrity").detail


@pytest.mark.parametrize(
    "fields",
    [
        {"groups": (0, 99), "numbers": (1, 2), "stamp_issuer": 9},
        {"groups": (0, 1), "numbers": (1, 2), "stamp_issuer": 9},
        {"groups": (0,), "numbers": (None,), "stamp_issuer": 9},
        {"groups": (None,), "numbers": (1,), "stamp_issuer": 9},
        {"groups": (0,), "numbers": (), "stamp_issuer": 9},
        {"groups": (0,), "numbers": (1,), "stamp_issuer": None},
    ],
)
def test_a_notification_is_of_one_group_and_number(fields: dict[str, object]) -> None:
    trace = Trace(NOTIFIED, groups=TWO_GROUPS)
    trace.row(1, Kind.DROP, **fields)
    with pytest.raises(RemoteError, match="event 0: a notification must have one group, one number"):
        trace.judge()

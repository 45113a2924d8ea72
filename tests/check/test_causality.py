"""FIFO order of each sender, and causal order by host."""

import msgspec

from ordercast.core import Causality, Guarantees
from ordercast.trace import Kind
from tests.check.traces import Trace

FIFO = Guarantees(causality=Causality.FIFO)
CAUSAL = Guarantees(causality=Causality.CAUSAL)


def test_messages_of_one_sender_out_of_order() -> None:
    for promise, name in ((FIFO, "fifo"), (CAUSAL, "causal")):
        trace = Trace(promise)
        a, b = trace.submit(), trace.submit()
        trace.deliver(0, a, b)
        trace.deliver(1, b, a)
        found = trace.only(name)
        assert found.nodes[0] == 1
        assert found.messages == (a, b)
        assert "node 1 delivered 3#0 (at 6 us) after 3#1 (at 5 us)" in found.detail


def test_a_missing_message_is_not_out_of_order() -> None:
    for promise in (FIFO, CAUSAL):
        trace = Trace(promise)
        a, b, c = trace.submit(), trace.submit(), trace.submit()
        trace.deliver(0, a, c)
        trace.deliver(1, b, c)
        trace.clean()


def test_messages_of_two_senders_in_any_order() -> None:
    for promise in (FIFO, CAUSAL):
        trace = Trace(promise)
        a, b = trace.submit(3), trace.submit(4)
        trace.deliver(0, a, b)
        trace.deliver(1, b, a)
        trace.clean()


def test_order_of_submission_counts_and_not_the_number_in_the_identity() -> None:
    trace = Trace(FIFO)
    a, b = trace.submit(), trace.submit()
    first, second = trace.events
    trace.events = [
        second._replace(time_ns=first.time_ns, submitted_ns=None),
        first._replace(time_ns=second.time_ns, submitted_ns=None),
    ]
    for event, clock_ns in zip(list(trace.events), (1000, 2000), strict=True):
        trace.events[trace.events.index(event)] = event._replace(clock_ns=clock_ns)
    trace.deliver(0, b, a)
    trace.clean()


def test_out_of_order_deliveries_do_not_count() -> None:
    for promise in (FIFO, CAUSAL):
        trace = Trace(msgspec.structs.replace(promise, out_of_order=True))
        a, b = trace.submit(), trace.submit()
        trace.deliver(0, b)
        trace.deliver(0, a, kind=Kind.OUT_OF_ORDER)
        trace.clean()


def test_restarts() -> None:
    for promise, name in ((FIFO, "fifo"), (CAUSAL, "causal")):
        for label in ("saved", "lost"):
            trace = Trace(promise)
            a, b = trace.submit(), trace.submit()
            trace.deliver(0, b)
            trace.crash(0)
            trace.recover(0, label)
            trace.deliver(0, a)
            if label == "saved":
                trace.only(name)
            else:
                trace.clean()


def answered(promise: Guarantees, hosts: dict[int, int]) -> Trace:
    """Node 0 delivers a question, sender 4 submits the answer; node 1 delivers the answer first."""
    trace = Trace(promise, hosts=hosts)
    question = trace.submit(3)
    trace.deliver(0, question)
    answer = trace.submit(4)
    trace.deliver(1, answer, question)
    return trace


def test_an_answer_before_its_question() -> None:
    together = {0: 0, 4: 0}
    answered(CAUSAL, {}).clean()  # on different hosts, the one did not know of the other
    answered(FIFO, together).clean()
    found = answered(CAUSAL, together).only("causal")
    assert found.nodes == (1,)
    assert found.detail == (
        "node 1 delivered 3#0 (at 5 us) after 4#0 (at 4 us);"
        " host 0 submitted 4#0 when it already knew 3#0 of host 3"
    )


def test_a_chain_through_hosts_that_were_not_addressed() -> None:
    # Node 3 is told of nothing but the last message, and then of the first.
    groups = {0: (0, 3), 1: (1,), 2: (3,)}
    trace = Trace(CAUSAL, groups, hosts={0: 0, 4: 0, 1: 1, 5: 1})
    a = trace.submit(4, groups=(0,))  # host 0, to nodes 0 and 3
    b = trace.submit(4, groups=(1,))  # host 0, to node 1, which learns of a through it
    trace.deliver(1, b)
    c = trace.submit(5, groups=(2,))  # host 1, to node 3
    trace.deliver(3, c, a)
    found = trace.only("causal")
    assert found.messages == (a, c)


def test_a_chain_of_deliveries() -> None:
    groups = {0: (0, 2), 1: (1,), 2: (2,)}
    trace = Trace(CAUSAL, groups, hosts={0: 0, 3: 0, 1: 1, 4: 1})
    trace.deliver(0, a := trace.submit(4, groups=(0,)))  # host 1 to host 0
    b = trace.submit(3, groups=(1,))  # host 0 knows a
    trace.deliver(1, b)
    c = trace.submit(4, groups=(2,))
    trace.deliver(2, c, a)
    assert trace.only("causal").messages == (a, c)


def test_a_chain_of_three_hosts() -> None:
    trace = Trace(CAUSAL, {0: (1, 3), 1: (2,), 2: (3,)})
    a = trace.submit(0, groups=(0,))
    trace.deliver(1, a)
    b = trace.submit(1, groups=(1,))
    trace.deliver(2, b)
    c = trace.submit(2, groups=(2,))
    trace.deliver(3, c, a)
    assert trace.only("causal").messages == (a, c)


def test_what_was_learnt_before_a_message_that_goes_elsewhere() -> None:
    trace = Trace(CAUSAL, {0: (1, 3), 1: (2,), 2: (3,)})
    a = trace.submit(0, groups=(0,))
    trace.deliver(1, a)
    trace.submit(1, groups=(1,))  # node 3 never hears of this one
    c = trace.submit(1, groups=(2,))
    trace.deliver(3, c, a)
    assert trace.only("causal").messages == (a, c)


def test_a_restart_keeps_what_the_host_knew() -> None:
    trace = Trace(CAUSAL, hosts={0: 0, 4: 0})
    question = trace.submit(3)
    trace.deliver(0, question)
    trace.crash(0)
    trace.recover(0, "lost")
    answer = trace.submit(4)
    trace.deliver(1, answer, question)
    trace.only("causal")


def test_concurrent_messages_stay_concurrent_after_a_late_delivery() -> None:
    trace = Trace(CAUSAL, hosts={0: 0, 4: 0})
    a = trace.submit(3)
    b = trace.submit(4)  # before host 0 knows a
    trace.deliver(0, a, b)
    trace.deliver(1, b, a)
    trace.clean()

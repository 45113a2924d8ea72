"""The order of rows of different machines says nothing: only each host's own does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import Causality, Guarantees, Order, message_id
from ordercast.judge import Judge, Violation, judge, verdict
from ordercast.trace import Event
from tests.check.test_properties import conversations
from tests.check.traces import STRICT, Trace

CAUSAL = Guarantees(causality=Causality.CAUSAL)


def whole(trace: Trace) -> list[Violation]:
    return judge(trace.description, iter(trace.events))


@pytest.mark.parametrize("source", ["simulator", "live"])
def test_a_whole_run_may_have_its_rows_in_any_order(source: str) -> None:
    trace = Trace(STRICT, source=source)
    a, b = trace.submit(3), trace.submit(4)
    trace.deliver_to_all(a, b)
    trace.events = trace.events[2:] + trace.events[:2]
    assert whole(trace) == []


def test_a_clock_behind_that_of_the_sender() -> None:
    trace = Trace(STRICT, source="live")
    a = trace.submit()
    trace.deliver_to_all(a)
    early = trace.events[3]._replace(time_ns=5, clock_ns=5)
    trace.events = [early, *trace.events[:3]]
    assert whole(trace) == []
    trace.clean()
    trace.description = msgspec.structs.replace(trace.description, source="simulator")
    (found,) = whole(trace)
    assert "was submitted only at 1 us" in found.detail
    assert "had not been submitted" in trace.only("integrity").detail  # as it came, there was none


def test_a_message_that_nobody_submitted_is_accused_at_its_place() -> None:
    trace = Trace(STRICT, source="live")
    trace.deliver(0, message_id(3, 7))
    trace.deliver_to_all(trace.submit(), trace.submit(4))
    found = trace.only("integrity")
    assert (found.step, found.nodes) == (0, (0,))
    assert whole(trace) == [found]


def test_what_follows_an_early_delivery_keeps_its_order() -> None:
    trace = Trace(Guarantees(order=Order.GROUP), source="live")
    a, b = trace.submit(3), trace.submit(4)
    submissions = trace.events[:]
    trace.events = [submissions[0]]
    trace.deliver(0, b, a)
    trace.deliver(1, a)
    trace.events.append(submissions[1])
    trace.deliver(1, b)
    found = trace.only("total-order")
    assert set(found.messages) == {a, b}
    assert whole(trace) == [found]


def test_a_chain_of_early_deliveries() -> None:
    """Node 0 answers what it delivered early; node 1 delivers the answer before the question."""
    trace = Trace(CAUSAL, source="live", hosts={0: 0, 4: 0})
    question = trace.submit(3)
    trace.deliver(0, question)
    answer = trace.submit(4)
    trace.deliver(1, answer, question)
    trace.events = trace.events[1:] + trace.events[:1]
    found = trace.only("causal")
    assert found.messages == (question, answer)
    assert whole(trace) == [found]


def test_two_nodes_of_one_host_may_have_their_rows_either_way() -> None:
    trace = Trace(STRICT, source="live", hosts={0: 0, 3: 0})
    a = trace.submit(3)
    trace.deliver_to_all(a)
    trace.events = [trace.events[1], trace.events[0], *trace.events[2:]]
    trace.clean()
    assert whole(trace) == []


def test_hosts_that_wait_for_each_other() -> None:
    trace = Trace(STRICT, source="live", hosts={0: 3, 1: 4})
    a, b = trace.submit(3), trace.submit(4)
    trace.deliver(0, b, a)
    trace.deliver(1, b, a)
    trace.deliver(2, b, a)
    first, second, *rest = trace.events
    trace.events = [rest[0], rest[2], first, second, rest[1], *rest[3:]]
    trace.clean()
    assert whole(trace) == []


@given(conversations(), st.data())
def test_no_merge_of_the_hosts_rows_changes_what_is_found(trace: Trace, data: st.DataObject) -> None:
    trace.description = msgspec.structs.replace(trace.description, source="live")
    hosts = {node.id: node.host for node in trace.description.nodes}
    expected = whole(trace)
    queues: dict[int, list[Event]] = {}
    for event in trace.events:
        queues.setdefault(hosts[event.node], []).append(event)
    trace.events = []
    while queues:
        host = data.draw(st.sampled_from(sorted(queues)))
        trace.events.append(queues[host].pop(0))
        if not queues[host]:
            del queues[host]
    for found in (whole(trace), trace.judge()):
        assert {(v.nodes, v.messages[:1]) for v in found} == {(v.nodes, v.messages[:1]) for v in expected}


def test_the_verdict_counts_what_it_does_not_keep() -> None:
    trace = Trace(Guarantees())
    a = trace.submit()
    for _ in range(30):
        trace.deliver(0, a)
    found = verdict(trace.description, trace.events)
    assert len(found.violations) == 20
    assert found.suppressed == {"integrity": 9}
    assert found.violations == judge(trace.description, trace.events)


def test_a_judge_counts_on_after_rows_that_waited() -> None:
    trace = Trace(Guarantees(), source="live")
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(0, a)
    trace.events = [trace.events[1], trace.events[0], trace.events[2]]
    streaming = Judge(trace.description)
    for event in trace.events:
        streaming.observe(event)
    assert [violation.step for violation in streaming.violations] == [2]

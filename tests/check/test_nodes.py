"""Clocks and lives of nodes: judged in every run, whatever it promises."""

import pytest

from ordercast.core import Guarantees
from ordercast.trace import PACKETS, Event, Kind
from tests.check.traces import Trace

NOTHING = Guarantees(out_of_order=True)


def test_a_clock_that_runs_backwards() -> None:
    trace = Trace(NOTHING)
    trace.time_ns = 5_000_000
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, clock_ns=9_000)
    trace.deliver(0, b, clock_ns=8_000)
    found = trace.only("clock")
    assert (found.nodes, found.messages, found.times_ns) == ((0,), (b,), (9_000, 8_000))
    assert "clock of node 0 ran back from 9 us to 8 us (1 us)" in found.detail


def test_clocks_of_two_nodes_have_nothing_to_do_with_each_other() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(0, a, clock_ns=9_000_000)
    trace.deliver(1, a, clock_ns=0)
    trace.deliver(2, a, clock_ns=9_000)
    trace.clean()


@pytest.mark.parametrize("label", ["saved", "lost"])
def test_a_clock_that_a_restart_sets_back(label: str) -> None:
    trace = Trace(NOTHING)
    trace.row(0, Kind.CRASH, clock_ns=900)
    trace.row(0, Kind.RECOVER, clock_ns=100, label=label)
    trace.only("clock")


def test_rows_of_a_node_that_go_back_in_time() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.row(0, Kind.VIEW, groups=(0,), config=1, members=(0,), time_ns=50_000)
    trace.deliver(0, a)
    found = trace.only("clock")
    assert "the time of node 0 ran back from 50 us to 3 us" in found.detail


def test_packets_are_passed_over() -> None:
    trace = Trace(NOTHING)
    trace.deliver(0, trace.submit())
    for kind in PACKETS:
        trace.events.append(Event(-5, -5, 0, kind, peer=77))
        trace.events.append(Event(-5, -5, 88, kind, peer=77))
    trace.clean()


@pytest.mark.parametrize("kind", [Kind.SUBMIT, Kind.COMPLETE, *PACKETS])
def test_no_answer_and_no_packet_is_of_a_node_that_is_down(kind: Kind) -> None:
    trace = Trace(NOTHING)
    message = trace.submit(1)
    trace.crash(1)
    trace.row(1, kind, message=message, groups=(0,))
    found = [violation for violation in trace.judge() if violation.property == "lifecycle"]
    assert [violation.nodes for violation in found] == [(1,)]
    assert f"has a row {kind}" in found[0].detail and "while it is down" in found[0].detail


def test_a_crash_and_a_recovery() -> None:
    trace = Trace(NOTHING)
    trace.crash(0)
    trace.recover(0)
    trace.deliver(0, trace.submit())
    trace.crash(0)
    trace.clean()


@pytest.mark.parametrize("kind", [Kind.DELIVER, Kind.OUT_OF_ORDER, Kind.DROP, Kind.VIEW])
def test_a_dead_node_that_acts(kind: Kind) -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.crash(1)
    if kind is Kind.DROP:
        trace.drop(1, 1)
    elif kind is Kind.VIEW:
        trace.view(1, 1, 0, 1)
    else:
        trace.deliver(1, a, kind=kind)
    found = trace.only("lifecycle")
    assert found.nodes == (1,)
    assert f"node 1 has a row {kind}" in found.detail
    assert "since 2 us, at 3 us" in found.detail


def test_a_dead_sender_that_submits() -> None:
    trace = Trace(NOTHING)
    trace.crash(3)
    a = trace.submit(3)
    assert trace.only("lifecycle").messages == (a,)


def test_a_double_crash_and_a_recovery_without_a_crash() -> None:
    trace = Trace(NOTHING)
    trace.crash(0)
    trace.crash(0)
    assert "crashes while it is down" in trace.only("lifecycle").detail
    trace = Trace(NOTHING)
    trace.recover(0)
    assert "recovers without a crash" in trace.only("lifecycle").detail

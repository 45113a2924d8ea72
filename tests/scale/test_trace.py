"""Runs of the engine, judged by the checks that judge every other run."""

from pathlib import Path

import numpy as np
import pytest

from ordercast.core import LocalError
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import run
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.trace import trace_of, write_trace
from ordercast.judge import verdict
from ordercast.trace import Event, Kind, events_of, find_runs

SETUP = Setup(processes=40, fanout=10, ttl=12, rounds=6, churn=0.05, loss=0.05, clock="logical")
LATENCIES = Latencies(np.empty((0, 0), np.int16), np.arange(1, 400, dtype=np.int32))


def test_the_checks_find_nothing_wrong_with_the_engine() -> None:
    outcome = run(SETUP, LATENCIES, keep=True, cores=1)
    description, events = trace_of(outcome)
    judged = verdict(description, events)
    assert judged.violations == []
    deliveries = [event for event in events if event.kind is Kind.DELIVER]
    assert len(deliveries) == np.count_nonzero(outcome.delivered >= 0) > outcome.deliveries // 2
    assert sum(event.kind is Kind.SUBMIT for event in events) == len(outcome.events)


def test_the_checks_see_two_deliveries_that_are_exchanged() -> None:
    description, events = trace_of(run(SETUP, LATENCIES, keep=True, cores=1))
    at_three = [place for place, event in enumerate(events) if (event.kind, event.node) == (Kind.DELIVER, 3)]
    one, other = at_three[2], at_three[3]
    swapped: list[Event] = list(events)
    swapped[one] = events[other]._replace(time_ns=events[one].time_ns, clock_ns=events[one].clock_ns)
    swapped[other] = events[one]._replace(time_ns=events[other].time_ns, clock_ns=events[other].clock_ns)
    violations = verdict(description, swapped).violations
    assert violations
    assert all(3 in violation.nodes for violation in violations)
    assert {events[one].message, events[other].message} <= set(violations[0].messages)


def test_a_trace_on_disk_is_like_any_other(tmp_path: Path) -> None:
    outcome = run(SETUP, LATENCIES, keep=True, cores=1)
    write_trace(outcome, tmp_path)
    (stored,) = find_runs(tmp_path)
    assert stored.description.protocol == "epto"
    assert list(events_of(stored.table())) == trace_of(outcome)[1]


def test_without_its_deliveries_a_run_has_no_trace() -> None:
    with pytest.raises(LocalError, match="keep=True"):
        trace_of(run(SETUP, LATENCIES, cores=1))

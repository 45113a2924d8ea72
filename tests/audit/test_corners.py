"""Corners in which two judges, or a run and its parts, could come to different verdicts."""

import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from ordercast.core import Guarantees, Order, RemoteError, message_id
from ordercast.judge import audit, may_be_parted
from ordercast.judge.columns.parts import summarize
from ordercast.judge.columns.record import damage_of
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Kind, StoredRun, build_table, find_runs, write_run
from tests.check.traces import STRICT, Trace

GROUPS = {0: (0, 1), 1: (1, 2), 2: (0, 1)}
STRANGER = message_id(9, 0)


def plain_run(messages: int = 100) -> Run:
    return simulate(
        Scenario(protocol="atomic_multicast", senders=2, workload=WorkloadSpec(messages=messages))
    )


def test_a_stranger_has_the_address_that_each_of_its_rows_says() -> None:
    trace = Trace(Guarantees(order=Order.ACROSS), GROUPS)
    trace.deliver(2, STRANGER, groups=(0, 1), stamp_clock=5)
    trace.deliver(0, STRANGER, groups=(1, 2))
    assert {violation.property for violation in trace.judge()} == {"integrity", "stamp"}


def test_a_stranger_that_went_astray_first_may_still_arrive() -> None:
    trace = Trace(Guarantees(), GROUPS)
    trace.deliver(2, STRANGER, groups=(0,))
    trace.deliver(2, STRANGER, groups=(1,), stamp_clock=1)
    trace.deliver(1, STRANGER, groups=(1,), stamp_clock=2)
    assert {violation.property for violation in trace.judge()} == {"integrity", "stamp"}


def test_a_group_named_twice_is_a_matter_of_integrity() -> None:
    trace = Trace(Guarantees(order=Order.GROUP), GROUPS)
    message = trace.submit(groups=(0, 0))
    trace.deliver(0, message)
    assert {violation.property for violation in trace.judge()} == {"integrity"}
    trace = Trace(STRICT, GROUPS)
    trace.row(0, Kind.VIEW, groups=(0, 0), config=1, members=(0, 1))
    assert {violation.property for violation in trace.judge()} == {"integrity"}


def test_nodes_far_apart_take_no_more_memory() -> None:
    run = plain_run(5)
    far = [Event(1, 1, node, Kind.SEND) for node in (2**31 - 1, -(2**31) + 1)]
    table = build_table("test", [tuple(event) for event in [*run.events(), *far]])
    assert audit(run.description, table).violations == []


def test_halves_of_a_file_that_changed_places_are_not_put_right() -> None:
    run = plain_run()
    half = len(run.table) // 2
    table = pa.concat_tables([run.table.slice(half), run.table.slice(0, half)])
    parts = [table.slice(0, len(table) - half), table.slice(len(table) - half)]
    records = [summarize(run.description, part, key=1).record for part in parts]
    assert "order" in {damage.what for damage in damage_of(run.description, records)}
    assert {v.property for v in audit(run.description, table).violations} >= {"clock"}


def test_a_run_with_unusual_nodes_is_not_cut() -> None:
    run = plain_run(5)
    assert may_be_parted(run.description)
    node = msgspec.structs.replace(run.description.nodes[0], id=-1)
    assert not may_be_parted(msgspec.structs.replace(run.description, nodes=(node,)))


def test_what_arrays_take_for_null_is_refused_on_disk(tmp_path: Path) -> None:
    run = plain_run(5)
    events = run.events()
    events[0] = events[0]._replace(digest=-(2**63))
    write_run(tmp_path, run.description, build_table("test", [tuple(event) for event in events]))
    with pytest.raises(RemoteError, match="column digest has the smallest number of its type"):
        stored(tmp_path).table()


def stored(folder: Path) -> StoredRun:
    (run,) = find_runs(folder)
    return run


def swapping(messages: int) -> Trace:
    """One receiver delivers every tenth message after the next."""
    trace = Trace(Guarantees(order=Order.GROUP))
    sent = [trace.submit() for _ in range(messages)]
    swapped = np.arange(messages)
    swapped[::10], swapped[1::10] = swapped[1::10].copy(), swapped[::10].copy()
    trace.deliver(0, *sent)
    trace.deliver(1, *(sent[place] for place in swapped))
    return trace


def seconds(messages: int) -> float:
    trace = swapping(messages)
    table = build_table("test", [tuple(event) for event in trace.events])
    start = time.process_time()
    assert {v.property for v in audit(trace.description, table).violations} == {"total-order"}
    return time.process_time() - start


def test_the_cost_of_a_broken_order_is_linear() -> None:
    seconds(1000)
    small, large = min(seconds(2000) for _ in range(3)), min(seconds(16000) for _ in range(2))
    assert large < 24 * small + 0.1

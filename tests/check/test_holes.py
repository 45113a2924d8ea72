"""Holes are counted where agreement is probabilistic, by both judges alike, and condemn nobody."""

import msgspec
import pytest

from ordercast.core import Agreement, Guarantees, Order
from ordercast.judge import Holes, NodeHoles, audit, judge_selected, verdict
from ordercast.judge.columns import COLUMNS
from ordercast.judge.columns.blocks import select
from ordercast.judge.columns.parts import summarize
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.trace import build_table
from tests.check.traces import Trace

PROBABLE = Guarantees(order=Order.ACROSS, agreement=Agreement.PROBABILISTIC, out_of_order=True)
TWO_GROUPS = {0: (0, 1, 2), 1: (2, 3)}


def counted(trace: Trace) -> Holes | None:
    """What both judges count."""
    told = verdict(trace.description, trace.events)
    table = build_table("test", [tuple(event) for event in trace.events])
    found = audit(trace.description, table)
    assert told.violations == found.violations == []
    assert told.holes == found.holes
    return told.holes


def test_a_receiver_that_lacks_what_another_delivered_has_a_hole() -> None:
    trace = Trace(PROBABLE)
    first, second, third = (trace.submit() for _ in range(3))
    trace.deliver(0, first, second, third)
    trace.deliver(1, first, third)
    trace.deliver(2, third)
    holes = counted(trace)
    assert holes == Holes((NodeHoles(1, "stayed", 1, (second,)), NodeHoles(2, "stayed", 2, (first, second))))
    assert holes.count == 3
    assert holes.elsewhere == 0


def test_there_is_none_where_all_delivered_all() -> None:
    trace = Trace(PROBABLE)
    trace.deliver_to_all(trace.submit(), trace.submit())
    assert counted(trace) == Holes()


def test_a_tagged_delivery_fills_the_hole() -> None:
    trace = Trace(PROBABLE)
    message = trace.submit()
    trace.deliver(0, message)
    trace.deliver(1, message, kind="out-of-order")
    assert counted(trace) == Holes((NodeHoles(2, "stayed", 1, (message,)),))


def test_only_receivers_of_a_messages_groups_can_lack_it() -> None:
    trace = Trace(PROBABLE, TWO_GROUPS)
    one, other, both = trace.submit(), trace.submit(groups=(1,)), trace.submit(groups=(0, 1))
    trace.deliver(2, one, other, both)
    holes = counted(trace)
    assert holes is not None
    assert {found.node: found.messages for found in holes.nodes} == {
        0: (one, both),
        1: (one, both),
        3: (other, both),
    }


def test_what_nobody_delivered_is_no_hole() -> None:
    trace = Trace(PROBABLE)
    trace.submit()
    assert counted(trace) == Holes(nowhere=1)


def test_nodes_that_did_not_stay_are_told_apart() -> None:
    trace = Trace(PROBABLE)
    trace.crash(1)
    trace.crash(2)
    message = trace.submit()
    trace.deliver(0, message)
    trace.recover(2, "lost")
    holes = counted(trace)
    assert holes == Holes((NodeHoles(1, "down", 1, (message,)), NodeHoles(2, "lost", 1, (message,))))
    assert (holes.count, holes.elsewhere) == (0, 2)


def test_one_that_came_back_with_its_state_stayed() -> None:
    trace = Trace(PROBABLE)
    trace.crash(1)
    message = trace.submit()
    trace.recover(1)
    trace.deliver(0, message)
    trace.deliver(2, message)
    assert counted(trace) == Holes((NodeHoles(1, "stayed", 1, (message,)),))


def test_a_delivery_of_an_earlier_life_counts() -> None:
    trace = Trace(PROBABLE)
    message = trace.submit()
    trace.deliver_to_all(message)
    trace.crash(1)
    trace.recover(1, "lost")
    assert counted(trace) == Holes()


def test_many_holes_are_counted_and_the_first_named() -> None:
    trace = Trace(PROBABLE)
    messages = [trace.submit() for _ in range(9)]
    trace.deliver(0, *messages)
    trace.deliver(1, *messages)
    assert counted(trace) == Holes((NodeHoles(2, "stayed", 9, tuple(messages[:5])),))


@pytest.mark.parametrize("agreement", [Agreement.NONE, Agreement.ALL])
def test_they_are_counted_only_where_agreement_is_probabilistic(agreement: Agreement) -> None:
    trace = Trace(msgspec.structs.replace(PROBABLE, agreement=agreement))
    trace.deliver_to_all(trace.submit())
    assert counted(trace) is None


def test_they_are_not_counted_in_a_run_that_did_not_come_to_its_end() -> None:
    trace = Trace(PROBABLE, complete=False)
    trace.deliver(0, trace.submit())
    assert counted(trace) is None


def test_they_are_counted_in_one_that_was_settled_without_all_nodes() -> None:
    trace = Trace(PROBABLE, complete=False)
    trace.description = msgspec.structs.replace(trace.description, settled=True)
    trace.crash(1)
    message = trace.submit()
    trace.deliver(0, message)
    holes = counted(trace)
    assert holes == Holes((NodeHoles(1, "down", 1, (message,)), NodeHoles(2, "stayed", 1, (message,))))


def by_parts(run: Run, size: int) -> Holes | None:
    """What a judge counts that sees the run in parts."""
    tables = [run.table.slice(first, size) for first in range(0, len(run.table), size)]
    summaries = []
    for number, table in enumerate(tables):
        summary = summarize(run.description, table, key=1, block_bits=2)
        summary.first = number
        summaries.append(summary)
    selection = select(run.description, summaries)
    whole = run.table.select(COLUMNS)
    judged = judge_selected(run.description, selection, lambda: iter(tables), lambda: whole, block_bits=2)
    return judged.holes


@pytest.mark.deep
def test_both_judges_count_the_same_in_runs_of_the_swarm_whole_or_in_parts() -> None:
    standings = set()
    for seed in range(60):
        run = simulate(swarm_scenario("epto", seed))
        assert (run.holes is None) == bool(run.hindrance)
        found = audit(run.description, run.table)
        assert found.violations == run.violations == []
        assert found.holes == run.holes
        if run.holes is None:
            continue
        assert by_parts(run, 37) == run.holes
        standings |= {found.standing for found in run.holes.nodes}
    assert standings == {"stayed", "down", "lost"}

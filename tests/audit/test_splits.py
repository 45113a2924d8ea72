"""Both judges on branches that split and meet: what is void, honest traces, and tampered ones."""

from random import Random

import msgspec
import pytest

from ordercast.judge.columns.side_branches import SideBranches as VoidColumns
from ordercast.judge.columns.trace import Trace
from ordercast.judge.online.side_branches import SideBranches
from ordercast.trace import ANSWERING, CARRYING, Event, Kind, build_table
from tests.audit.splits import Splits
from tests.audit.tampering import EVERYTHING, foresees, tampered
from tests.audit.test_both_judges import columns_say, oracles_say
from tests.check.branch_traces import BRANCHING
from tests.deep import deep_after

PARTS = 8
SEEDS = 160

TOLD = (Kind.VIEW, Kind.UNDONE, Kind.CHECKPOINT, Kind.REPLY)
FIELDS = ("node", "groups", "numbers", "stamp_clock", "stamp_issuer", "config", "members", "label", "kind")


def test_honest_traces_are_clean_and_have_side_branches() -> None:
    void = misled = 0
    for seed in range(20):
        for heal in (True, False):
            trace = Splits(seed, heal=heal).run()
            trace.clean()
            side = SideBranches(trace.description)
            side.surviving(trace.events)
            void += len(side.void)
            misled += sum(one.misled for told in side.retreats.values() for one in told)
    assert void > 100 and misled > 5


def test_what_survives_is_what_the_last_branch_has() -> None:
    for seed in range(20):
        drawn = Splits(seed)
        trace = drawn.run()
        side = SideBranches(trace.description)
        side.surviving(trace.events)
        mistaken = {
            row
            for told in side.retreats.values()
            for notice in told
            if notice.misled
            for row in side.taken_back(notice)
        }
        survives = {(one.message, one.clock, one.issuer) for one in drawn.branches[0].operations}
        for row, event in enumerate(trace.events):
            if event.kind is Kind.DELIVER and row not in mistaken:
                place = (event.message, event.stamp_clock, event.stamp_issuer)
                assert (row not in side.void) == (place in survives), (seed, event)


def test_void_rows_keep_their_places_and_void_answers_are_unconfirmed() -> None:
    for seed in range(10):
        trace = Splits(seed).run()
        side = SideBranches(trace.description)
        kept = side.surviving(trace.events)
        columns = VoidColumns(Trace(trace.description, build_table("test", trace.events)))
        assert set(columns.void.nonzero()[0].tolist()) == side.void
        found = columns.surviving()
        assert [event.kind for event in kept] == found.table["kind"].to_pylist()
        for row, (before, after) in enumerate(zip(trace.events, kept, strict=True)):
            if row not in side.void:
                assert before is after
            elif before.kind in ANSWERING:
                assert after.kind is Kind.UNCONFIRMED
            else:
                assert after == before._replace(kind=Kind.UNDONE)


def changed(events: list[Event], rng: Random) -> None:
    """Rows of views, notices, states and answers are missing, doubled, moved or changed."""
    rows = [row for row, event in enumerate(events) if event.kind in TOLD]
    row, other = rng.choice(rows), rng.choice(rows)
    way = rng.choice(("take out", "double", "move", "field", "field", "clock", "kind"))
    if way == "take out":
        del events[row]
    elif way == "double":
        events.insert(other, events[row]._replace(time_ns=events[other].time_ns))
    elif way == "move":
        event = events.pop(row)
        at = min(other, len(events) - 1)
        events.insert(at, event._replace(time_ns=events[at].time_ns, clock_ns=events[at].clock_ns))
    elif way == "field":
        name = rng.choice(FIELDS[:-1])
        events[row] = events[row]._replace(**{name: getattr(events[other], name)})
    elif way == "clock":
        clock = (events[row].stamp_clock or 0) + rng.choice((-300, -1, 1, 300))
        events[row] = events[row]._replace(stamp_clock=clock)
    else:
        events[row] = events[row]._replace(kind=rng.choice((*TOLD, *CARRYING)))


def test_a_node_that_came_back_is_in_the_groups_that_it_was_in() -> None:
    """Whatever group a row about that names: such rows are about nodes."""
    trace = Splits(142).run()
    views = [row for row, event in enumerate(trace.events) if event.kind is Kind.VIEW]
    found: set[str] = set()
    for row in views:
        events = list(trace.events)
        events[row] = events[row]._replace(kind=Kind.RECOVER, label="saved")
        for complete in (False, True):
            description = msgspec.structs.replace(trace.description, complete=complete)
            told = oracles_say(description, events)
            assert columns_say(description, events) == told, row
            found |= told
    assert "branches" in found


@pytest.mark.parametrize("part", deep_after(1, range(PARTS)))
def test_both_find_the_same_in_tampered_splits(part: int) -> None:
    found: set[str] = set()
    for seed in range(part, SEEDS, PARTS):
        trace = Splits(seed, heal=seed % 4 > 0).run()
        complete = msgspec.structs.replace(trace.description, complete=True)
        promised = msgspec.structs.replace(EVERYTHING, partition=BRANCHING.partition)
        everything = msgspec.structs.replace(complete, guarantees=promised)
        for number in range(10):
            if number % 3:
                events, rng = list(trace.events), Random(1000 * seed + number)
                for _ in range(rng.choice((1, 1, 2, 4))):
                    changed(events, rng)
            else:
                events = tampered(trace.events, 1000 * seed + number)
            if foresees(events):
                continue
            for description in (trace.description, complete, everything):
                told = oracles_say(description, events)
                assert columns_say(description, events) == told, (seed, number)
                found |= told
    assert found >= {"branches", "agreement", "linearizable", "replica-state", "integrity", "not a trace"}

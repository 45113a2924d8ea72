"""The record of a run: whatever is missing, doubled or moved is named, by both judges alike."""

from random import Random

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from ordercast.judge import audit_files, verdict_on_files
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import PROBE, FileRows, RunDescription
from tests.audit.tampering import PLANS, honest
from tests.check.record_damage import Rows, listing, replaced, split, told, without


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(Scenario(protocol="atomic_multicast", senders=2, workload=WorkloadSpec(messages=60)))


def one_file(table: pa.Table) -> Rows:
    return [FileRows("events.parquet", table)]


def rows_of(table: pa.Table, node: int, kind: str) -> list[int]:
    pairs = zip(table["node"].to_pylist(), table["kind"].to_pylist(), strict=True)
    return [row for row, pair in enumerate(pairs) if pair == (node, kind)]


@pytest.mark.parametrize("plan", PLANS)
def test_honest_runs_have_a_whole_record(plan: str) -> None:
    for seed in range(3):
        run = honest(plan, seed)
        assert told(run.description, one_file(run.table)) == []


def test_files_in_any_order_are_whole(run: Run) -> None:
    files = split(run.table, 4)
    assert told(listing(run.description, files), files) == []
    renamed = [FileRows(f"{9 - place}.parquet", rows.table) for place, rows in enumerate(files)]
    assert told(run.description, renamed[::-1]) == []


def test_a_missing_row_is_named_with_its_step(run: Run) -> None:
    row = rows_of(run.table, 1, "deliver")[7]
    (found,) = told(run.description, one_file(without(run.table, row)))
    assert (found.what, found.file, found.node) == ("steps", "events.parquet", 1)
    assert found.detail == "node 1 lacks step 7"
    assert found.row == rows_of(without(run.table, row), 1, "deliver")[7]


def test_a_doubled_row_and_a_moved_row(run: Run) -> None:
    row = rows_of(run.table, 1, "deliver")[7]
    rows = np.arange(len(run.table))
    (found,) = told(run.description, one_file(run.table.take(np.insert(rows, row, row))))
    assert (found.what, found.row, found.detail) == ("steps", row + 1, "node 1 has step 7 twice")
    other = rows_of(run.table, 1, "deliver")[8]
    rows[[row, other]] = other, row
    moved = told(run.description, one_file(run.table.take(rows)))
    assert {(found.what, found.node) for found in moved} == {("steps", 1), ("order", 1)}


def test_positions(run: Run) -> None:
    row = rows_of(run.table, 2, "deliver")[9]
    wrong = told(run.description, one_file(replaced(run.table, "position", row, 11)))
    assert {(found.what, found.node) for found in wrong} == {("positions", 2)}
    (none,) = told(run.description, one_file(replaced(run.table, "position", row, None)))
    assert "a delivery of node 2 has no position" in none.detail and none.row == row
    row = rows_of(run.table, 3, "submit")[0]
    (surplus,) = told(run.description, one_file(replaced(run.table, "position", row, 0)))
    assert (surplus.what, surplus.row) == ("positions", row)


def test_rows_of_another_run(run: Run) -> None:
    (found,) = told(run.description, one_file(replaced(run.table, "run", 5, "other")))
    assert (found.what, found.file, found.row) == ("run", "events.parquet", 5)
    assert "the run other" in found.detail and run.description.run in found.detail


def test_a_file_that_is_missing_is_named(run: Run) -> None:
    files = split(run.table, 4)
    description = listing(run.description, files)
    for place in range(4):
        left = files[:place] + files[place + 1 :]
        name = files[place].name
        listed = told(description, left)
        assert ("files", name) in {(found.what, found.file) for found in listed}
        if place < 3:  # without a list, a gap shows it, and the numbers of the files
            lacking = [found for found in told(run.description, left) if found.what == "steps"]
            assert lacking and all(f"there is no {name}" in found.detail for found in lacking)


def test_a_file_that_lost_its_last_rows(run: Run) -> None:
    description = listing(run.description, one_file(run.table))
    (found,) = told(description, one_file(run.table.slice(0, len(run.table) - 3)))
    assert found.what == "files" and f"has {len(run.table) - 3} rows" in found.detail


def relabelled(run: Run, row: int, label: str) -> pa.Table:
    return replaced(run.table, "label", row, label)


def test_submissions_are_those_of_the_scenario(run: Run) -> None:
    row = rows_of(run.table, 3, "submit")[-1]
    (fewer,) = told(run.description, one_file(relabelled(run, row, PROBE)))
    assert (fewer.what, fewer.detail) == (
        "submissions",
        "the run has 59 submissions, but its scenario says 60",
    )

    def wanting(messages: int) -> RunDescription:
        scenario = run.description.scenario | {"workload": {"kind": "poisson", "messages": messages}}
        return msgspec.structs.replace(run.description, scenario=scenario)

    assert "60 submissions" in told(wanting(59), one_file(run.table))[0].detail
    assert told(msgspec.structs.replace(wanting(99), complete=False), one_file(run.table)) == []
    for messages in (-5, 59):
        (more,) = told(msgspec.structs.replace(wanting(messages), complete=False), one_file(run.table))
        assert more.detail == f"the run has 60 submissions, but its scenario says at most {messages}"
    assert told(wanting(1 << 80), one_file(run.table)) == []


def test_a_sender_that_was_down_may_have_submitted_less() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        senders=2,
        workload=WorkloadSpec(messages=60),
        fault=(Crash(at_ms=10, host=3),),
    )
    run = simulate(scenario)
    assert len([event for event in run.events() if event.kind == "submit"]) < 60
    assert told(run.description, one_file(run.table)) == []


def test_an_empty_run_that_claims_to_be_complete(run: Run) -> None:
    empty = one_file(run.table.slice(0, 0))
    (found,) = told(run.description, empty)
    assert found.what == "empty"
    assert told(msgspec.structs.replace(run.description, complete=False), empty) == []
    idle = simulate(Scenario(protocol="atomic_multicast", workload=WorkloadSpec(messages=0)))
    assert idle.description.complete and told(idle.description, one_file(idle.table)) == []


@pytest.mark.parametrize("name", ["groups", "numbers"])
def test_a_list_that_no_run_has(run: Run, name: str) -> None:
    row = rows_of(run.table, 3, "submit")[4]
    (found,) = told(run.description, one_file(replaced(run.table, name, row, list(range(100_000)))))
    assert (found.what, found.row) == ("lists", row) and f"100000 {name}" in found.detail


def test_promises_of_a_damaged_run_are_not_judged(run: Run) -> None:
    row = rows_of(run.table, 1, "deliver")[7]
    for judge in (verdict_on_files, audit_files):
        verdict, table = judge(run.description, one_file(without(run.table, row)))
        assert (verdict.violations, table) == ([], None)
        assert [damage.what for damage in verdict.damage] == ["steps"]


def test_altered_events_are_judged_as_they_are(run: Run) -> None:
    row = rows_of(run.table, 1, "deliver")[7]
    for judge in (verdict_on_files, audit_files):
        verdict, table = judge(run.description, one_file(replaced(run.table, "digest", row, 1)))
        assert [damage.what for damage in verdict.damage] == ["hash"] and table is not None
        assert {violation.property for violation in verdict.violations} == {"integrity"}


def test_random_damage_is_told_alike(run: Run) -> None:
    seen = set()
    for seed in range(60):
        rng = Random(seed)
        rows = np.arange(len(run.table))
        for _ in range(rng.choice((1, 1, 2, 3))):
            place, other = rng.randrange(len(rows)), rng.randrange(len(rows))
            change = rng.randrange(3)
            if change == 0:
                rows = np.delete(rows, place)
            elif change == 1:
                rows = np.insert(rows, place, rows[place])
            else:
                rows[[place, other]] = rows[[other, place]]
        files = split(run.table.take(rows), rng.choice((1, 3)))
        seen |= {found.what for found in told(run.description, files)}
    assert seen >= {"steps", "order"}

"""`ordercast check` on traces that are whole, altered, damaged or missing."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ordercast.trace import Event, Kind, build_table
from tests.cli.conftest import Command

Rewrite = Callable[[pa.Table], pa.Table]
SWAPPED = {"stamp-order", "total-order"}
"""What two deliveries that changed places break."""


@pytest.fixture
def traces(ordercast: Command, tmp_path: Path) -> Path:
    """A folder with two runs of atomic multicast."""
    for seed in (1, 2):
        words = ("--groups", 2, "--messages", 60, "--seed", seed, "--out", tmp_path)
        assert ordercast("simulate", "--protocol", "atomic_multicast", *words).code == 0
    return tmp_path


def run_folder(folder: Path, seed: int) -> Path:
    (found,) = folder.glob(f"atomic_multicast-{seed}-*")
    return found


def rewrite(folder: Path, change: Rewrite, seed: int = 1) -> None:
    path = run_folder(folder, seed) / "events.parquet"
    pq.write_table(change(pq.ParquetFile(path).read()), path)


def renumbered(change: Rewrite) -> Rewrite:
    """The change of a forger who numbers the rows and deliveries of each node anew."""

    def renumber(table: pa.Table) -> pa.Table:
        changed = change(table)
        kinds = changed["kind"].cast(pa.string()).to_pylist()
        numbers = build_table(
            "", [Event(0, 0, n, Kind(k)) for n, k in zip(changed["node"].to_pylist(), kinds, strict=True)]
        )
        for column in ("step", "position"):
            index = changed.column_names.index(column)
            changed = changed.set_column(index, changed.schema.field(column), numbers[column])
        return changed

    return renumber


def rewrite_run(folder: Path, change: Rewrite, seed: int = 1) -> None:
    """Change a run as its writer would have written it."""
    rewrite_files(run_folder(folder, seed), change)


def rewrite_files(folder: Path, change: Rewrite) -> None:
    """Change the run in a folder; its description says how many rows it has, and has no hash."""
    path = folder / "events.parquet"
    table = renumbered(change)(pq.ParquetFile(path).read())
    pq.write_table(table, path)
    described = folder / "run.json"
    content = json.loads(described.read_text()) | {"files": {path.name: len(table)}, "trace_hash": None}
    described.write_text(json.dumps(content))


def rows_of(table: pa.Table, node: int, kind: str = "deliver") -> np.ndarray:
    mask = pc.and_(pc.equal(table["node"], node), pc.equal(table["kind"].cast(pa.string()), kind))
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def swap(table: pa.Table) -> pa.Table:
    """Two neighbours in the order of node 1 change places; both were submitted before either came."""
    times, submitted = table["time_ns"].to_numpy(), table["submitted_ns"].to_numpy()
    rows = rows_of(table, 1)
    first, second = next((a, b) for a, b in pairwise(rows) if submitted[b] < times[a])
    order = np.arange(len(table))
    order[first], order[second] = second, first
    swapped = table.take(order)
    for column in ("time_ns", "clock_ns", "step", "position"):
        index = swapped.column_names.index(column)
        swapped = swapped.set_column(index, swapped.schema.field(column), table[column])
    return swapped


def duplicate(table: pa.Table) -> pa.Table:
    row = rows_of(table, 2)[5]
    return pa.concat_tables([table[: row + 1], table[row : row + 1], table[row + 1 :]])


def lose(table: pa.Table) -> pa.Table:
    row = rows_of(table, 0)[5]
    return pa.concat_tables([table[:row], table[row + 1 :]])


def unsubmit(table: pa.Table) -> pa.Table:
    row = rows_of(table, 6, "submit")[0]
    return pa.concat_tables([table[:row], table[row + 1 :]])


def test_whole_traces_pass(ordercast: Command, traces: Path) -> None:
    content = ordercast("check", traces, "--json").json()
    assert (content["runs"], content["violations"], content["altered"]) == (2, [], [])
    assert content["events"] == 2 * (60 + 60 * 3)
    assert "2 runs" in ordercast("check", traces).out


@pytest.mark.parametrize(
    ("change", "found", "node"),
    [
        (swap, SWAPPED, 1),
        (duplicate, {"integrity"}, 2),
        (lose, {"agreement"}, 0),
    ],
)
def test_a_violation_is_found_out(
    ordercast: Command, traces: Path, change: Rewrite, found: set[str], node: int
) -> None:
    rewrite_run(traces, change)
    outcome = ordercast("check", traces, "--json")
    content = outcome.json()
    assert outcome.code == 1
    assert {violation["property"] for violation in content["violations"]} == found
    name = run_folder(traces, 1).name
    assert {violation["run"] for violation in content["violations"]} == {name}
    assert (content["damaged"], content["altered"]) == ([], [])
    violation = content["violations"][0]
    assert set(violation) >= {"property", "run", "nodes", "messages", "detail"}
    assert node in violation["nodes"]
    text = ordercast("check", traces)
    assert text.code == 1 and all(f"{one} violated in {name}" in text.out for one in found)


@pytest.mark.parametrize("change", [duplicate, lose, unsubmit])
def test_lost_and_doubled_rows_are_damage_and_not_blamed_on_the_protocol(
    ordercast: Command, traces: Path, change: Rewrite
) -> None:
    rewrite(traces, change)
    outcome, name = ordercast("check", traces, "--json"), run_folder(traces, 1).name
    content = outcome.json()
    assert outcome.code == 1 and content["violations"] == []
    assert {damage["run"] for damage in content["damaged"]} == {name}
    rows = [damage for damage in content["damaged"] if damage["what"] == "steps"]
    assert rows and all(damage["file"] == "events.parquet" and damage["row"] > 0 for damage in rows)
    text = ordercast("check", traces).out
    assert f"trace damaged in {name}\n  events.parquet, row " in text
    assert f"not judged: the promises of {name}, because its trace is damaged" in text
    assert f"kept every promise: {run_folder(traces, 2).name} (1 of 2 runs)" in text


def test_changed_events_do_not_match_their_hash(ordercast: Command, traces: Path) -> None:
    rewrite(traces, swap)
    outcome, name = ordercast("check", traces, "--json"), run_folder(traces, 1).name
    content = outcome.json()
    assert outcome.code == 1 and content["altered"] == [name]
    assert [(damage["what"], damage["file"]) for damage in content["damaged"]] == [("hash", "events.parquet")]
    assert {violation["property"] for violation in content["violations"]} == SWAPPED
    assert {run["run"]: run["verdict"] for run in content["verdicts"]}[name] == "damaged"
    text = ordercast("check", traces).out
    assert "do not match the hash in run.json" in text
    assert f"total-order violated in {name}, whose trace was changed" in text


def test_a_run_can_be_checked_alone(ordercast: Command, traces: Path) -> None:
    rewrite(traces, swap)
    assert ordercast("check", run_folder(traces, 2)).code == 0
    assert ordercast("check", run_folder(traces, 1)).code == 1


def truncate(folder: Path) -> None:
    path = folder / "events.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def forget_column(folder: Path) -> None:
    path = folder / "events.parquet"
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["digest"]), path)


@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (truncate, "not a readable Parquet file"),
        (forget_column, "no column digest"),
        (lambda folder: (folder / "events.parquet").unlink(), "no Parquet file"),
        (lambda folder: (folder / "run.json").unlink(), "has events, but no run.json"),
        (lambda folder: (folder / "run.json").write_text("{"), "not a description"),
        (lambda folder: (folder / "run.json").write_text('{"format": 9}'), "not a description"),
    ],
)
def test_a_damaged_trace_is_one_clear_line_and_exit_code_2(
    ordercast: Command, traces: Path, damage: Callable[[Path], None], wanted: str
) -> None:
    damage(run_folder(traces, 1))
    outcome = ordercast("check", traces, "--json")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
    assert wanted in outcome.err
    unreadable = outcome.json()["unreadable"]
    assert [run["run"] for run in unreadable] == [run_folder(traces, 1).name]
    assert wanted in unreadable[0]["detail"]
    assert f"kept every promise: {run_folder(traces, 2).name} (1 of 2 runs)" in ordercast("check", traces).out


def test_an_empty_folder_has_no_trace(ordercast: Command, tmp_path: Path) -> None:
    outcome = ordercast("check", tmp_path)
    assert outcome.code == 2 and "no trace there" in outcome.err


def by_node(table: pa.Table) -> pa.Table:
    """As another tool may write it: all rows of a node, then those of the next."""
    return table.sort_by([("node", "ascending"), ("step", "ascending")])


def test_a_trace_ordered_by_node_is_judged_in_order_of_time(ordercast: Command, traces: Path) -> None:
    rewrite_run(traces, by_node)
    assert ordercast("check", traces).code == 0
    rewrite_run(traces, lambda table: by_node(swap(table)), seed=2)
    outcome = ordercast("check", traces, "--json")
    assert {violation["property"] for violation in outcome.json()["violations"]} == SWAPPED


def test_rows_of_a_node_that_contradict_their_own_times_are_not_put_right(
    ordercast: Command, traces: Path
) -> None:
    def reverse(table: pa.Table) -> pa.Table:
        order = np.arange(len(table))
        rows = rows_of(table, 1)
        order[rows] = rows[::-1]
        return table.take(order)

    rewrite_run(traces, reverse)
    outcome = ordercast("check", traces, "--json")
    assert "clock" in {violation["property"] for violation in outcome.json()["violations"]}


def test_more_findings_than_are_shown_are_counted(ordercast: Command, traces: Path) -> None:
    def double(table: pa.Table) -> pa.Table:
        rows = np.arange(len(table))
        return table.take(np.sort(np.concatenate([rows, rows_of(table, 0), rows_of(table, 1)])))

    rewrite_run(traces, double)
    content = ordercast("check", traces, "--json").json()
    assert {violation["property"] for violation in content["violations"]} == {"integrity"}
    assert len(content["violations"]) == 20 and content["suppressed"] > 20
    assert "at least" in ordercast("check", traces).out


def test_of_a_large_run_it_is_said_how_to_judge_it_in_less_memory(
    ordercast: Command, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--master" not in ordercast("check", traces).err
    monkeypatch.setattr("ordercast.cli.judged_runs.MANY_EVENTS", 10)
    outcome = ordercast("check", traces, "--json")
    assert "events; --master judges large runs in parts" in " ".join(outcome.err.split())
    assert outcome.json()["runs"] > 0

"""Sweeps: every run is simulated once, and what goes wrong in one stops no other."""

import fcntl
import json
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.core import LocalError
from ordercast.judge import verdict
from ordercast.pipeline import simulate as simulation
from ordercast.pipeline.progress import Progress
from ordercast.pipeline.schemas import RUNS, SCENARIOS, VIOLATIONS
from ordercast.pipeline.sweep import claimed, outcome_of, run_sweep, task_count
from ordercast.pipeline.sweep_file import Sweep
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario
from ordercast.trace import events_of, find_runs
from tests.spark.sweeps import promising_order, rows, small_sweep, table_bytes, trace_bytes, use
from tests.tidy_layers import MAY_IMPORT


def never(scenario: Scenario) -> Run:
    raise AssertionError("this run was there already")


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return small_sweep(tmp_path)


def test_a_row_has_the_numbers_of_its_run(spark: SparkSession, sweep: Sweep, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told: list[Progress] = []
    run_sweep(spark, sweep, out, told.append)
    found = rows(spark, out, "runs")
    assert [row["run"] for row in found] == [row.run for row in sweep.rows]
    for row, asked in zip(found, sweep.rows, strict=True):
        run = run_scenario(msgspec.json.decode(asked.scenario, type=Scenario))
        summary = msgspec.to_builtins(run.summary())
        shared = set(RUNS.names) & set(summary)
        assert {key: row[key] for key in shared} == {key: summary[key] for key in shared}
        assert len(shared) >= 13
        assert (row["status"], row["folder"]) == ("kept", f"traces/{run.description.run}")
        (stored,) = find_runs(out / str(row["folder"]))
        assert stored.table().equals(run.table)
    assert rows(spark, out, "violations") == []
    assert told[-1].done == told[-1].total == len(sweep.rows)
    names = [
        pq.read_schema(out / "tables" / name / "part-00000.parquet").names for name in ("scenarios", "runs")
    ]
    assert names == [SCENARIOS.names, RUNS.names]


def test_runs_that_break_a_promise_or_raise_stop_no_other(
    spark: SparkSession, sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulate_one(scenario: Scenario) -> Run:
        if scenario.seed == 2:
            raise ZeroDivisionError(f"on purpose, at {object()}")
        return promising_order(scenario) if scenario.seed in (1, 4) else run_scenario(scenario)

    use(monkeypatch, simulate_one)
    out = tmp_path / "out"
    outcome = outcome_of(run_sweep(spark, sweep, out))
    found = rows(spark, out, "runs")
    statuses = ["kept", "violated", "failed", "kept", "violated", "kept"]
    assert [row["status"] for row in found] == statuses
    failed = found[2]
    assert "ZeroDivisionError: on purpose, at <object object at 0x...>" in str(failed["error"])
    assert failed["seed"] == 2 and failed["folder"] is None and failed["trace_hash"] is None
    violations = rows(spark, out, "violations")
    assert list(violations[0]) == VIOLATIONS.names
    assert {(row["seed"], row["judge"], row["property"]) for row in violations} == {
        (seed, "oracles", "total-order") for seed in (1, 4)
    }
    for run in (found[1], found[4]):
        (stored,) = find_runs(out / str(run["folder"]))
        judged = verdict(stored.description, events_of(stored.table()))
        told = [str(row["detail"]) for row in violations if row["run"] == run["run"]]
        assert sorted(told) == sorted(violation.detail for violation in judged.violations)
    assert outcome.protocols == {"unordered": {"failed": 1, "kept": 3, "violated": 2}}
    assert [run for run, _ in outcome.failures] == [sweep.rows[2].run]
    assert outcome.findings == len(violations) == len(outcome.violations)

    # What was found is known the next time without another look; what failed is tried again.
    before = table_bytes(out)

    def fail(scenario: Scenario) -> Run:
        if scenario.seed != 2:
            raise AssertionError("this run was there already")
        raise ZeroDivisionError(f"on purpose, at {object()}")

    use(monkeypatch, fail)
    run_sweep(spark, sweep, out)
    changed = [name for name, content in table_bytes(out).items() if content != before[name]]
    # The line of this file in which it was raised is another one.
    assert changed == ["tables/runs/part-00000.parquet"]
    assert [row["status"] for row in rows(spark, out, "runs")] == statuses


def test_only_what_is_missing_or_damaged_is_simulated_again(
    spark: SparkSession, sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run_sweep(spark, sweep, out)
    tables, traces = table_bytes(out), trace_bytes(out)
    use(monkeypatch, never)
    run_sweep(spark, sweep, out)
    assert table_bytes(out) == tables
    gone, cut, flipped, garbled, nameless = (out / "traces" / row.run for row in sweep.rows[:5])
    (gone / "manifest.json").unlink()
    (cut / "events.parquet").write_bytes((cut / "events.parquet").read_bytes()[:-10])
    content = bytearray((flipped / "events.parquet").read_bytes())
    content[100] ^= 1
    (flipped / "events.parquet").write_bytes(content)
    (garbled / "manifest.json").write_text("{")
    (nameless / "run.json").unlink()
    (out / ".unfinished" / "left").mkdir()
    simulated = tmp_path / "simulated"
    simulated.mkdir()

    def note(scenario: Scenario) -> Run:
        (simulated / str(scenario.seed)).touch()
        return run_scenario(scenario)

    use(monkeypatch, note)
    run_sweep(spark, sweep, out)
    assert sorted(path.name for path in simulated.iterdir()) == ["0", "1", "2", "3", "4"]
    assert table_bytes(out) == tables
    assert trace_bytes(out) == traces
    assert list((out / ".unfinished").iterdir()) == []

    # Made by other code, the runs on disk are not those of this sweep.
    monkeypatch.setattr("ordercast.pipeline.sweep.basis_of", lambda files: "another")
    use(monkeypatch, never)
    run_sweep(spark, sweep, out)
    assert {row["status"] for row in rows(spark, out, "runs")} == {"failed"}


def test_code_and_data_are_what_runs_depend_on(tmp_path: Path) -> None:
    assert set(simulation.LAYERS) == {layer.split(".")[0] for layer in MAY_IMPORT["sim"] | {"sim"}}
    data = tmp_path / "data"
    data.write_text("1")
    first = simulation.basis_of([data])
    assert simulation.basis_of([data]) == first
    data.write_text("2")
    assert simulation.basis_of([data]) != first
    with pytest.raises(LocalError, match=r"nothing: cannot be read"):
        simulation.basis_of([tmp_path / "nothing"])


def test_a_disk_that_cannot_be_written_is_not_a_result_of_the_run(
    spark: SparkSession, sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "out")

    def sabotage(scenario: Scenario) -> Run:
        (Path(out) / "traces").rmdir()
        (Path(out) / "traces").write_text("in the way")
        return run_scenario(scenario)

    use(monkeypatch, sabotage)
    with pytest.raises(Exception, match=r"Not a directory|NotADirectoryError"):
        run_sweep(spark, sweep, Path(out))
    assert not (Path(out) / "tables" / "runs").exists()


def test_without_a_driver_no_run_is_begun(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not simulation._is_free(lock), "what cannot be told must not stop a sweep"
    lock.touch()
    assert simulation._is_free(lock)
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not simulation._is_free(lock)


def test_a_folder_is_for_one_sweep(sweep: Sweep, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with claimed(out, sweep):
        asked = json.loads((out / "sweep.json").read_text())
        assert (asked["sweep"], asked["runs"]) == ("small", 6)
        with pytest.raises(LocalError, match="another sweep is running in this folder"), claimed(out, sweep):
            pass
    other = small_sweep(tmp_path, seeds="0:7")
    with (
        pytest.raises(LocalError, match="this folder belongs to another sweep, 'small' with 6 runs"),
        claimed(out, other),
    ):
        pass
    with claimed(out, sweep):
        pass


def test_a_folder_with_something_else_is_left_alone(sweep: Sweep, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="this folder has other files"), claimed(tmp_path, sweep):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]
    with (
        pytest.raises(LocalError, match="cannot use the folder"),
        claimed(tmp_path / "small.toml" / "x", sweep),
    ):
        pass


def test_a_torn_description_is_refused(sweep: Sweep, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with claimed(out, sweep):
        pass
    (out / "sweep.json").write_text("{")
    with pytest.raises(LocalError, match="not a valid description of a sweep"), claimed(out, sweep):
        pass


@pytest.mark.parametrize(
    ("runs", "messages", "cores", "tasks"),
    [
        (1, 100, 2, 1),
        (60, 300, 2, 60),
        (320, 100, 2, 32),
        (10_000, 100, 2, 625),
        (10_000, 1000, 2, 2500),
        (10_000, 100_000, 2, 10_000),
        (10_000, 0, 2, 625),
        (7, 10, 64, 7),
    ],
)
def test_tasks_are_many_and_small(runs: int, messages: int, cores: int, tasks: int) -> None:
    assert task_count(runs, runs * messages, cores) == tasks

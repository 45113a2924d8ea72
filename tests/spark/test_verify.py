"""Verification on Spark: one run or many, whole or by parts, and the oracles say the same."""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.core import LocalError, RemoteError
from ordercast.pipeline.schemas import TRACES, VERDICTS
from ordercast.pipeline.traces import traces
from ordercast.pipeline.verify import judge_all, verify
from ordercast.sim.run import Run
from ordercast.trace import find_runs, write_run
from ordercast.trace.values import write_values
from tests.audit.tampering import honest
from tests.deep import deep_after
from tests.sim.mutants import MUTANTS


def caught(index: int) -> Run:
    """A run of a mutant that the oracles condemn."""
    mutant = MUTANTS[index]
    runs = (mutant.run(seed) for seed in range(mutant.seeds))
    return next(run for run in runs if run.violations)


def put(run: Run, folder: Path, rows_a_group: int | None = None) -> None:
    """Write a run, with small row groups if it is to be cut into parts."""
    write_run(folder, run.description, run.table)
    if run.description.service:
        write_values(folder, run.values)
    if rows_a_group:
        pq.write_table(run.table, folder / "events.parquet", row_group_size=rows_a_group)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, set[str]]]:
    """Every mutant's trace in a folder of its own, and what the oracles say of it."""
    root, told = tmp_path_factory.mktemp("mutants"), {}
    for index in range(len(MUTANTS)):
        run = caught(index)
        put(run, root / f"{index:02d}", rows_a_group=50)
        told[str(root / f"{index:02d}")] = {violation.property for violation in run.violations}
    return root, told


@pytest.mark.parametrize(
    ("whole_max", "part_rows"), deep_after(1, [(0, 100), (1 << 40, 1)]), ids=["by parts", "whole"]
)
def test_every_mutant_is_condemned_for_the_same_properties(
    spark: SparkSession, broken: tuple[Path, dict[str, set[str]]], whole_max: int, part_rows: int
) -> None:
    root, told = broken
    verdicts = verify(traces(spark, root), whole_max, part_rows)
    assert verdicts.schema.names == VERDICTS.names
    found = {row["folder"]: {one["property"] for one in row["findings"]} for row in verdicts.collect()}
    assert len(found) >= 10
    assert found == told


@pytest.mark.parametrize(("whole_max", "part_rows"), [(1 << 40, 1), (0, 150)], ids=["whole", "by parts"])
def test_clean_runs_pass(spark: SparkSession, tmp_path: Path, whole_max: int, part_rows: int) -> None:
    for seed in range(12):
        for protocol in ("unordered", "atomic_multicast"):
            put(honest(protocol, seed), tmp_path / f"{protocol}-{seed}", rows_a_group=70)
    found = traces(spark, tmp_path)
    assert found.schema.names == TRACES.names
    rows = verify(found, whole_max, part_rows).collect()
    assert len(rows) == 24
    assert [row for row in rows if row["findings"] or row["error"]] == []
    expected = {str(run.folder): len(run.table()) for run in find_runs(tmp_path)}
    assert {row["folder"]: row["events"] for row in rows} == expected
    assert sum(row["deliveries"] for row in rows) > 0


def test_a_verdict_has_the_seed_and_the_counterexamples(spark: SparkSession, tmp_path: Path) -> None:
    run = caught(0)
    put(run, tmp_path / "run")
    (row,) = verify(traces(spark, tmp_path)).collect()
    assert row["seed"] == run.description.seed
    assert row["findings"]
    assert all(found["detail"] and found["nodes"] and found["messages"] for found in row["findings"])


def test_an_unreadable_trace_does_not_stop_the_others(spark: SparkSession, tmp_path: Path) -> None:
    put(honest("unordered", 1), tmp_path / "good")
    bad = honest("unordered", 2)
    strange = msgspec.structs.replace(bad.description, nodes=bad.description.nodes[1:], groups={})
    write_run(tmp_path / "strange", strange, bad.table)
    by_name = {Path(row["folder"]).name: row for row in judge_all(traces(spark, tmp_path))}
    assert by_name["good"]["error"] is None
    assert "is not in the run's description" in by_name["strange"]["error"]


def test_folders_without_traces(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="no trace there"):
        traces(spark, tmp_path)
    with pytest.raises(LocalError, match="no such folder"):
        traces(spark, tmp_path / "nowhere")
    put(honest("unordered", 1), tmp_path / "run")
    (tmp_path / "run" / "events.parquet").write_bytes(b"not Parquet")
    with pytest.raises(RemoteError, match="not a readable Parquet file"):
        traces(spark, tmp_path)

"""Live traces on Spark: many segments and clocks that differ, whole or by parts, judged as the oracles do."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.judge import verdict
from ordercast.pipeline.traces import traces
from ordercast.pipeline.verify import verify
from ordercast.sim.run import Run
from ordercast.trace import Kind, events_of, find_runs
from tests.audit.tampering import honest
from tests.live.recording import plan_of, record
from tests.sim.mutants import MUTANTS

NAMED = (Kind.SUBMIT, Kind.DELIVER)
WITHOUT_CONTENT = (
    Kind.STATE, Kind.STATE_WANTED, Kind.GIVE_STATE, Kind.UNCONFIRMED, Kind.REPLY, Kind.CHECKPOINT
)  # fmt: skip
"""Rows about something whose bytes are not in the trace, so that nobody can write it down again."""


def recordable(run: Run) -> bool:
    """Whether live hosts could have written it: each made its submissions, and nothing while it was down."""
    described = {violation.property for violation in run.violations}
    return not described & {"clock", "lifecycle"} and all(
        event.kind not in WITHOUT_CONTENT and (event.message is not None or event.kind not in NAMED)
        for event in run.events()
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, set[str]]]:
    """Runs of mutants and clean runs, as live hosts write them, and what the oracles say."""
    root, told = tmp_path_factory.mktemp("live"), {}
    runs = [
        next((run for run in map(mutant.run, range(mutant.seeds)) if run.violations), None)
        for mutant in MUTANTS
    ]
    clean = [honest(plan, seed) for plan in ("unordered", "atomic_multicast") for seed in range(4)]
    found = [run for run in runs if run is not None and recordable(run)]
    for number, run in enumerate([*found, *clean]):
        folder = record(run, plan_of(run), root / f"{number:02d}")
        (stored,) = find_runs(folder)
        violations = verdict(stored.description, events_of(stored.table())).violations
        told[str(folder)] = {violation.property for violation in violations}
    return root, told


@pytest.mark.deep
@pytest.mark.parametrize(("whole_max", "part_rows"), [(1 << 40, 1), (0, 100)], ids=["whole", "by parts"])
def test_live_traces_are_judged_as_the_oracles_judge_them(
    spark: SparkSession, recorded: tuple[Path, dict[str, set[str]]], whole_max: int, part_rows: int
) -> None:
    root, told = recorded
    verdicts = verify(traces(spark, root), whole_max, part_rows).collect()
    assert [row["error"] for row in verdicts if row["error"]] == []
    assert {row["folder"]: {one["property"] for one in row["findings"]} for row in verdicts} == told
    assert sum(1 for properties in told.values() if properties) >= 10
    assert sum(1 for properties in told.values() if not properties) >= 8

"""A live run that lost a segment: the trace is damaged, and the protocol is not blamed."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.judge import Judged, audit_files, verdict_on_files
from ordercast.scenario.spec import ClocksSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import read_run
from tests.live.recording import record


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of which every host wrote several segments."""
    scenario = Scenario(
        protocol="atomic_multicast", clocks=ClocksSpec(skew_us=1e6), workload=WorkloadSpec(messages=200)
    )
    plan = scenario.plan()
    return record(simulate(scenario, plan), plan, tmp_path_factory.mktemp("live"))


def judged(folder: Path) -> list[Judged]:
    run = read_run(folder)
    return [judge(run.description, run.files()) for judge in (verdict_on_files, audit_files)]


def test_a_whole_run_is_judged(whole: Path) -> None:
    run = read_run(whole)
    assert run.description.complete and len(run.segments()) > len(run.description.nodes)
    assert run.description.files == {
        path.name: rows.table.num_rows for path, rows in zip(run.segments(), run.files(), strict=True)
    }
    for verdict, table in judged(whole):
        assert (verdict.violations, verdict.damage) == ([], ()) and table is not None


def test_each_segment_is_missed_by_name(whole: Path, tmp_path: Path) -> None:
    for place, path in enumerate(read_run(whole).segments()):
        left = shutil.copytree(whole, tmp_path / str(place))
        (left / path.name).unlink()
        for verdict, _ in judged(left):
            assert verdict.violations == []
            assert ("files", path.name) in {(damage.what, damage.file) for damage in verdict.damage}


def test_without_a_list_of_files_a_gap_in_the_steps_shows_it(whole: Path, tmp_path: Path) -> None:
    left = shutil.copytree(whole, tmp_path / "run")
    described = left / "run.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"files": None}))
    names = [path.name for path in read_run(left).segments()]
    lost = next(name for name, after in pairwise(names[1:]) if name[:9] == after[:9])
    (left / lost).unlink()
    for verdict, _ in judged(left):
        assert verdict.violations == []
        assert all(
            f"there is no {lost}" in damage.detail for damage in verdict.damage if damage.what == "steps"
        )
        assert any(" lacks step" in damage.detail for damage in verdict.damage)

"""A recorded run, run again: the same scenario, and the same submissions."""

from pathlib import Path

import msgspec
import pytest

from ordercast.core import LocalError
from ordercast.scenario.faults import Crash
from ordercast.scenario.recorded_run import scenario_of, submissions_of
from ordercast.scenario.spec import ClocksSpec, NetworkSpec, Scenario, WorkloadSpec, to_scenario
from ordercast.scenario.submission import Submission
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind, find_runs, write_run

SCENARIO = Scenario(
    protocol="atomic_multicast",
    seed=3,
    groups=2,
    senders=2,
    clocks=ClocksSpec(skew_us=500),
    network=NetworkSpec(loss=0.05),
    workload=WorkloadSpec(messages=60, bytes=40, spread=(0.5, 0.5)),
    fault=(Crash(at_ms=5, host=0),),
)


def submissions_in(run: Run) -> list[Submission]:
    return [
        Submission(event.time_ns, event.node, event.groups or (), event.size or 0)
        for event in run.events()
        if event.kind is Kind.SUBMIT
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return simulate(SCENARIO).write(tmp_path)


def test_submissions_are_read_as_they_were_made(folder: Path) -> None:
    found = submissions_of(folder)
    assert found == submissions_in(simulate(SCENARIO))
    assert len(found) == 60 and {submission.size for submission in found} == {40}


def test_a_run_made_again_from_its_trace_has_the_same_submissions_and_faults(folder: Path) -> None:
    scenario = scenario_of(folder)
    again = simulate(scenario)
    assert submissions_in(again) == submissions_of(folder)
    assert scenario.fault == SCENARIO.fault and scenario.network == SCENARIO.network
    assert [event.node for event in again.events() if event.kind is Kind.CRASH] == [0]
    assert again.violations == []


def test_a_run_made_again_from_its_trace_is_deterministic(folder: Path) -> None:
    hashes = {simulate(scenario_of(folder)).description.trace_hash for _ in range(2)}
    assert len(hashes) == 1


def test_times_of_a_live_run_count_from_its_first_submission(folder: Path) -> None:
    (run,) = find_runs(folder)
    live = msgspec.structs.replace(run.description, source="live")
    write_run(folder, live, run.table())
    found = submissions_of(folder)
    first = submissions_in(simulate(SCENARIO))[0].at_ns
    assert [s.at_ns + first for s in found] == [s.at_ns for s in submissions_in(simulate(SCENARIO))]


def test_a_trace_without_a_scenario_still_says_who_took_part(tmp_path: Path) -> None:
    scenario = Scenario(protocol="hydra", groups=2, senders=2, workload=WorkloadSpec(messages=20))
    run = simulate(scenario)
    write_run(tmp_path / "one", msgspec.structs.replace(run.description, scenario={}), run.table)
    found = scenario_of(tmp_path / "one")
    assert (found.protocol, found.senders, found.colocated) == ("hydra", 2, False)
    assert found.membership == ((0, 1, 2), (3, 4, 5))
    assert submissions_in(simulate(found)) == submissions_in(run)


def test_options_that_a_trace_does_not_tell_are_not_guessed(tmp_path: Path) -> None:
    run = simulate(Scenario(protocol="hydra", options={"sequencers": 3}, workload=WorkloadSpec(messages=5)))
    write_run(tmp_path / "one", msgspec.structs.replace(run.description, scenario={}), run.table)
    with pytest.raises(LocalError, match="does not say which options hydra had"):
        scenario_of(tmp_path / "one")


def test_a_trace_of_other_nodes_is_no_workload(folder: Path) -> None:
    workload = {"kind": "trace", "file": str(folder), "messages": 60}
    with pytest.raises(LocalError, match=r"workload.file: the trace has a submission of node \d+"):
        simulate(to_scenario({"protocol": "unordered", "senders": 1, "workload": workload}))
    with pytest.raises(LocalError, match="several runs"):
        simulate(msgspec.structs.replace(SCENARIO, seed=4)).write(folder.parent)
        submissions_of(folder.parent)


def test_a_workload_that_is_a_trace_names_one() -> None:
    with pytest.raises(LocalError, match="needs `file`: the folder of a run"):
        to_scenario({"protocol": "unordered", "workload": {"kind": "trace"}})

"""`ordercast live FOLDER`: all scenarios of a folder, one after the other, with the account of each."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import msgspec
import pytest

from ordercast.cli import run
from ordercast.core import MILLISECOND, SECOND, LocalError, message_id
from ordercast.lab.trial.account import LiveAccount
from ordercast.lab.trial.account_rules import Complaint
from ordercast.scenario.faults import Disk, DiskTrouble, FaultSpec, Partition, Weather
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import simulate
from tests.deep import deep_after

EXAMPLES = Path(__file__).parents[2] / "examples" / "faults"

CALM = """
protocol = "unordered"
[workload]
messages = 50
rate_per_s = 200
"""
KILLED = """
protocol = "hydra"
live_options = true
senders = 3
colocated = true
settle_ms = 700
[options]
replicas = 1
[workload]
kind = "periodic"
messages = 450
rate_per_s = 100
[[fault]]
kind = "crash"
host = 6
at_ms = 300
"""
"""A sequencer is killed; there is another one."""

KEPT = LiveAccount(
    accepted=30,
    delivered=29,
    missing=0,
    twice=0,
    disorder=0,
    dropped=0,
    unconfirmed=1,
    in_flight=0,
    outage_ns=250 * MILLISECOND,
    limit_ns=6 * SECOND,
    complaints=(),
)
LACKING = msgspec.structs.replace(
    KEPT,
    missing=1,
    complaints=(Complaint("missing", (1,), (message_id(3, 7),), 1, "node 1 never got 3#7"),),
)


def test_all_scenarios_of_a_folder_run_and_applications_keep_an_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-calm.toml").write_text(CALM)
    (tmp_path / "b-broken.toml").write_text("protocol = 7")
    (tmp_path / "c-killed.toml").write_text(KILLED)
    assert run(["live", str(tmp_path), "--json", "--out", str(tmp_path / "traces")]) == 2
    said = capsys.readouterr()
    assert "b-broken.toml, line 1: protocol: expected `str`, got `int`" in " ".join(said.err.split())
    told = json.loads(said.out)
    assert told["failed"] == ["b-broken"]
    calm, broken, killed = told["runs"]
    assert [one["scenario"] for one in told["runs"]] == ["a-calm", "b-broken", "c-killed"]
    assert calm["account"]["accepted"] == calm["account"]["delivered"] == 50
    assert calm["account"]["limit_ns"] is None, "the simulator's timeouts are not for real machines"
    assert "line 1: protocol" in broken["error"]
    account = killed["account"]
    assert account["complaints"] == killed["violations"] == []
    assert account["accepted"] == 450 and account["missing"] == account["twice"] == account["disorder"] == 0
    assert 450 - account["delivered"] <= account["dropped"] + account["unconfirmed"]
    assert 400 * MILLISECOND < account["outage_ns"] <= account["limit_ns"] == 6500 * MILLISECOND
    assert len(list((tmp_path / "traces").iterdir())) == 2


@pytest.fixture
def pretending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files whose names say what comes of them."""

    def pretend(scenario: Scenario, out: Path | None, progress: object) -> tuple[object, None]:
        if scenario.name == "dead":
            raise LocalError("host 3 ended unexpectedly: its log is empty")
        account = LACKING if scenario.name == "lacking" else KEPT
        return SimpleNamespace(
            violations=[], account=account, complaints=account.complaints, scenario=scenario
        ), None

    monkeypatch.setattr("ordercast.cli.live.run_live", pretend)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def write(folder: Path, *names: str) -> str:
    for name in names:
        (folder / f"{name}.toml").write_text(f'protocol = "unordered"\nname = "{name}"\n')
    return str(folder)


def test_the_table_has_a_line_for_each_scenario_and_tells_what_applications_complain_of(
    pretending: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["live", write(pretending, "kept", "lacking", "dead")]) == 1, "a broken promise weighs more"
    said = capsys.readouterr()
    assert "dead.toml: host 3 ended unexpectedly" in said.err
    head, *lines = [" ".join(line.split()) for line in said.out.splitlines()]
    columns = "delivered missing twice disorder dropped unconfirmed outage limit verdict"
    assert head == f"scenario protocol {columns}"
    assert lines == [
        "dead not run",
        "kept unordered 29 of 30 0 0 0 0 1 250 ms 6 s kept",
        "lacking unordered 29 of 30 1 0 0 0 1 250 ms 6 s missing",
        "missing, by the account of the applications in lacking",
        "node 1 never got 3#7",
    ]


def test_the_exit_code_says_what_came_of_all(pretending: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["live", write(pretending, "kept")]) == 0
    assert run(["live", write(pretending, "dead")]) == 2
    assert run(["live", str(pretending), "--from-trace", str(pretending)]) == 2
    (pretending / "empty").mkdir()
    assert run(["live", str(pretending / "empty")]) == 2
    assert "there is no scenario file (*.toml) in this folder" in " ".join(capsys.readouterr().err.split())


def test_each_example_says_what_happens_and_has_the_timeouts_of_live_clusters() -> None:
    for path in sorted(EXAMPLES.glob("*.toml")):
        scenario = load_scenario(path)
        assert path.read_text().startswith("# ") and path.stem.startswith(scenario.protocol.split("_")[0])
        assert scenario.live_options and scenario.workload.kind == "periodic", path.stem
        assert scenario.fault or scenario.changes or not scenario.network.calm, path.stem


def test_each_kind_of_live_fault_has_an_example() -> None:
    """The weather has one as the conditions of a network, from the beginning on."""
    faults = [fault for path in EXAMPLES.glob("*.toml") for fault in load_scenario(path).fault]
    assert {type(fault) for fault in faults} == set(get_args(FaultSpec)) - {Weather}
    assert {fault.what for fault in faults if isinstance(fault, Disk)} == set(get_args(DiskTrouble))
    assert {fault.one_way for fault in faults if isinstance(fault, Partition)} == {False, True}


def test_the_table_of_the_page_has_a_row_for_each_example() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "live.md").read_text()
    rows = [found[1] for found in re.finditer(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)]
    names = [path.stem for path in EXAMPLES.glob("*.toml")]
    assert sorted(name for name in rows if name in names) == sorted(names)


@pytest.mark.parametrize("name", deep_after(2, [path.stem for path in sorted(EXAMPLES.glob("*.toml"))]))
def test_the_simulator_runs_each_example_and_it_keeps_every_promise(name: str) -> None:
    scenario = load_scenario(EXAMPLES / f"{name}.toml")
    simulated = simulate(scenario)
    assert simulated.violations == [] and simulated.beyond_contract == []
    assert simulated.hindrance == "" and simulated.summary().submitted > 800


@pytest.mark.deep
def test_every_live_fault_is_survived_by_the_account_of_the_applications(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(["live", str(EXAMPLES), "--json"])
    told = json.loads(capsys.readouterr().out)
    complaints = [one["detail"] for run in told["runs"] for one in run["account"]["complaints"]]
    assert (code, told["failed"], complaints) == (0, [], [])

"""`ordercast sweep`: what it prints and how it ends; killed or interrupted, it goes on where it was."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline.job import run_job
from ordercast.pipeline.sweep import claimed
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario
from tests.cli.conftest import Command, ordercast
from tests.spark.sweeps import promising_order, small_sweep, table_bytes, trace_bytes, use

__all__ = ["ordercast"]  # a fixture

PATIENCE_S = 300.0


@pytest.mark.deep
@pytest.mark.usefixtures("here")
def test_the_command_shows_what_the_tables_say(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_sweep(tmp_path)
    words = ("sweep", tmp_path / "small.toml", "--out", tmp_path / "good")
    good = ordercast(*words)
    assert (good.code, complaints(good.err)) == (0, [])
    assert "small: 6 runs" in good.out and "6 kept" in good.out and "kept every promise" in good.out

    def simulate_one(scenario: Scenario) -> Run:
        if scenario.seed == 2:
            raise ZeroDivisionError("on purpose")
        return promising_order(scenario) if scenario.seed == 4 else run_scenario(scenario)

    use(monkeypatch, simulate_one)
    words = (*words[:-1], tmp_path / "bad")
    bad = ordercast(*words)
    assert bad.code == 1
    for said in (
        "4 kept, 1 violated",
        "failed",
        "ZeroDivisionError: on purpose",
        "total-order violated in unord",
    ):
        assert said in bad.out
    content = ordercast(*words, "--json").json()
    counts = [content[key] for key in ("runs", "kept", "violated", "failed")]
    assert counts == [6, 4, 1, 1]
    assert content["violations"][0]["property"] == "total-order"
    assert content["violations"][0]["run"].startswith("unordered-4-")
    assert "on purpose" in content["failures"][0]["error"]


@pytest.mark.deep
@pytest.mark.usefixtures("here")
def test_without_a_terminal_long_work_is_told_in_lines(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.cli.sweep.LONG_S", 0.0)
    small_sweep(tmp_path)
    outcome = ordercast("sweep", tmp_path / "small.toml", "--out", tmp_path / "out", "--json")
    assert outcome.json()["kept"] == 6
    assert outcome.err.splitlines()[0] == "simulating: 0 of 6, none yet"
    told = outcome.err.splitlines()
    assert any(line.startswith("simulating: 6 of 6, ") for line in told)
    assert any(line.startswith("judging: 6 of 6, ") for line in told)


def test_a_folder_of_another_sweep_is_refused_before_spark_starts(ordercast: Command, tmp_path: Path) -> None:
    with claimed(tmp_path / "out", small_sweep(tmp_path)):
        pass
    small_sweep(tmp_path, seeds="0:3")
    outcome = ordercast("sweep", tmp_path / "small.toml", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "this folder belongs to another sweep, 'small' with 6 runs" in outcome.err


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--master", "bogus"], "'bogus' is not a Spark master"),
        (["--master", "spark://127.0.0.1:1"], "no Spark master answers at spark://127.0.0.1:1"),
        (["--colour"], "no such option"),
    ],
)
def test_bad_input_is_told_in_a_line(
    ordercast: Command, tmp_path: Path, more: list[str], complaint: str
) -> None:
    small_sweep(tmp_path)
    outcome = ordercast("sweep", tmp_path / "small.toml", "--out", tmp_path / "out", *more)
    assert outcome.code == 2
    assert complaint.lower() in outcome.err.lower()
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_help_does_not_wait_for_spark() -> None:
    code = (
        "import sys; from ordercast.cli import run; run(['sweep', '--help']);"
        "sys.exit('pyspark' in sys.modules or 'ordercast.pipeline' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "examples/every-protocol.toml" in done.stdout


def start(folder: Path) -> "subprocess.Popen[str]":
    """The command in a process of its own; Ctrl-C of this terminal is not for it."""
    program = [sys.executable, "-c", "from ordercast.cli import main; main()"]
    return subprocess.Popen(
        [*program, "sweep", "small.toml", "--out", "out", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def complaints(err: str) -> list[str]:
    """What a command said on standard error, but for how far it was."""
    return [line for line in err.splitlines() if not re.match("(simulating|judging|measuring): ", line)]


def await_runs(process: "subprocess.Popen[str]", out: Path, count: int) -> None:
    """Wait until a sweep has written so many traces."""
    end = time.monotonic() + PATIENCE_S
    while len(list((out / "traces").glob("*"))) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def processes(folder: Path, word: str = "pyspark.daemon") -> list[int]:
    """Processes with this word in their command that run in this folder: Python workers, or Java."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            here = (path / "cwd").readlink() == folder
            if here and word.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for processes in /proc")
@pytest.mark.deep
def test_killed_in_the_middle_and_started_again_it_ends_as_if_nothing_had_happened(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Longer than Spark takes to end its workers, even where it starts for the first time.
    sweep = small_sweep(tmp_path, seeds="0:20", messages=2000)
    process = start(tmp_path)
    await_runs(process, tmp_path / "out", 2)
    assert processes(tmp_path), "there should be workers for this test to be about"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    had = len(list((tmp_path / "out" / "traces").iterdir()))
    end = time.monotonic() + PATIENCE_S
    while processes(tmp_path):
        assert time.monotonic() < end, "workers live on without a driver"
        time.sleep(0.1)
    assert process.stdout and process.stderr
    process.stdout.close()
    process.stderr.close()
    done = len(list((tmp_path / "out" / "traces").glob("*/run.json")))
    assert 2 <= done <= had + (os.cpu_count() or 1), "no worker should begin another run"
    assert done < len(sweep.rows)
    assert not (tmp_path / "out" / "tables" / "runs").exists()

    again = start(tmp_path)
    out, err = again.communicate(timeout=PATIENCE_S)
    assert (again.returncode, json.loads(out)["kept"]) == (0, len(sweep.rows)), err
    run_job(spark, sweep, tmp_path / "undisturbed")
    assert table_bytes(tmp_path / "out") == table_bytes(tmp_path / "undisturbed")
    assert trace_bytes(tmp_path / "out") == trace_bytes(tmp_path / "undisturbed")


@pytest.mark.deep
def test_interrupted_it_stops_spark_and_says_so_in_a_word(tmp_path: Path) -> None:
    small_sweep(tmp_path, seeds="0:40", messages=1500)
    process = start(tmp_path)
    await_runs(process, tmp_path / "out", 2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, complaints(err)) == (130, "", ["ordercast: interrupted"])
    assert len(list((tmp_path / "out" / "traces").iterdir())) < 40


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for processes in /proc")
@pytest.mark.deep
def test_interrupted_while_spark_starts_it_leaves_no_java_behind(tmp_path: Path) -> None:
    small_sweep(tmp_path)
    process = start(tmp_path)
    end = time.monotonic() + PATIENCE_S
    while not processes(tmp_path, "SparkSubmit"):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    # As long as Java lives, it has the other end of these pipes.
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "ordercast: interrupted\n")
    assert processes(tmp_path, "SparkSubmit") == []


@pytest.mark.deep
def test_a_java_that_dies_is_told_in_a_line(tmp_path: Path) -> None:
    small_sweep(tmp_path, seeds="0:40", messages=1500)
    process = start(tmp_path)
    await_runs(process, tmp_path / "out", 2)
    (java,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(java), signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE_S)
    said = "ordercast: Spark stopped: its Java process ended, perhaps because memory ran out"
    assert (process.returncode, out, complaints(err)) == (2, "", [said])

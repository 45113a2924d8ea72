"""A sweep and a verification on a real standalone cluster: a master, two workers, an executor at each."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError
from ordercast.pipeline import cluster
from ordercast.pipeline.cluster import local_cluster
from ordercast.pipeline.sweep import run_sweep
from tests.spark.sweeps import small_sweep, table_bytes, trace_bytes

PATIENCE_S = 300.0
START = """\
import time
from ordercast.pipeline.cluster import local_cluster
with local_cluster(workers=1):
    print("up", flush=True)
    time.sleep(600)
"""


def daemons(environment: str) -> list[int]:
    """Processes that inherited this from our environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if environment.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


def await_none(environment: str) -> list[int]:
    end = time.monotonic() + PATIENCE_S
    while (left := daemons(environment)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.deep
def test_a_sweep_on_a_cluster_gives_the_tables_of_a_local_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"ORDERCAST_TEST={tmp_path}"
    monkeypatch.setenv(*mark.split("="))
    sweep = small_sweep(tmp_path)
    out = tmp_path / "out"
    program = [sys.executable, str(Path(__file__).with_name("cluster_job.py"))]
    with local_cluster(workers=2) as master:
        assert daemons(mark)
        done = subprocess.run(
            [*program, master, str(tmp_path / "small.toml"), str(out)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said["protocols"] == {"unordered": {"kept": len(sweep.rows)}}
    assert len(said["judged"]) == 2 * len(sweep.rows)
    assert [judged for judged in said["judged"] if judged[1:] != [0, None]] == []
    for seen in said["seen"]:
        assert "ordercast.zip" in seen["file"], "the package should come from what the driver sent"
        assert seen["protocols"] == protocol_names()
        assert seen["data"] > 0
    assert len({seen["folder"] for seen in said["seen"]}) == 2, "both workers should have had an executor"
    run_sweep(spark, sweep, tmp_path / "local")
    assert table_bytes(out) == table_bytes(tmp_path / "local")
    assert trace_bytes(out) == trace_bytes(tmp_path / "local")
    monkeypatch.delenv("ORDERCAST_TEST")
    assert await_none(mark) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.deep
def test_a_cluster_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    mark = f"ORDERCAST_TEST={tmp_path}"
    environment = os.environ | dict([mark.split("=")])
    process = subprocess.Popen(
        [sys.executable, "-c", START], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout
    with process.stdout:
        assert process.stdout.readline() == "up\n"
    assert len(daemons(mark)) >= 3
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert await_none(mark) == []


def test_a_cluster_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho no java today >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setattr(cluster, "find_java", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(LocalError, match="the Spark cluster does not start: "), local_cluster(workers=1):
        pass

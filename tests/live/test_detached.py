"""A detached cluster: its hosts outlive the supervisor, every command finds them, and nobody else is hit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.host_mark import Mark, find_marked, leave_mark, mark_path
from ordercast.net.cluster.supervisor_client import (
    attend,
    await_end,
    current_run,
    detached_hosts,
    is_supervised,
    report,
)
from tests.live.commands import Said, delivered, hosts_shown, small_hydra, states
from tests.live.processes import PATIENCE_S, alive, until


def kill_supervisor(cluster: Cluster, number: signal.Signals = signal.SIGKILL) -> None:
    """End the supervisor, and wait until it is gone."""
    found = report(cluster)
    assert found is not None
    os.kill(found.pid, number)
    assert await_end(cluster, PATIENCE_S) and until(lambda: not alive(found.pid))


def test_hosts_outlive_their_supervisor_and_every_command_finds_them(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config, "--detach", "--run", "kept")
        hosts = {host: mark.pid for host, mark in detached_hosts(cluster.folder).items()}
        assert sorted(hosts) == [0, 2, 4]
        said("send", "orders", "one", *config)
        kill_supervisor(cluster)

        # They run on, and can be seen and used.
        assert all(alive(pid) for pid in hosts.values()) and not is_supervised(cluster)
        assert "no supervisor here, detached hosts" in said("cluster", "status", *config)
        shown = json.loads(said("cluster", "status", *config, "--json"))
        assert (shown["supervisor"], shown["run"], shown["detached"]) == (None, "kept", True)
        assert {host["id"]: host["pid"] for host in shown["hosts"] if host["state"] == "up"} == hosts
        said("send", "orders", "two", *config)
        assert until(lambda: delivered(cluster, said) == 2)
        assert "the key is now" in said("cluster", "rotate-key", *config)
        assert len(json.loads(said("top", "--once", "--json", *config))["hosts"]) == 3
        assert current_run(cluster) == "kept"
        assert not is_supervised(cluster), "who only looks starts nothing"

        # Nothing is started twice.
        complaint = said("cluster", "up", *config, code=2)
        assert "already up: these hosts outlived the supervisor and still run: 0, 2, 4" in complaint
        assert {host: mark.pid for host, mark in detached_hosts(cluster.folder).items()} == hosts

        assert "is up; stop it first" in said("cluster", "init", *config, "--name", "test", "--force", code=2)

        # Orders are carried out by another supervisor, which adopts them.
        assert said("cluster", "act", "add-sequencer", *config) == "started host 3 (sequencer-1)"
        assert states(cluster, said) == {0: "up", 2: "up", 3: "up", 4: "up"}
        assert said("cluster", "kill", "2", *config) == "killed host 2 (sequencer-0)"
        assert until(lambda: not alive(hosts[2]))
        assert states(cluster, said)[2] == "dead"
        assert said("cluster", "restart", "2", *config) == "started host 2 (sequencer-0)"
        kill_supervisor(cluster, signal.SIGTERM)
        now = [mark.pid for mark in detached_hosts(cluster.folder).values()]
        assert len(now) == 4 and {hosts[0], hosts[4]} < {*now}

        # Down finds them all, and their trace is whole.
        told = said("cluster", "down", *config)
        assert told.startswith("the cluster 'test' is down trace: ")
        assert not any(alive(pid) for pid in now) and not is_supervised(cluster)
        assert not list((cluster.folder / "run").glob("*.pid"))
        judged = json.loads(said("check", cluster.traces / "kept", "--json"))
        assert (judged["runs"], judged["violations"], judged["incomplete"]) == (1, [], [])
        assert said("cluster", "down", *config) == "the cluster 'test' is not up"


@pytest.mark.deep
def test_no_detached_host_outlives_its_folder(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        said("cluster", "up", "--config", cluster.file, "--detach")
        kill_supervisor(cluster)
        hosts = [mark.pid for mark in detached_hosts(cluster.folder).values()]
        shutil.rmtree(cluster.folder)
        assert len(hosts) == 3 and until(lambda: not any(alive(pid) for pid in hosts))


@pytest.mark.deep
def test_down_ends_a_detached_host_that_hangs(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config, "--detach")
        kill_supervisor(cluster)
        hosts = {host: mark.pid for host, mark in detached_hosts(cluster.folder).items()}
        os.kill(hosts[2], signal.SIGSTOP)
        shown = hosts_shown(cluster, said)[1]
        assert (shown["id"], shown["state"], shown["pid"]) == (2, "silent", hosts[2])
        said("cluster", "down", *config, "--timeout", "1")
        assert not any(alive(pid) for pid in hosts.values())


def test_foreground_and_detach_exclude_each_other(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        complaint = said("cluster", "up", "--config", cluster.file, "--detach", "--foreground", code=2)
        assert "choose one" in complaint and not cluster.folder.exists()


def test_a_stale_mark_is_recognised_and_its_number_is_never_signalled(tmp_path: Path, said: Said) -> None:
    """The process that has the number of an ended host now is somebody else's."""
    with small_hydra(tmp_path) as cluster, subprocess.Popen(["sleep", "1000"]) as stranger:
        path = mark_path(cluster.folder, 0)
        path.parent.mkdir(parents=True, mode=0o700)
        path.write_text(f'{{"pid": {stranger.pid}, "run": "old", "began": {time.time()}}}')
        found = find_marked(path)
        assert found is not None and not found.running
        found.signal(signal.SIGKILL)
        assert detached_hosts(cluster.folder) == {} and not attend(cluster)
        assert said("cluster", "down", "--config", cluster.file) == "the cluster 'test' is not up"
        assert states(cluster, said)[0] == "down"
        assert stranger.poll() is None, "it was hit by a signal"
        stranger.kill()


@pytest.mark.parametrize("text", ["", "nonsense", '{"pid": "one"}', "null"])
def test_a_mark_that_cannot_be_read_is_nobody(tmp_path: Path, text: str) -> None:
    path = mark_path(tmp_path, 0)
    path.parent.mkdir()
    path.write_text(text)
    assert find_marked(path) is None and detached_hosts(tmp_path) == {}


def test_a_mark_lasts_as_long_as_its_process(tmp_path: Path) -> None:
    path = mark_path(tmp_path, 7)
    text = (
        "import os, sys, time; from pathlib import Path;"
        "from ordercast.net.cluster.host_mark import Mark, leave_mark;"
        "leave_mark(Path(sys.argv[1]), Mark(os.getpid(), 'run', 0.0)); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(path)]) as process:
        assert until(lambda: detached_hosts(tmp_path) == {7: Mark(process.pid, "run", 0.0)})
        with pytest.raises(LocalError, match=f"process {process.pid} already runs this host"):
            leave_mark(path, Mark(os.getpid(), "run", 0.0))
        found = find_marked(path)
        assert found is not None and found.running
        found.signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == -signal.SIGTERM
    assert detached_hosts(tmp_path) == {}
    os.close(leave_mark(path, Mark(os.getpid(), "run", 0.0)))

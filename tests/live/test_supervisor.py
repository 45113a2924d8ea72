"""The supervisor: hosts do what they are told, and none outlives it, however it ends."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor import HostState, Order, Report
from ordercast.net.cluster.supervisor_client import (
    await_end,
    await_supervisor,
    is_supervised,
    order,
    report,
    spawn,
)
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S, alive, until
from tests.tidy import ROOT


@contextmanager
def supervised(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str = "") -> Iterator[tuple[Cluster, int]]:
    """A cluster of three hosts, of which the last is a spare, and the pid of its supervisor."""
    cluster = load_cluster(write_cluster(folder, spares=(2,)))
    monkeypatch.chdir(ROOT)
    pid = spawn(cluster, [sys.executable, "-m", "tests.live.supervise", str(cluster.file), how])
    try:
        await_supervisor(cluster, pid)
        yield cluster, pid
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def states(found: Report | None) -> list[str]:
    assert found is not None
    return [host.state for host in found.hosts]


def pids(cluster: Cluster) -> list[int]:
    found = report(cluster)
    assert found is not None
    return [host.pid for host in found.hosts if host.pid is not None]


def host(found: Report, index: int) -> HostState:
    return found.hosts[index]


def test_all_hosts_but_spares_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        found = report(cluster)
        assert found is not None
        assert (found.pid, found.run) == (pid, "test")
        assert states(found) == ["running", "running", "spare"]
        assert all(alive(one) for one in pids(cluster))


def test_hosts_are_killed_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, _):
        first, second = pids(cluster)
        found = order(cluster, Order("kill", 0))
        assert host(found, 0) == HostState(0, "dead", ended="killed by SIGKILL")
        assert not alive(first)
        with pytest.raises(LocalError, match="host 0 is not running"):
            order(cluster, Order("kill", 0))
        again = host(order(cluster, Order("restart", 0)), 0)
        assert again.state == "running" and again.pid != first
        # One that runs is killed first.
        other = host(order(cluster, Order("restart", 1)), 1)
        assert other.state == "running" and other.pid != second
        assert not alive(second)


def test_a_host_that_is_restarted_cleanly_is_asked_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, _):
        first, _ = pids(cluster)
        assert until(lambda: cluster.socket_path(0).exists())
        again = host(order(cluster, Order("restart", 0, clean=True)), 0)
        assert again.state == "running" and again.pid != first and not alive(first)


def test_a_host_that_does_not_stop_is_not_started_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervised(tmp_path, monkeypatch, "stubborn") as (cluster, _):
        before = pids(cluster)
        assert until(lambda: cluster.socket_path(0).exists())
        with pytest.raises(LocalError, match="host 0 was told to stop and has not within"):
            order(cluster, Order("restart", 0, timeout_s=0.2, clean=True))
        assert pids(cluster) == before and all(alive(pid) for pid in before)


def test_a_spare_is_started_when_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, _):
        assert states(order(cluster, Order("start", 2))) == ["running"] * 3
        with pytest.raises(LocalError, match="host 2 is already running"):
            order(cluster, Order("start", 2))
        with pytest.raises(LocalError, match="no host 7"):
            order(cluster, Order("start", 7))


def test_down_ends_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        hosts = pids(cluster)
        order(cluster, Order("down"))
        assert await_end(cluster, PATIENCE_S)
        assert until(lambda: not alive(pid))
        assert not any(alive(one) for one in hosts)
        assert not list((cluster.folder / "run").glob("supervisor.sock"))
        with pytest.raises(LocalError, match="is not up on this machine"):
            order(cluster, Order("status"))
        assert report(cluster) is None


def test_down_kills_what_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch, "stubborn") as (cluster, _):
        hosts = pids(cluster)
        assert until(lambda: all(cluster.socket_path(one).exists() for one in (0, 1)))
        began = time.monotonic()
        order(cluster, Order("down", timeout_s=0.5))
        assert await_end(cluster, PATIENCE_S)
        assert time.monotonic() - began >= 0.5
        assert not any(alive(one) for one in hosts)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_host_outlives_its_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        hosts = pids(cluster)
        os.kill(pid, number)
        assert until(lambda: not any(alive(one) for one in (pid, *hosts)))
        assert not is_supervised(cluster)


def test_all_end_when_the_folder_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        hosts = pids(cluster)
        shutil.rmtree(cluster.folder)
        assert until(lambda: not any(alive(one) for one in (pid, *hosts)))


def test_a_new_supervisor_takes_over_what_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert not is_supervised(cluster)
        again = spawn(cluster, [sys.executable, "-m", "tests.live.supervise", str(cluster.file)])
        try:
            assert states(await_supervisor(cluster, again)) == ["running", "running", "spare"]
        finally:
            os.kill(again, signal.SIGTERM)
            os.waitpid(again, 0)


def test_there_is_one_supervisor_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, _):
        before = pids(cluster)
        again = spawn(cluster, [sys.executable, "-m", "tests.live.supervise", str(cluster.file)])
        _, status = os.waitpid(again, 0)
        assert os.waitstatus_to_exitcode(status) == 1
        assert "is already up" in (cluster.folder / "logs" / "supervisor.log").read_text()
        assert pids(cluster) == before


def test_a_host_that_dies_at_once_is_seen_and_its_words_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervised(tmp_path, monkeypatch, "broken") as (cluster, _):
        assert until(lambda: states(report(cluster))[:2] == ["dead", "dead"])
        found = report(cluster)
        assert found is not None and host(found, 0).ended == "exit code 1"
        assert cluster.log_path(0).read_text() == "the port is taken\n"


def test_nonsense_is_answered_and_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, _):
        nonsense = Order("status", timeout_s=1.0)
        with pytest.raises(LocalError, match="Invalid enum value 'dance'"):
            order(cluster, type(nonsense)("dance"))  # type: ignore[arg-type]
        assert states(report(cluster)) == ["running", "running", "spare"]


def test_restarts_at_once_leave_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(tmp_path, monkeypatch) as (cluster, pid):
        with ThreadPoolExecutor(4) as threads:
            reports = list(threads.map(lambda _: order(cluster, Order("restart", 0)), range(4)))
        assert all(host(found, 0).state == "running" for found in reports)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert sorted(map(int, children)) == sorted(pids(cluster))

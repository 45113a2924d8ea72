"""A cluster as users run it, whose configuration service loses its leader in the middle of a removal."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordercast.cli import run as command
from ordercast.core import HostId, LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from ordercast.net.control.client import ControlClient
from ordercast.trace import Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.processes import alive, until

pytestmark = pytest.mark.xdist_group("live scenarios")

RECEIVERS = (0, 1, 2)
SEQUENCERS = (6, 7)
SERVICE = (8, 9, 10)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three receivers with a sender each, two sequencers and three replicas, all of them up."""
    path = write_cluster(
        tmp_path,
        protocol="hydra",
        receivers=3,
        top="senders = 3\ncolocated = true",
        options="sequencers = 2\nreplicas = 3",
        hosts=(*RECEIVERS, *SEQUENCERS, *SERVICE),
    )
    cluster = load_cluster(path)
    try:
        assert command(["cluster", "up", "--config", str(path)]) == 0
        yield cluster
    finally:
        if found := report(cluster):
            for pid in [host.pid for host in found.hosts if host.pid and alive(host.pid)]:
                os.kill(pid, signal.SIGCONT)  # or it would not notice that the supervisor ends
            os.kill(found.pid, signal.SIGKILL)  # the hosts follow
            assert until(lambda: not any(host.pid and alive(host.pid) for host in found.hosts))


def say(cluster: Cluster, *words: object) -> None:
    assert command([str(word) for word in (*words, "--config", cluster.file)]) == 0


def strike(cluster: Cluster, kind: signal.Signals, *hosts: HostId) -> None:
    """Send a signal to hosts."""
    found = report(cluster)
    assert found is not None
    for host in found.hosts:
        if host.id in hosts:
            assert host.pid is not None
            os.kill(host.pid, kind)


def waits(cluster: Cluster, host: HostId) -> list[str]:
    """What the only node of a host says that it waits for."""
    with ControlClient(host, cluster.socket_path(host)) as client:
        (node,) = client.explain().nodes.values()
        return [f"{wait.subject}: {wait.blocker}" for wait in node.waits]


def leader(cluster: Cluster) -> HostId | None:
    """The replica that leads, as it says itself."""
    for host in SERVICE:
        with ControlClient(host, cluster.socket_path(host)) as client:
            (node,) = client.explain().nodes.values()
            if node.state["log role"] == "leader":
                return host
    return None


def delivered(cluster: Cluster) -> list[int]:
    counts = []
    for host in RECEIVERS:
        with ControlClient(host, cluster.socket_path(host)) as client:
            counts.append(int(client.metrics()["messages_delivered"]))
    return counts


@contextmanager
def load(cluster: Cluster) -> Iterator[None]:
    """A message each few milliseconds of each sender, for a minute at most."""
    done = threading.Event()

    def send(host: HostId) -> None:
        end = time.monotonic() + 60
        with ControlClient(host, cluster.socket_path(host), timeout_s=30) as client:
            while not done.wait(0.004) and time.monotonic() < end:
                client.submit(["orders"], [b"message"])

    threads = [threading.Thread(target=send, args=(host,)) for host in RECEIVERS]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def goes_on(cluster: Cluster, more: int = 100) -> bool:
    """Whether all receivers deliver more messages."""
    before = delivered(cluster)
    return until(
        lambda: all(now - then >= more for now, then in zip(delivered(cluster), before, strict=True))
    )


def seen(holds: Callable[[], bool]) -> bool:
    """Whether something comes true, of hosts that may not answer meanwhile."""

    def patiently() -> bool:
        try:
            return holds()
        except LocalError:
            return False

    return until(patiently)


def test_a_removal_completes_though_the_leader_is_killed_in_its_middle(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with load(cluster):
        assert goes_on(cluster)
        first = leader(cluster)
        assert first is not None
        followers = [host for host in SERVICE if host != first]
        # Without followers the leader can decide nothing. So it is caught with the removal in its hands; and
        # without receivers it gets no reports, so it cannot come to the end of it.
        strike(cluster, signal.SIGSTOP, *followers)
        say(cluster, "cluster", "kill", SEQUENCERS[0])
        assert seen(lambda: any(wait.startswith("slot ") for wait in waits(cluster, first)))
        strike(cluster, signal.SIGSTOP, *RECEIVERS)
        strike(cluster, signal.SIGCONT, *followers)
        planned = "step 1: sequencer 1 removed: no report from 0, 1, 2"
        assert seen(lambda: any(planned in waits(cluster, host) for host in SERVICE))
        victim = leader(cluster)  # it may be another, for followers that stood still believed the first dead
        assert victim is not None and planned in waits(cluster, victim)
        say(cluster, "cluster", "kill", victim)
        strike(cluster, signal.SIGCONT, *RECEIVERS)
        assert goes_on(cluster)
        capsys.readouterr()
    say(cluster, "cluster", "restart", SEQUENCERS[0])
    say(cluster, "cluster", "restart", victim)
    found = report(cluster)
    assert found is not None
    say(cluster, "cluster", "down", "--settle", 1)
    assert not any(host.pid and alive(host.pid) for host in found.hosts)
    (stored,) = find_runs(cluster.traces)
    removals = [
        (event.node, event.config)
        for event in events_of(stored.table())
        if event.kind is Kind.VIEW and event.label == "removed" and event.stamp_issuer == 1
    ]
    assert sorted(removals) == [(node, 1) for node in RECEIVERS], "each passed it once, as the first step"
    capsys.readouterr()
    assert command(["check", str(cluster.traces), "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert (judged["runs"], judged["violations"], judged["incomplete"]) == (1, [], [])

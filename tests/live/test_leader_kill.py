"""A cluster as users run it, whose configuration service loses its leader in the middle of a removal."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from ordercast.cli import run as command
from ordercast.core import HostId
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from ordercast.net.tools.client import ControlClient, NoAnswer
from ordercast.trace import Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.processes import alive, beside, until

RECEIVERS = (0, 1, 2)
SEQUENCERS = (6, 7)
SERVICE = (8, 9, 10)
SUSPECT_NS = 2_000_000_000
"""Longer than a busy machine holds a sequencer up: only the one that is killed is to be suspected."""
SILENT = 2
"""The receiver that stands still while a sequencer is removed."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three receivers with a sender each, two sequencers and three replicas, all of them up."""
    path = write_cluster(
        tmp_path,
        protocol="hydra",
        receivers=3,
        top="senders = 3\ncolocated = true",
        options=f'sequencers = 2\nreplicas = 3\nquorum = "all"\nsuspect_ns = {SUSPECT_NS}',
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


def leader(cluster: Cluster, wait: str) -> HostId | None:
    """The replica that leads and waits for this, as it says itself."""
    for host in SERVICE:
        with suppress(NoAnswer):  # it may have been killed
            if wait in waits(cluster, host):
                return host
    return None


def delivered(cluster: Cluster) -> list[int]:
    counts = []
    for host in RECEIVERS:
        with ControlClient(host, cluster.socket_path(host)) as client:
            counts.append(int(client.metrics()["messages_delivered"]))
    return counts


def sending(cluster: Cluster, host: HostId, done: threading.Event) -> None:
    """Submit a message each few milliseconds, whenever the host answers."""
    while not done.is_set():
        with suppress(NoAnswer), ControlClient(host, cluster.socket_path(host)) as client:
            while not done.wait(0.004):
                client.submit(["orders"], [b"message"])


def goes_on(cluster: Cluster, more: int = 100) -> bool:
    """Whether all receivers deliver more messages."""
    before = delivered(cluster)
    return until(
        lambda: all(now - then >= more for now, then in zip(delivered(cluster), before, strict=True))
    )


@pytest.mark.deep
def test_a_removal_completes_though_the_leader_is_killed_in_its_middle(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with beside(*(partial(sending, cluster, host) for host in RECEIVERS)):
        assert goes_on(cluster)
        # The removal needs the report of every receiver. Without one it is planned, for the others suspect
        # the sequencer, and cannot be decided: so whoever leads is caught with it, and with two reports.
        strike(cluster, signal.SIGSTOP, SILENT)
        say(cluster, "cluster", "kill", SEQUENCERS[0])
        planned = f"step 1 (sequencer 1 removed): a report from nodes {SILENT}"
        assert until(lambda: leader(cluster, planned) is not None)
        victim = leader(cluster, planned)
        assert victim is not None
        say(cluster, "cluster", "kill", victim)
        # What it had collected is lost with it: the successor has the plan, and collects anew.
        assert until(lambda: leader(cluster, planned) not in (None, victim))
        strike(cluster, signal.SIGCONT, SILENT)
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

"""Real processes whose leader is cut off, both ways or one way, under load: the others go on."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from ordercast.core import HostId
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.tools.client import ControlClient, NoAnswer
from ordercast.net.transports.impair import Impairment
from tests.live.cluster_files import write_cluster
from tests.live.processes import beside, until

HOSTS = (0, 1, 2)
CUT_S = 8.0
SILENCE_S = 4.0
"""About three times the detection time of live clusters, and half of the time that a leader is cut off."""


def control(cluster: Cluster, host: HostId) -> ControlClient:
    return ControlClient(host, cluster.socket_path(host))


def answers(cluster: Cluster, host: HostId) -> bool:
    with suppress(NoAnswer):
        control(cluster, host).close()
        return True
    return False


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three receivers of atomic multicast with a sender each, whose datagrams can be blocked."""
    path = write_cluster(
        tmp_path,
        protocol="atomic_multicast",
        receivers=3,
        top="senders = 3\ncolocated = true\ntrace = false",
        hosts=HOSTS,
    )
    cluster = load_cluster(path)
    command = [sys.executable, "-m", "ordercast.cli", "node", "--config", str(path), "--impair", "1", "--id"]
    with ExitStack() as stack:
        for host in HOSTS:
            log = stack.enter_context((tmp_path / f"{host}.log").open("w"))
            process = stack.enter_context(subprocess.Popen([*command, str(host)], stderr=log))
            stack.callback(process.kill)
        assert until(lambda: all(answers(cluster, host) for host in HOSTS))
        yield cluster


def leader(cluster: Cluster) -> HostId | None:
    """Who leads and says so, in the highest ballot."""
    ballots: dict[int, HostId] = {}
    for host in HOSTS:
        with control(cluster, host) as client:
            state = client.explain().nodes[host].state
        if state["consensus role"] == "leader":
            ballots[int(state["consensus ballot"])] = host
    return ballots[max(ballots)] if ballots else None


def sending(cluster: Cluster, host: HostId, done: threading.Event) -> None:
    """Submit a message each few milliseconds, whenever the host takes one."""
    while not done.is_set():
        with suppress(NoAnswer), control(cluster, host) as client:
            while not done.wait(0.005):
                client.submit(["orders"], [b"message"])


def watching(cluster: Cluster, host: HostId, times: list[float], done: threading.Event) -> None:
    """Note each time at which the host has delivered more than before."""
    before = -1
    with control(cluster, host) as client:
        while not done.wait(0.01):
            delivered = int(client.metrics()["messages_delivered"])
            if delivered > before:
                times.append(time.monotonic())
            before = delivered


def block(cluster: Cluster, host: HostId, way: str) -> None:
    """Cut a host off: nothing arrives there (in), nothing that it sends arrives (out), or both."""
    others = tuple(other for other in HOSTS if other != host)
    blocked: dict[HostId, tuple[HostId, ...]] = dict.fromkeys(others, () if way == "out" else (host,))
    blocked[host] = others if way != "in" else ()
    for other, targets in blocked.items():
        with control(cluster, other) as client:
            client.impair(Impairment(blocked=targets))


def clear(cluster: Cluster) -> None:
    for host in HOSTS:
        with control(cluster, host) as client:
            client.impair(Impairment())


@pytest.mark.deep
@pytest.mark.parametrize("way", ["in", "both ways", "out"])
def test_the_others_elect_another_leader_long_before_the_first_is_back(cluster: Cluster, way: str) -> None:
    seen: dict[HostId, list[float]] = {host: [] for host in HOSTS}
    senders = [partial(sending, cluster, host) for host in HOSTS]
    watchers = [partial(watching, cluster, host, seen[host]) for host in HOSTS]
    with beside(*senders, *watchers):
        assert until(lambda: leader(cluster) is not None and all(len(times) > 10 for times in seen.values()))
        victim = leader(cluster)
        assert victim is not None
        began = time.monotonic()
        block(cluster, victim, way)
        time.sleep(CUT_S)
        assert leader(cluster) not in (None, victim)
        clear(cluster)
        back = time.monotonic()
        assert until(lambda: all(times[-1] > back + 1 for times in seen.values()))
    for host in set(HOSTS) - {victim}:
        times = [moment for moment in seen[host] if moment > began]
        gaps = [two - one for one, two in zip([began, *times], times, strict=False)]
        assert max(gaps) < SILENCE_S, f"host {host}"

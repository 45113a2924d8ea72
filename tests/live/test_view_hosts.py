"""Clusters with views under load: a host comes, one is killed, one is removed, and the others go on."""

import json
import os
import signal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.core import SECOND
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.trace import Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.commands import Said, ended
from tests.live.host_changes import address, figure, load
from tests.live.processes import until

TIMES = "heartbeat_ns = 50_000_000, suspect_ns = 400_000_000"
DETECTION_NS = 550_000_000
"""By these times, a member that fails is suspected after so long."""
MORE = 20
"""Messages that are delivered before the next thing happens."""
PROTOCOLS = ("hybrid", "view_synchronous", "token_site", "symmetric", "static_hybrid")


def options(protocol: str) -> str:
    """The options of a cluster that notices failures soon."""
    return TIMES.replace(", ", "\n") if protocol == "view_synchronous" else f"views = {{ {TIMES} }}"


def has_more(cluster: Cluster, count: int) -> bool:
    """Whether the newcomer has delivered more than so many messages."""
    return figure(cluster, 3) > count


def kill(cluster: Cluster, host: int, said: Said) -> None:
    """Kill the process of a host."""
    hosts = json.loads(said("cluster", "status", "--config", cluster.file, "--json"))["hosts"]
    os.kill(next(each["pid"] for each in hosts if each["id"] == host), signal.SIGKILL)


def judge(cluster: Cluster, newcomer: int, taken: list[int], said: Said) -> None:
    """The newcomer has the order of node 0 from its first message on, and node 0 had no long pause."""
    (stored,) = find_runs(cluster.traces)
    assert "kept every promise" in said("check", stored.folder)
    delivered = [event for event in events_of(stored.table()) if event.kind is Kind.DELIVER]
    old, new = ([event.message for event in delivered if event.node == node] for node in (0, newcomer))
    first = old.index(new[0])
    shared = min(len(old) - first, len(new))
    assert new[:shared] == old[first : first + shared] and shared > 60
    assert taken[-50] in new
    times = [event.time_ns for event in delivered if event.node == 0]
    longest = max(later - sooner for sooner, later in pairwise(times))
    assert longest <= 5 * DETECTION_NS, f"a pause of {longest / SECOND} s"


def test_a_host_comes_to_two_and_one_is_killed(tmp_path: Path, said: Said) -> None:
    top = "senders = 2\ncolocated = true"
    path = write_cluster(
        tmp_path, protocol="hybrid", receivers=2, top=top, options=options("hybrid"), hosts=(0, 1)
    )
    with ended(load_cluster(path)) as cluster:
        said("cluster", "up", "--config", cluster.file)
        with load(cluster, 0) as taken:
            assert "started host 2" in said("cluster", "add-host", address(), "--config", cluster.file)
            assert until(lambda: figure(cluster, 2) > MORE), "it delivers"
            kill(cluster, 1, said)
            before = figure(cluster, 2)
            assert until(lambda: figure(cluster, 2) > before + 3 * MORE), "the others go on"
        said("cluster", "down", "--config", cluster.file)
        judge(cluster, 2, taken, said)


@pytest.mark.deep
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_host_comes_one_is_killed_and_one_is_removed(protocol: str, tmp_path: Path, said: Said) -> None:
    path = write_cluster(
        tmp_path,
        protocol=protocol,
        receivers=3,
        top="senders = 3\ncolocated = true",
        options=options(protocol),
    )
    with ended(load_cluster(path)) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        with load(cluster, 0) as taken:
            assert until(lambda: figure(cluster, 2) > 0)
            assert "started host 3" in said("cluster", "add-host", address(), *config)
            assert until(lambda: figure(cluster, 3) > MORE), "it delivers"
            kill(cluster, 2, said)
            before = figure(cluster, 0)
            assert until(lambda: figure(cluster, 0) > before + MORE), "the others go on"
            for gone in ("2", "1"):  # the dead one first: it has a vote until it is removed
                assert f"removed host {gone}" in said("cluster", "remove-host", gone, *config)
                assert until(partial(has_more, cluster, figure(cluster, 3) + MORE)), "the others go on"
        said("cluster", "down", *config)
        judge(cluster, 3, taken, said)

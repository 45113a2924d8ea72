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
PROTOCOLS = [
    "hybrid",
    *(
        pytest.param(name, marks=pytest.mark.deep)
        for name in ("view_synchronous", "token_site", "symmetric", "static_hybrid")
    ),
]


def options(protocol: str) -> str:
    """The options of a cluster that notices failures soon."""
    return TIMES.replace(", ", "\n") if protocol == "view_synchronous" else f"views = {{ {TIMES} }}"


def has_more(cluster: Cluster, count: int) -> bool:
    """Whether the newcomer has delivered more than so many messages."""
    return figure(cluster, 3) > count


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
            assert until(lambda: figure(cluster, 3) > 20), "it delivers"
            hosts = json.loads(said("cluster", "status", *config, "--json"))["hosts"]
            os.kill(next(host["pid"] for host in hosts if host["id"] == 2), signal.SIGKILL)
            before = figure(cluster, 0)
            assert until(lambda: figure(cluster, 0) > before + 20), "the others go on"
            for gone in ("2", "1"):  # the dead one first: it has a vote until it is removed
                assert f"removed host {gone}" in said("cluster", "remove-host", gone, *config)
                assert until(partial(has_more, cluster, figure(cluster, 3) + 20)), "the others go on"
        said("cluster", "down", *config)
        (stored,) = find_runs(cluster.traces)
        assert "kept every promise" in said("check", stored.folder)
        events = list(events_of(stored.table()))
        got = {
            node: [e.message for e in events if e.node == node and e.kind is Kind.DELIVER] for node in (0, 3)
        }
        first = got[0].index(got[3][0])
        shared = min(len(got[0]) - first, len(got[3]))
        assert got[3][:shared] == got[0][first : first + shared] and shared > 60
        assert taken[-50] in got[3]
        times = [event.time_ns for event in events if event.node == 0 and event.kind is Kind.DELIVER]
        longest = max(later - sooner for sooner, later in pairwise(times))
        assert longest <= 5 * DETECTION_NS, f"a pause of {longest / SECOND} s"

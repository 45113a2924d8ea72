"""Clusters that the tests run by commands, and end whatever happens."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import detached_hosts, report
from tests.live.cluster_files import write_cluster
from tests.live.processes import alive, until

Said = Callable[..., str]
"""Runs a command that must end with a code, and gives what it printed."""
SUSPECT_NS = 2_000_000_000
"""Longer than a busy machine holds a sequencer up: what is sent to one that is removed is lost."""


@contextmanager
def ended(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that leaves no process behind."""
    try:
        yield cluster
    finally:
        if found := report(cluster):
            os.kill(found.pid, signal.SIGKILL)  # the hosts follow, unless they are detached
        for mark in detached_hosts(cluster.folder).values():
            os.kill(mark.pid, signal.SIGKILL)
        left = [host.pid for host in found.hosts] if found else []
        assert until(lambda: not any(pid and alive(pid) for pid in left))


@contextmanager
def small_hydra(folder: Path, **more: Any) -> Iterator[Cluster]:
    """A receiver with a sender (0), a sequencer (2), a spare one (3), and the service (4)."""
    options = f"sequencers = 1\nspares = 1\nreplicas = 1\nsuspect_ns = {SUSPECT_NS}"
    path = write_cluster(
        folder,
        protocol="hydra",
        receivers=1,
        top="colocated = true",
        options=options,
        hosts=(0, 2, 3, 4),
        spares=(3,),
        **more,
    )
    with ended(load_cluster(path)) as cluster:
        yield cluster


def hosts_shown(cluster: Cluster, said: Said) -> list[dict[str, Any]]:
    """What `cluster status` says about each host."""
    found: list[dict[str, Any]] = json.loads(said("cluster", "status", "--config", cluster.file, "--json"))[
        "hosts"
    ]
    return found


def states(cluster: Cluster, said: Said) -> dict[int, str]:
    """The state of each host, as `cluster status` says."""
    return {host["id"]: host["state"] for host in hosts_shown(cluster, said)}


def delivered(cluster: Cluster, said: Said) -> int:
    """How many messages the first host has delivered."""
    return int(hosts_shown(cluster, said)[0]["messages_delivered"])

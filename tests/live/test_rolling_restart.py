"""A rolling restart, by an application's own account of what it sent and received meanwhile."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli import cluster_restart
from ordercast.cli.cluster_restart import await_caught_up
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from ordercast.net.tools.client import ControlClient
from tests.live.account import application
from tests.live.cluster_files import write_cluster
from tests.live.commands import Said, delivered, ended
from tests.live.control_lab import Lab
from tests.live.processes import until

WINDOW = 4
"""So many messages a sender gives to the protocol without an answer."""
EVERY_S = 0.005
PAUSE_S_MAX = 1.0
SETTINGS: dict[str, dict[str, Any]] = {
    "atomic_multicast": {"hosts": (0, 1, 2)},
    "hydra": {
        "hosts": (0, 1, 2, 6, 7, 8, 9, 10),
        "options": "sequencers = 2\nreplicas = 3\nspares = 0\ndurable = true",
    },
}
"""Three receivers, each with a sender; an application runs the last one. Hydra has more hosts besides."""


def pids(cluster: Cluster) -> dict[int, int | None]:
    found = report(cluster)
    assert found is not None
    return {host.id: host.pid for host in found.hosts if host.state == "running"}


def test_hosts_are_restarted_one_after_the_other_and_down_tells_of_a_backlog(
    tmp_path: Path, said: Said
) -> None:
    """The receiver is host 0, the sender host 1; both stories are about one cluster, which takes its time."""
    options = f"window = {WINDOW}"
    path = write_cluster(tmp_path, protocol="atomic_multicast", receivers=1, options=options, hosts=(0, 1))
    with ended(load_cluster(path)) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config, "--run", "rolled")
        said("send", "orders", "one", *config)
        before = pids(cluster)
        told = json.loads(said("cluster", "restart", "--rolling", *config, "--json"))
        assert [one["host"] for one in told["restarted"]] == [0, 1]
        after = pids(cluster)
        assert all(before[host] != after[host] for host in (0, 1))
        said("send", "orders", "two", *config)
        assert until(lambda: delivered(cluster, said) == 1)

        said("cluster", "kill", "0", *config)
        complaint = said("cluster", "restart", "--rolling", *config, code=2)
        assert "host 0 is dead (killed by SIGKILL): start it first" in complaint
        # Without its receiver the sender gets no answer, and keeps all beyond its window.
        with ControlClient(1, cluster.socket_path(1)) as client:
            for _ in range(WINDOW):
                client.submit(["orders"], [b"taken"])
            client.submit(["orders"], [b"kept back"] * 40)
        began = time.monotonic()
        told = json.loads(said("cluster", "down", *config, "--drain", "1", "--json"))
        assert time.monotonic() - began >= 1
        assert told["left"] == [{"host": 1, "messages": 40}]
        assert told["was_up"] is True and len(told["traces"]) == 1
        assert "40 messages in the backlog were not sent" in cluster.log_path(1).read_text()
        judged = json.loads(said("check", cluster.traces / "rolled", "--json"))
        assert judged["violations"] == []


def test_a_host_that_does_not_catch_up_is_named_with_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_restart, "QUIET_S", 0.0)
    cluster = load_cluster(write_cluster(tmp_path))
    with Lab(cluster.socket_path(0)).running() as lab:
        await_caught_up(cluster, [0], 0.1, "nothing was restarted")
        lab.host.behind = "a leader"
        lacks = re.escape("host 0: node 0 (receiver) waits for a leader")
        with pytest.raises(LocalError, match=f"{lacks}, and did not catch up within 0.1 s; nothing was"):
            await_caught_up(cluster, [0], 0.1, "nothing was restarted")
        assert "waiting: host 0: node 0 (receiver) waits for a leader" in capsys.readouterr().err
    with pytest.raises(LocalError, match="host 0 does not answer"):
        await_caught_up(cluster, [0], 0.1, "nothing was restarted")


@pytest.mark.deep
@pytest.mark.parametrize("protocol", SETTINGS)
def test_an_application_sees_a_short_pause_and_nothing_twice(
    tmp_path: Path, said: Said, protocol: str
) -> None:
    top = "senders = 3\ncolocated = true"
    path = write_cluster(tmp_path, protocol=protocol, receivers=3, top=top, spares=(2,), **SETTINGS[protocol])
    with ended(load_cluster(path)) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        with application(path, 2, EVERY_S) as account:
            assert until(lambda: len(account.received) > 100)
            said("cluster", "restart", "--rolling", *config)
            there = len(account.received)
            assert until(lambda: len(account.received) > there + 100)
        assert account.missing == account.twice == []
        assert account.longest_pause() < PAUSE_S_MAX
        said("cluster", "down", *config)
        judged = json.loads(said("check", cluster.traces, "--json"))
        assert judged["violations"] == []

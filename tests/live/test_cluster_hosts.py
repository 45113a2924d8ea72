"""`cluster add-host` and `remove-host`: a running cluster takes hosts in and does without them."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ordercast
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.trace import LOST, Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.commands import Said, ended, small_hydra, states
from tests.live.host_changes import address, figure, load
from tests.live.processes import PATIENCE_S, until


@contextmanager
def peers(folder: Path) -> Iterator[Cluster]:
    """Three peers of EpTO."""
    path = write_cluster(
        folder,
        protocol="epto",
        receivers=3,
        top="senders = 3\ncolocated = true",
        options="round_ns = 20_000_000\nttl = 15",
    )
    with ended(load_cluster(path)) as cluster:
        yield cluster


def test_peers_under_load_take_a_host_in_and_do_without_another(tmp_path: Path, said: Said) -> None:
    with peers(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        pids = {host["id"]: host["pid"] for host in _shown(cluster, said)}
        with load(cluster, 0) as taken:
            assert until(lambda: figure(cluster, 2) > 0)
            shown = said("cluster", "add-host", address(), *config)
            assert "all running hosts know host 3 (peer-3)" in shown
            assert "started host 3 (peer-3)" in shown
            assert until(lambda: figure(cluster, 3) > 20), "it delivers"
            assert "1 message handed to sender 3" in said("send", "orders", "hello", "--node", 3, *config)
            assert "removed host 1 (peer-1)" in said("cluster", "remove-host", "peer-1", *config)
            before = figure(cluster, 0)
            assert until(lambda: figure(cluster, 0) > before + 20), "the others go on"
        assert states(cluster, said) == {0: "up", 2: "up", 3: "up"}
        assert {row["host"] for row in json.loads(said("top", "--json", *config))["hosts"]} == {0, 2, 3}
        now = {host["id"]: host["pid"] for host in _shown(cluster, said)}
        assert (now[0], now[2]) == (pids[0], pids[2]), "nobody was restarted"

        wrong = said("cluster", "remove-host", "1", *config, code=2)
        assert "host 1 was removed from the cluster, and its id is not used again" in wrong
        wrong = said("cluster", "add-host", str(cluster.host(0).address), *config, code=2)
        assert "host 0 already has the address" in wrong
        said("cluster", "down", *config)

        (stored,) = find_runs(cluster.traces)
        folder = stored.folder
        assert "kept every promise" in said("check", folder)
        events = list(events_of(stored.table()))
        late = [event for event in events if event.node == 3]
        assert [(event.kind, event.label) for event in late[:2]] == [
            (Kind.CRASH, None),
            (Kind.RECOVER, LOST),
        ]
        assert [event.kind for event in events if event.node == 1][-1] is Kind.CRASH
        described = json.loads((folder / "run.json").read_text())
        assert described["complete"], "who was removed is not missed"
        assert described["groups"] == {"0": [0, 1, 2, 3]}
        got = {event.message for event in late if event.kind is Kind.DELIVER}
        assert {taken[-1], taken[-20]} <= got, "it owes what was sent since it came"


def _shown(cluster: Cluster, said: Said) -> list[dict[str, int]]:
    found: list[dict[str, int]] = json.loads(said("cluster", "status", "--config", cluster.file, "--json"))[
        "hosts"
    ]
    return found


def test_a_cluster_that_is_not_up_changes_no_host(tmp_path: Path, said: Said) -> None:
    with peers(tmp_path) as cluster:
        text = cluster.file.read_text()
        for words in (("add-host", address()), ("remove-host", "1")):
            wrong = said("cluster", *words, "--config", cluster.file, code=2)
            assert "the cluster 'test' is not up on this machine, so its hosts cannot be told" in wrong
        assert cluster.file.read_text() == text


@pytest.mark.deep
def test_a_later_run_knows_who_came_and_who_was_removed(tmp_path: Path, said: Said) -> None:
    with peers(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        said("cluster", "add-host", address(), *config)
        said("cluster", "remove-host", "1", *config)
        said("cluster", "down", *config)
        said("cluster", "up", *config, "--run", "second")
        assert states(cluster, said) == {0: "up", 2: "up", 3: "up"}
        said("send", "orders", "again", "--node", 3, *config)
        assert until(lambda: figure(cluster, 0) == 1 and figure(cluster, 2) == 1)
        said("cluster", "down", *config)
        folder = cluster.traces / "second"
        assert "kept every promise" in said("check", folder)
        assert json.loads((folder / "run.json").read_text())["groups"] == {"0": [0, 2, 3]}


@pytest.mark.deep
def test_a_program_joins_as_a_host_that_came_later_until_it_is_removed(tmp_path: Path, said: Said) -> None:
    with peers(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        shown = said("cluster", "add-host", address(), "--program", *config)
        assert 'a program joins with ordercast.join("cluster.toml", group=..., host=3)' in shown
        assert states(cluster, said)[3] == "spare"
        removed = pytest.raises(LocalError, match="host 3 was removed from the cluster")
        with removed, ordercast.join_sync(cluster.file, group="orders", host=3) as group:
            group.send(b"from the program")
            assert isinstance(group.receive(timeout=PATIENCE_S), ordercast.Received)
            assert until(lambda: figure(cluster, 0) == 1)
            assert "removed host 3" in said("cluster", "remove-host", "3", *config)
            group.receive(timeout=PATIENCE_S)
        assert states(cluster, said) == {0: "up", 1: "up", 2: "up"}


@pytest.mark.deep
def test_a_host_whose_address_is_in_use_is_not_written_into_the_file(tmp_path: Path, said: Said) -> None:
    with peers(tmp_path) as cluster, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        text = cluster.file.read_text()
        wrong = said("cluster", "add-host", f"127.0.0.1:{port}", *config, code=2)
        assert f"another process already listens on 127.0.0.1:{port}" in wrong
        assert cluster.file.read_text() == text


@pytest.mark.deep
def test_hydra_takes_in_a_sequencer_that_was_not_in_the_file(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        with load(cluster, 0):
            assert "started host 5 (sequencer-2)" in said("cluster", "add-host", address(), *config)
            assert until(lambda: figure(cluster, 0, "config") == 1)
            assert "removed host 2 (sequencer-0)" in said("cluster", "remove-host", "sequencer-0", *config)
            assert until(lambda: figure(cluster, 0, "config") == 2), "the old one is removed"
            before = figure(cluster, 0)
            assert until(lambda: figure(cluster, 0) > before + 20), "the new one stamps"
        wrong = said("cluster", "remove-host", "sequencer-2", *config, code=2)
        assert "host 5 cannot be removed: no other sequencer is running" in wrong
        said("cluster", "down", *config)
        assert "kept every promise" in said("check", cluster.traces)

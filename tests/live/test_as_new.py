"""A host whose saved state is damaged or lost, under the commands of a cluster: refused, or back as new."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli import run as run_command
from ordercast.cli.cluster_restart import await_caught_up
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from ordercast.trace import LOST, Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.processes import alive, until

Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a command that must end with this code, and gives what it printed."""

    def command(*words: object, code: int = 0) -> str:
        got = run_command([str(word) for word in words])
        printed = capsys.readouterr()
        assert got == code, printed.err
        return " ".join((printed.err if code else printed.out).split())

    return command


SETTINGS: dict[str, dict[str, Any]] = {
    "epto": {"options": "round_ns = 20_000_000\ndurable = true"},
    "hydra": {
        "options": "sequencers = 1\nspares = 0\nreplicas = 1\ndurable = true",
        "hosts": (0, 1, 2, 6, 7),
    },
}
SAVED_AS = {"epto": b"place", "hydra": b"receiver"}
"""Under which name a receiver saves its place."""


@contextmanager
def receivers(folder: Path, protocol: str) -> Iterator[Cluster]:
    """Three receivers, which may forget what they saved."""
    top = "senders = 3\ncolocated = true"
    path = write_cluster(folder, protocol=protocol, receivers=3, top=top, **SETTINGS[protocol])
    cluster = load_cluster(path)
    try:
        yield cluster
    finally:
        if found := report(cluster):
            os.kill(found.pid, signal.SIGKILL)  # the hosts follow
            assert until(lambda: not any(host.pid and alive(host.pid) for host in found.hosts))


def delivered(cluster: Cluster, said: Said) -> list[int | None]:
    found = json.loads(said("cluster", "status", "--config", cluster.file, "--json"))
    return [host.get("messages_delivered") for host in found["hosts"]][:3]


def flip(path: Path, name: bytes) -> None:
    """Flip a bit where the state of a node is."""
    content = bytearray(path.read_bytes())
    content[content.rindex(name) + len(name) + 3] ^= 4
    path.write_bytes(content)


@pytest.mark.deep
@pytest.mark.parametrize("protocol", SETTINGS)
def test_a_host_without_good_state_is_refused_and_comes_back_as_new(
    protocol: str, tmp_path: Path, said: Said
) -> None:
    with receivers(tmp_path, protocol) as cluster:
        config, state = ("--config", cluster.file), cluster.state_path(1)
        said("cluster", "up", *config)
        said("send", "orders", "one", "two", *config)
        assert until(lambda: delivered(cluster, said) == [2, 2, 2])

        said("cluster", "kill", "1", *config)
        flip(state.with_name("1.sqlite-wal"), SAVED_AS[protocol])
        told = said("cluster", "restart", "1", *config, code=2)
        assert f"{state}: the saved state is damaged" in told
        assert "start the host with --as-new" in told

        for path in state.parent.glob("1.*"):
            path.unlink()
        run_command(["cluster", "restart", "1", "--config", str(cluster.file)])
        assert until(lambda: delivered(cluster, said)[1] is None), "the others do not let it in"
        log = cluster.log_path(1).read_text()
        assert "knows this host by another saved state" in log
        assert "exit code 2" in said("cluster", "status", *config)

        said("cluster", "restart", "1", "--as-new", *config)
        assert [path.name for path in state.parent.glob("*.aside-*")] == ["1.aside-1"]
        await_caught_up(cluster, [1], 30, "it came back as new")
        said("send", "orders", "three", *config)
        assert until(lambda: delivered(cluster, said) == [3, 1, 3])
        said("cluster", "down", *config)
        (trace,) = cluster.traces.iterdir()
        assert json.loads(said("check", trace, "--json"))["violations"] == []
        (found,) = find_runs(trace)
        recovered = [event for event in events_of(found.table()) if event.kind is Kind.RECOVER]
        assert recovered
        assert {(found.description.nodes[event.node].host, event.label) for event in recovered} == {(1, LOST)}


def test_a_protocol_that_needs_what_a_node_saved_refuses_to_start_it_as_new(
    tmp_path: Path, said: Said
) -> None:
    path = write_cluster(
        tmp_path, protocol="atomic_multicast", receivers=1, top="colocated = true", hosts=(0,)
    )
    told = "cannot come back as new: atomic_multicast with these options needs what receiver-0"
    assert told in said("node", "--id", "0", "--as-new", "--config", path, code=2)
    assert told in said("cluster", "up", "--as-new", "receiver-0", "--config", path, code=2)
    assert told in said("cluster", "restart", "receiver-0", "--as-new", "--config", path, code=2)
    with (
        pytest.raises(LocalError, match="needs what receiver-0"),
        ordercast.join_sync(path, "orders", host=0, as_new=True),
    ):
        pass


def test_a_replica_of_the_configuration_service_must_remember(tmp_path: Path, said: Said) -> None:
    options = "sequencers = 1\nspares = 1\nreplicas = 1\ndurable = true"
    path = write_cluster(
        tmp_path, protocol="hydra", receivers=1, top="colocated = true", options=options, hosts=(0, 2, 3, 4)
    )
    assert "configuration-0 has saved" in said("node", "--id", "4", "--as-new", "--config", path, code=2)


def test_who_joins_as_new_names_the_host(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="name the host that lost its state"):
        ordercast.join(tmp_path / "cluster.toml", "orders", as_new=True)

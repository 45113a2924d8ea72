"""The commands of a cluster, on real processes: from its first file to its last trace."""

import asyncio
import fcntl
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordercast.catalogue import protocol_names
from ordercast.cli.cluster_ends import unfinished_runs
from ordercast.cli.node import ends_host
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import load_keys
from ordercast.net.cluster.supervisor_client import is_supervised, report
from ordercast.net.tools.client import ControlClient
from tests.live.cluster_files import free_ports, write_cluster
from tests.live.commands import Said, delivered, small_hydra, states
from tests.live.processes import PATIENCE_S, alive, beside, until


def pids(cluster: Cluster) -> list[int]:
    found = report(cluster)
    return [host.pid for host in found.hosts if host.pid is not None] if found else []


def sequencers_known(cluster: Cluster) -> object:
    """The numbers of the sequencers that the sender uses."""
    with ControlClient(0, cluster.socket_path(0)) as client:
        nodes = client.explain().nodes.values()
    return next(node.state["sequencers"] for node in nodes if node.state["role"] == "sender")


def test_a_whole_run(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        assert states(cluster, said) == {0: "down", 2: "down", 3: "down", 4: "down"}
        shown = said("cluster", "up", *config)
        assert "sequencer-1 spare" in shown and "configuration-0 up" in shown
        assert states(cluster, said) == {0: "up", 2: "up", 3: "spare", 4: "up"}
        assert "is already up" in said("cluster", "up", *config, code=2)
        said("send", "orders", "one", "two", *config)
        complaint = said("cluster", "restart", "--rolling", *config, code=2)
        assert "would lose messages: the receivers of host 0 (receiver-0, sender-0) do not save" in complaint
        assert "name one host to restart, or restart all" in said("cluster", "restart", *config, code=2)

        assert said("cluster", "act", "add-sequencer", *config) == "started host 3 (sequencer-1)"
        assert "all spare hosts are running" in said("cluster", "act", "add-sequencer", *config, code=2)
        assert said("cluster", "kill", "sequencer-0", *config) == "killed host 2 (sequencer-0)"
        assert states(cluster, said) == {0: "up", 2: "dead", 3: "up", 4: "up"}
        shown = said("cluster", "status", *config)
        assert "sequencer-0 dead" in shown and shown.endswith("host 2 has ended: killed by SIGKILL")
        assert "host 2 is not running" in said("cluster", "kill", "2", *config, code=2)
        # A message to a sequencer that has just died would be lost: wait until the sender knows of it.
        assert until(lambda: sequencers_known(cluster) == "2")
        assert said("cluster", "restart", "2", *config) == "started host 2 (sequencer-0)"
        said("send", "orders", "three", *config)
        assert until(lambda: delivered(cluster, said) == 3)

        hosts = pids(cluster)
        told = said("cluster", "down", *config)
        assert told.startswith("the cluster 'test' is down trace: ")
        assert not any(alive(pid) for pid in hosts) and not is_supervised(cluster)
        (trace,) = cluster.traces.iterdir()
        judged = json.loads(said("check", trace, "--json"))
        assert (judged["runs"], judged["violations"], judged["incomplete"]) == (1, [], [])
        assert said("cluster", "down", *config) == "the cluster 'test' is not up"


def test_a_cluster_that_goes_on_with_its_saved_state_raises_no_alarm(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        for run in (1, 2):
            said("cluster", "up", *config, "--run", f"run-{run}")

            def heard() -> bool:
                # What is sent before the sequencer has been added again may be lost.
                said("send", "orders", "one", *config)
                return delivered(cluster, said) > 2

            assert until(heard)
            said("cluster", "down", *config)
        first, second = (json.loads((cluster.traces / f"run-{run}/run.json").read_text()) for run in (1, 2))
        assert first["resumed"] == [] and 0 in second["resumed"], "the receiver goes on where it was"
        judged = json.loads(said("check", cluster.traces, "--json"))
        assert (judged["runs"], judged["violations"], judged["incomplete"]) == (2, [], [])


@contextmanager
def flow(cluster: Cluster) -> Iterator[list[int]]:
    """A message each few milliseconds, all the time; gives the list of their identities."""
    sent: list[int] = []

    def send(done: threading.Event) -> None:
        with ControlClient(0, cluster.socket_path(0), PATIENCE_S) as client:
            while not done.wait(0.005):
                sent.append(client.submit(["orders"], [b"message"]))

    with beside(send):
        yield sent


def test_a_key_is_rotated_while_messages_flow(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        old = load_keys(cluster.security.key_file).active.id
        with flow(cluster) as sent:
            assert until(lambda: len(sent) > 20)
            before = len(sent)
            told = said("cluster", "rotate-key", *config)
            after = len(sent)
            assert after > before, "messages flowed meanwhile"
            assert until(lambda: len(sent) > after + 30), "and flow on"
        new = load_keys(cluster.security.key_file).active.id
        assert told.endswith(f"the key is now {new:08x}") and new != old
        assert until(lambda: delivered(cluster, said) == len(sent)), said("cluster", "status", *config)
        found = json.loads(said("cluster", "status", *config, "--json"))["hosts"]
        assert [host["keys"] for host in found if host["state"] == "up"] == [[f"{new:08x}"]] * 3
        assert found[0]["drops_notified"] == 0
        said("cluster", "down", *config)


def test_no_real_host_outlives_its_supervisor(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        said("cluster", "up", "--config", cluster.file)
        hosts, found = pids(cluster), report(cluster)
        assert found is not None and len(hosts) == 3
        os.kill(found.pid, signal.SIGKILL)
        assert until(lambda: not any(alive(pid) for pid in hosts))
        assert "not up on this machine" in said("cluster", "kill", "0", "--config", cluster.file, code=2)
        # What they wrote down is still a trace.
        assert "trace: " in said("cluster", "down", "--config", cluster.file)


def test_no_real_host_outlives_its_folder(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        said("cluster", "up", "--config", cluster.file)
        hosts = pids(cluster)
        shutil.rmtree(cluster.folder)
        assert len(hosts) == 3 and until(lambda: not any(alive(pid) for pid in hosts))


def test_a_port_that_is_taken_is_named_and_nothing_is_left(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thief:
        thief.bind(cluster.host(2).address)
        complaint = said("cluster", "up", "--config", cluster.file, code=2)
        assert "host 2 failed to start (exit code 2)" in complaint
        assert str(cluster.host(2).address) in complaint and "in use" in complaint
        assert not is_supervised(cluster)


def test_a_missing_key_is_told_before_anything_starts(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        cluster.security.key_file.unlink()
        complaint = said("cluster", "up", "--config", cluster.file, code=2)
        assert "cluster.key: cannot be read: No such file" in complaint
        assert not cluster.folder.exists()


def test_a_node_without_a_supervisor_ends_in_good_order(tmp_path: Path) -> None:
    with small_hydra(tmp_path) as cluster:
        words = ["node", "--config", str(cluster.file), "--id", "4"]
        with subprocess.Popen(
            [sys.executable, "-m", "ordercast.cli", *words], stderr=subprocess.PIPE, text=True
        ) as node:
            assert until(lambda: cluster.socket_path(4).exists() or node.poll() is not None)
            node.send_signal(signal.SIGTERM)
            _, log = node.communicate(timeout=PATIENCE_S)
        assert node.returncode == 0, log
        assert "runs configuration-0 at" in log and log.rstrip().endswith("stopped")
        assert not cluster.socket_path(4).exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--id", "9"], "there is no host 9; the hosts are: 0, 2, 3, 4"),
        (["--id", "0", "--leash", "99"], "--leash 99 is not an open file descriptor"),
    ],
)
def test_a_node_that_cannot_be_is_refused(
    tmp_path: Path, said: Said, words: list[str], complaint: str
) -> None:
    with small_hydra(tmp_path) as cluster:
        assert complaint in said("node", "--config", cluster.file, *words, code=2)


@pytest.mark.parametrize("protocol", protocol_names())
def test_init_writes_what_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, protocol: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (port,) = free_ports(1)
    words = ("cluster", "init", "--protocol", protocol, "--groups", 2, "--port", min(port, 60_000))
    assert said(*words).endswith("next: ordercast cluster up")
    cluster = load_cluster(Path("cluster.toml"))
    assert (cluster.protocol, len(cluster.groups)) == (protocol, 2)
    before = Path("cluster.key").read_bytes()
    assert "--force overwrites it" in said(*words, code=2)
    assert Path("cluster.key").read_bytes() == before
    said(*words, "--force", "--plaintext")
    assert load_cluster(Path("cluster.toml")).security.mode == "plaintext"


def test_a_new_cluster_finds_no_state_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    old = Path(".ordercast/demo/state/0.sqlite")
    old.parent.mkdir(parents=True)
    old.touch()
    assert "state exists already; --force overwrites it" in said("cluster", "init", code=2)
    assert old.exists() and not Path("cluster.toml").exists()
    with held(Path(".ordercast/demo/run/supervisor.lock")):
        assert "is up; stop it first: ordercast cluster down" in said("cluster", "init", "--force", code=2)
    said("cluster", "init", "--force")
    assert not old.exists() and Path("cluster.toml").exists()


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """A lock that somebody holds, as a supervisor would."""
    lock.parent.mkdir(parents=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_init_says_which_options_a_protocol_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    complaint = said("cluster", "init", "--protocol", "unordered", "--option", "sequencers=2", code=2)
    assert "options.sequencers: unknown key; there are: window" in complaint
    assert "name" in said("cluster", "init", "--name", "../up", code=2)
    assert not list(tmp_path.iterdir())


def test_hosts_of_other_machines_are_shown_as_elsewhere(tmp_path: Path, said: Said) -> None:
    with small_hydra(tmp_path) as cluster:
        text = cluster.file.read_text().replace("127.0.0.1", "192.0.2.7", 1)  # an address of nobody
        cluster.file.write_text(text)
        assert states(cluster, said) == {0: "elsewhere", 2: "down", 3: "down", 4: "down"}
        assert "no supervisor here" in said("cluster", "status", "--config", cluster.file)


def test_receivers_are_left_to_applications_and_do_not_forget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    said("cluster", "init", "--groups", 2, "--receivers", 2, "--applications", 1, "--option", "spares=0")
    cluster = load_cluster(Path("cluster.toml"))
    assert [spec.id for spec in cluster.hosts if not spec.start] == [1, 3]
    assert cluster.options["durable"] is True
    said("cluster", "init", "--protocol", "unordered", "--applications", 1, "--force")
    assert load_cluster(Path("cluster.toml")).options == {}


def test_errors_in_the_work_of_a_host_end_it_and_those_of_its_visitors_do_not() -> None:
    told: list[bool] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        raise ValueError("in an answer")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(ends_host(context)))
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await reader.read()
        writer.close()
        server.close()
        while not told:
            gc.collect()  # a task is told of when it is collected
            await asyncio.sleep(0.01)
        loop.call_soon(int, "in a turn")
        await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), PATIENCE_S))
    assert told == [False, True]


def test_a_report_beside_the_traces_is_no_run(tmp_path: Path) -> None:
    cluster = load_cluster(write_cluster(tmp_path))
    for run, found in (
        ("ended", "run.json"),
        ("under-way", "spool/host-0000.lock"),
        ("report", "report.json"),
    ):
        path = cluster.traces / run / found
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert unfinished_runs(cluster) == ["under-way"]

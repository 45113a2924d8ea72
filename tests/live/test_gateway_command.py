"""The gateway as a command beside a cluster of processes, of which the primary is killed under calls."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordercast.net.cluster.file import load_cluster
from tests.deep import deep_after
from tests.live.cluster_files import free_port_range
from tests.live.commands import Said, ended
from tests.live.gateway_client import Outsider, Told
from tests.live.processes import PATIENCE_S

CLIENTS, AFTERWARDS = 8, 20
"""So many clients call, each so many times after the primary was killed."""


@contextmanager
def gateway(*words: object) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    """A gateway as a process, and what it printed when it was ready."""
    command = [sys.executable, "-m", "ordercast.cli", "gateway", "--json", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads("".join(iter(process.stdout.readline, "}\n")) + "}"), process
    finally:
        process.kill()
        process.communicate()


def persist(outsider: Outsider, path: str, *args: object, key: str, until_s: float) -> Told:
    """Repeat a request with its key until its outcome is known, as a client that must know it does."""
    while True:
        try:
            told = outsider.call(path, *args, key=key)
        except (http.client.HTTPException, OSError):
            told = None
        if told is not None and told.status not in (503, 504):
            return told
        assert told is None or told.content["outcome"] != "unknown", told
        assert time.monotonic() < until_s, told
        time.sleep(0.05)


def test_a_gateway_serves_until_it_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    port = free_port_range(12)
    said("cluster", "init", "--service", "counter", "--protocol", "unreplicated", "--port", port)
    with ended(load_cluster(Path("cluster.toml"))):
        said("cluster", "up")
        address = f"127.0.0.1:{port + 11}"
        with gateway("--address", address) as (ready, process):
            tokens = Path(ready["tokens"])
            assert ready["url"] == f"http://{address}/v1" and ready["service"] == "counter"
            assert tokens == tmp_path / "gateway.token" and tokens.stat().st_mode & 0o777 == 0o600
            outsider = Outsider(ready["url"], tokens)
            assert outsider.call("all/add", 5).result == 5
            outsider.close()
            taken = said("gateway", "--address", address, code=2)
            assert f"cannot listen on {address}: Address already in use" in taken
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        said("cluster", "down")
        assert "kept every promise" in said("check", ".ordercast/demo/traces")
        Path("cluster.toml").write_text(Path("cluster.toml").read_text().replace("counter", "nothing"))
        assert "no service 'nothing'" in said("gateway", code=2)


@pytest.mark.parametrize(
    "protocol", deep_after(2, ["hydra_paxos", "llft", "multi_paxos", "nopaxos", "active"])
)
def test_calls_are_executed_once_while_the_primary_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, protocol: str
) -> None:
    """Clients outside add one, again and again, and repeat each request until they know its outcome. The
    answers must be the numbers from one on, each once."""
    monkeypatch.chdir(tmp_path)
    port = free_port_range(20)
    words = ("--service", "counter", "--protocol", protocol, "--replicas", 3, "--clients", 1, "--port", port)
    said("cluster", "init", *words)
    with ended(load_cluster(Path("cluster.toml"))):
        said("cluster", "up")
        with gateway("--address", f"127.0.0.1:{port + 19}", "--wait", 2) as (ready, process):
            killed, end_s = threading.Event(), time.monotonic() + PATIENCE_S

            def client(name: int) -> list[int]:
                outsider, left = Outsider(ready["url"], Path(ready["tokens"])), AFTERWARDS
                found: list[int] = []
                while left:
                    left -= killed.is_set()
                    key = f"{name}-{len(found)}"
                    told = persist(outsider, "all/add", 1, key=key, until_s=end_s)
                    assert told.result == outsider.call("all/add", 1, key=key).result
                    found.append(told.result)
                outsider.close()
                return found

            with ThreadPoolExecutor(CLIENTS) as pool:
                answers = [pool.submit(client, name) for name in range(CLIENTS)]
                said("cluster", "kill", "0")
                killed.set()
                found = [number for answer in answers for number in answer.result(PATIENCE_S)]
            assert sorted(found) == list(range(1, len(found) + 1))
            last = Outsider(ready["url"], Path(ready["tokens"]))
            assert last.call("all/get").result == len(found)
            last.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        said("cluster", "down")
        assert "kept every promise" in said("check", ".ordercast/demo/traces")

"""A private Spark cluster on this machine: a master and workers, from the Spark that pip installed.

It is for tests and experiments: as on a real cluster, executors are separate processes. It listens on
loopback only. Each daemon watches a pipe from this process, so that no daemon outlives this process.
"""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from ordercast.core.errors import LocalError
from ordercast.java import find_java, quiet_home

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0

_KEEPER = """\
exec 3<&0
"$@" </dev/null 3<&- & daemon=$!
( while read -r _; do :; done; kill $daemon ) <&3 & watcher=$!
wait $daemon
kill $watcher
"""
"""Runs a daemon until it ends, or until standard input closes because its writer has exited."""


@contextmanager
def local_cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[str]:
    """Run a master and workers, each with the given cores and memory for executors.

    Yields the master's URL when all workers have registered. All daemons stop when the context ends.
    """
    with tempfile.TemporaryDirectory(prefix="ordercast-cluster-", ignore_cleanup_errors=True) as scratch:
        daemons: list[subprocess.Popen[bytes]] = []
        port, web_port = _free_ports(2)
        url = f"spark://{LOOPBACK}:{port}"
        log = Path(scratch) / "log"
        try:
            places = ["--port", str(port), "--webui-port", str(web_port)]
            daemons.append(_start("master.Master", places, log))
            _await(daemons, log, lambda: _workers(web_port) is not None)
            for index in range(workers):
                own = ["--webui-port", "0", "--work-dir", f"{scratch}/worker-{index}"]
                size = ["--cores", str(cores), "--memory", memory]
                daemons.append(_start("worker.Worker", [*own, *size, url], log))
            _await(daemons, log, lambda: _workers(web_port) == workers)
            yield url
        finally:
            _stop(daemons)


def _start(role: str, arguments: list[str], log: Path) -> "subprocess.Popen[bytes]":
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", "--host", LOOPBACK]
    options = "-Dspark.master.rest.enabled=false -XX:TieredStopAtLevel=1"
    environment = os.environ | {
        "JAVA_HOME": str(quiet_home(find_java())),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": options,
    }
    with log.open("ab") as out:
        # In its own process group, so that its child processes can be stopped with it.
        return subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", *program, *arguments],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )


def _await(daemons: list["subprocess.Popen[bytes]"], log: Path, ready: Callable[[], bool]) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if any(daemon.poll() is not None for daemon in daemons) or time.monotonic() > end:
            said = log.read_text(errors="replace").strip().splitlines() or ["its log is empty"]
            raise LocalError(f"the Spark cluster does not start: {said[-1]}")
        time.sleep(0.1)


def _workers(web_port: int) -> int | None:
    """The number of workers that are alive; None while the master does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{web_port}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, ValueError, KeyError):
        return None


def _stop(daemons: list["subprocess.Popen[bytes]"]) -> None:
    """Stop the daemons with their child processes, the last one first; kill those that do not stop."""
    for daemon in reversed(daemons):
        _signal(daemon, signal.SIGTERM)
    end = time.monotonic() + STOP_TIMEOUT_S
    for daemon in daemons:
        with suppress(subprocess.TimeoutExpired):
            daemon.wait(max(0.0, end - time.monotonic()))
        # The shell may have exited before its child.
        _signal(daemon, signal.SIGKILL)
        daemon.wait()
        if daemon.stdin:
            daemon.stdin.close()


def _signal(daemon: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(daemon.pid, number)


def _free_ports(count: int) -> list[int]:
    """Ports that are free at the moment."""
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports

"""Gives orders to the supervisor of a cluster, and starts one."""

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.host_mark import Mark, find_marked
from ordercast.net.cluster.socket_file import find_socket, make_private
from ordercast.net.cluster.supervisor import (
    Answer,
    Order,
    Report,
    lock_path,
    socket_path,
    supervisor_command,
)

TIMEOUT_S = 30.0
START_S = 120.0
"""Far longer than a supervisor takes to start: one that ends is noticed at once."""
POLL_S = 0.05
LOG_LINES_TOLD = 8


def is_supervised(cluster: Cluster) -> bool:
    """Whether a supervisor lives."""
    return is_folder_supervised(cluster.folder)


def is_folder_supervised(folder: Path) -> bool:
    """Whether a supervisor of this folder lives; its lock ends with it in any case."""
    try:
        handle = os.open(lock_path(folder), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def detached_hosts(folder: Path) -> dict[HostId, Mark]:
    """The hosts of the cluster in this folder that live and need no supervisor."""
    found = {int(path.stem): find_marked(path) for path in folder.glob("run/*.pid") if path.stem.isdecimal()}
    return {host: one.mark for host, one in sorted(found.items()) if one is not None and one.running}


def attend(cluster: Cluster) -> bool:
    """Whether a supervisor lives. If hosts have outlived theirs, this starts another, which adopts them."""
    if is_supervised(cluster):
        return True
    marks = detached_hosts(cluster.folder)
    if not marks:
        return False
    run = next(iter(marks.values())).run
    pid = spawn(cluster, supervisor_command(cluster, run, detached=True, adopt=True))
    try:
        await_supervisor(cluster, pid)
    except LocalError:
        if not is_supervised(cluster):  # another command may have been faster
            raise
    return True


def order(cluster: Cluster, wanted: Order, timeout_s: float = TIMEOUT_S) -> Report:
    """Have an order carried out; `LocalError` says why it was refused."""
    if not attend(cluster):
        raise LocalError(
            f"the cluster '{cluster.name}' is not up on this machine: run `ordercast cluster up`"
        )
    return _ask(cluster, wanted, timeout_s)


def _ask(cluster: Cluster, wanted: Order, timeout_s: float = TIMEOUT_S) -> Report:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.settimeout(timeout_s)
        try:
            wire.connect(str(find_socket(socket_path(cluster))))
            wire.sendall(msgspec.json.encode(wanted) + b"\n")
            with wire.makefile("rb") as lines:
                answer = msgspec.json.decode(lines.readline(), type=Answer)
        except (OSError, msgspec.MsgspecError) as error:
            raise LocalError(f"the supervisor of '{cluster.name}' does not answer: {error}") from error
    if answer.error or answer.report is None:
        raise LocalError(answer.error or "the supervisor answered without a report")
    return answer.report


def report(cluster: Cluster) -> Report | None:
    """The state of the supervisor and its hosts; None if there is no supervisor."""
    return _ask(cluster, Order("status")) if is_supervised(cluster) else None


def current_run(cluster: Cluster) -> str:
    """The name of the current run in traces: the supervisor's, or its hosts', or else the cluster's own."""
    found = report(cluster)
    if found is not None:
        return found.run
    return next((mark.run for mark in detached_hosts(cluster.folder).values()), cluster.name)


def spawn(cluster: Cluster, command: list[str]) -> int:
    """Start a supervisor in the background, in its own session, so that no terminal ends it; its pid."""
    make_private(cluster.folder / "run")
    make_private(cluster.folder / "logs")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(supervisor_log(cluster)), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def supervisor_log(cluster: Cluster) -> Path:
    """The log file of the supervisor."""
    return cluster.folder / "logs" / "supervisor.log"


def await_supervisor(cluster: Cluster, pid: int, timeout_s: float = START_S) -> Report:
    """Wait until a spawned supervisor answers; `LocalError` with its last log lines if it ends instead."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            raise LocalError(f"the supervisor ended while it started: {last_lines(supervisor_log(cluster))}")
        with suppress(LocalError):  # it may not hold the lock, or not listen yet
            return _ask(cluster, Order("status"))
        time.sleep(POLL_S)
    raise LocalError(f"the supervisor did not start in time: {last_lines(supervisor_log(cluster))}")


def await_end(cluster: Cluster, timeout_s: float) -> bool:
    """Wait until no supervisor lives; returns whether that is so."""
    end = time.monotonic() + timeout_s
    while is_supervised(cluster):
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def last_lines(log: Path, count: int = LOG_LINES_TOLD) -> str:
    """The end of a log, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return " | ".join(line.strip() for line in lines[-count:] if line.strip()) or "its log is empty"


def dead(found: Report) -> list[HostId]:
    """The hosts whose process has ended."""
    return [host.id for host in found.hosts if host.state == "dead"]

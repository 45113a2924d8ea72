"""Runs the hosts of a cluster on one machine, each an operating system process, and leaves none behind.

Hosts are children of the supervisor and hold a *leash*: the reading end of a pipe. Only the supervisor has
the writing end. When the supervisor dies in any way, the leash ends, and its hosts exit. The supervisor ends
with all hosts when it is told to, or when its folder vanishes. It does not restart a host that dies: the user
or an init system decides about that.

Hosts of a *detached* cluster have no leash and outlive the supervisor. Each leaves a mark, by which a later
supervisor finds it and adopts it (`host_mark.py`). They end only when the cluster is ordered down, or when
its folder vanishes under a living supervisor.

It takes orders as JSON lines over a Unix socket in the cluster's folder; `supervisor_client` gives them.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ordercast.core import HostId, LocalError, exception_text
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.host_mark import MarkedProcess, find_marked, mark_path
from ordercast.net.cluster.socket_file import close_socket, folder_identity, make_private, open_socket
from ordercast.net.cluster.watched_file import WatchedCluster

POLL_S = 0.05
"""How often the supervisor checks its children."""
STOP_TIMEOUT_S = 10.0
LOCK_PATIENCE_S = 1.0
LINE_BYTES_MAX = 65_536
LOG_BYTES_MAX = 16 << 20
"""A larger log is renamed when its host starts, and replaces the one before."""

Command: TypeAlias = Callable[[HostId, int | None], list[str]]
"""The command that runs a host, with the number of its leash; None if the host is detached."""


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the supervisor is asked to do."""

    do: Literal["status", "start", "kill", "stop", "restart", "down"]
    host: HostId = -1
    timeout_s: float = STOP_TIMEOUT_S
    clean: bool = False
    """For `restart`: let the host stop in good order, and refuse if it takes longer than `timeout_s`."""
    as_new: bool = False
    """Start the host as a new member, with its saved state set aside."""


class HostState(msgspec.Struct, frozen=True):
    """The state of a host's process."""

    id: HostId
    state: Literal["running", "dead", "spare"]
    pid: int | None = None
    uptime_s: float | None = None
    ended: str = ""
    """How its last process ended."""


class Report(msgspec.Struct, frozen=True):
    """The state of the supervisor and its hosts."""

    pid: int
    run: str
    hosts: list[HostState]


class Answer(msgspec.Struct, frozen=True):
    """The answer to an order."""

    error: str = ""
    report: Report | None = None


class _Child:
    """A host that this supervisor started."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.pid = process.pid
        self.began = time.time()

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    @property
    def ended(self) -> str:
        """How it ended."""
        return _ended(self._process.poll())

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)


HostProcess: TypeAlias = _Child | MarkedProcess


def node_command(cluster: Cluster, run: str) -> Command:
    """The command `ordercast node` for the hosts of a cluster."""

    def command(host: HostId, leash: int | None) -> list[str]:
        options = {"--config": cluster.file, "--id": host, "--run": run}
        words = [str(word) for pair in options.items() for word in pair]
        words += ["--detached"] if leash is None else ["--leash", str(leash)]
        return [sys.executable, "-m", "ordercast.cli", "node", *words]

    return command


def supervisor_command(
    cluster: Cluster,
    run: str,
    *,
    detached: bool = False,
    adopt: bool = False,
    as_new: Collection[HostId] = (),
) -> list[str]:
    """The command `ordercast cluster supervise` for a cluster."""
    words = ["--config", str(cluster.file), "--run", run]
    words += ["--detached"] if detached else []
    words += ["--adopt"] if adopt else []
    words += [word for host in as_new for word in ("--as-new", str(host))]
    return [sys.executable, "-m", "ordercast.cli", "cluster", "supervise", *words]


def socket_path(cluster: Cluster) -> Path:
    """Where the supervisor of a cluster takes orders."""
    return cluster.folder / "run" / "supervisor.sock"


def lock_path(folder: Path) -> Path:
    """The file that the supervisor of the cluster in this folder keeps locked while it lives."""
    return folder / "run" / "supervisor.lock"


class Supervisor:
    """Starts, kills and ends the hosts of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        run: str,
        command: Command | None = None,
        *,
        detached: bool = False,
        as_new: Collection[HostId] = (),
    ) -> None:
        """Hosts of `as_new` are started as new members."""
        self._file = WatchedCluster(cluster)
        self._as_new = as_new
        self._run = run
        self._command = command or node_command(cluster, run)
        self._detached = detached
        self._children: dict[HostId, HostProcess] = {}
        self._ending: asyncio.Event | None = None
        self._ordered_down = False
        self._orders = asyncio.Lock()
        """Orders that start or end hosts run one after the other; two at once could start a host twice."""
        self._timeout_s = STOP_TIMEOUT_S
        self._leash = self._tether = -1

    async def serve(self, *, adopt: bool = False) -> None:
        """Run all hosts that the cluster starts, and take orders, until told to stop.

        With `adopt`, start none, and take over the hosts that a supervisor before this one left.
        """
        for name in ("run", "logs", "state", "traces"):
            make_private(self._cluster.folder / name)
        lock = _lock(self._cluster)
        folder = folder_identity(self._cluster.folder)
        listening, place = open_socket(socket_path(self._cluster))
        inode = place.lstat().st_ino
        server = await asyncio.start_unix_server(self._accept, sock=listening, limit=LINE_BYTES_MAX)
        self._leash, self._tether = os.pipe()
        self._ending = asyncio.Event()
        _on_signals(self._ending.set)
        try:
            if adopt:
                self._adopt()
            else:
                self._start_all()
            while not self._ending.is_set() and folder_identity(self._cluster.folder) == folder:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), POLL_S)
                self._reap()
        finally:
            if self._ordered_down or not self._detached or folder_identity(self._cluster.folder) != folder:
                await self._stop_all()
            server.close()
            close_socket(socket_path(self._cluster), place, inode)
            os.close(self._leash)
            os.close(self._tether)
            os.close(lock)

    @property
    def _cluster(self) -> Cluster:
        """The cluster as its file said when the last order came."""
        return self._file.cluster

    # Orders.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One order, one answer."""
        with suppress(ConnectionError, ValueError):
            line = await reader.readline()
            writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            order = msgspec.json.decode(line, type=Order)
            with suppress(LocalError):  # somebody is editing the file: go on with what it said before
                self._file.refresh()
            if order.do in ("status", "down"):
                self._obey_at_once(order)
            else:
                async with self._orders:
                    await self._obey(order)
        except (msgspec.MsgspecError, LocalError, OSError) as error:
            return Answer(error=str(error))
        except RecursionError:
            return Answer(error="not an order: it is nested too deeply")
        except Exception as error:  # an order must never end the hosts
            return Answer(error=f"a defect of ordercast: {exception_text(error)}")
        return Answer(report=self.report())

    async def _obey(self, order: Order) -> None:
        match order.do:
            case "start":
                if self._runs(order.host):
                    raise LocalError(f"host {order.host} is already running")
                self._start(order.host, as_new=order.as_new)
            case "kill":
                if not self._runs(order.host):
                    raise LocalError(f"host {order.host} is not running")
                await self._kill(order.host)
            case "stop":
                await self._end(order.host, order.timeout_s)
            case "restart":
                if order.clean:
                    await self._end(order.host, order.timeout_s)
                else:
                    await self._kill(order.host)
                self._start(order.host, as_new=order.as_new)

    def _obey_at_once(self, order: Order) -> None:
        if order.do == "down":
            self._timeout_s = order.timeout_s
            self._ordered_down = True
            if self._ending is not None:
                self._ending.set()

    def report(self) -> Report:
        """The state of all hosts."""
        return Report(os.getpid(), self._run, [self._state(spec.id) for spec in self._cluster.hosts])

    def _state(self, host: HostId) -> HostState:
        child = self._children.get(host)
        if child is None:
            return HostState(host, "spare")
        if child.running:
            return HostState(host, "running", child.pid, time.time() - child.began)
        return HostState(host, "dead", ended=child.ended)

    # Processes.

    def _runs(self, host: HostId) -> bool:
        return host in self._children and self._children[host].running

    def _start_all(self) -> None:
        for spec in self._cluster.hosts:
            mark_path(self._cluster.folder, spec.id).unlink(missing_ok=True)  # of an earlier run
            if spec.start:
                self._start(spec.id, as_new=spec.id in self._as_new)

    def _adopt(self) -> None:
        for spec in self._cluster.hosts:
            found = find_marked(mark_path(self._cluster.folder, spec.id))
            if found is not None:
                self._children[spec.id] = found

    def _start(self, host: HostId, *, as_new: bool) -> None:
        self._cluster.host(host)  # there must be one
        if self._ending is not None and self._ending.is_set():
            raise LocalError(f"the cluster '{self._cluster.name}' is going down")
        path = self._cluster.log_path(host)
        _put_aside(path)
        command = self._command(host, None if self._detached else self._leash)
        with path.open("ab") as log:
            process = subprocess.Popen(
                [*command, *(("--as-new",) if as_new else ())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=() if self._detached else (self._leash,),
                # Ctrl-C and the end of a terminal are for the supervisor, which decides about its hosts.
                start_new_session=True,
            )
        self._children[host] = _Child(process)

    async def _kill(self, host: HostId) -> None:
        child = self._children.get(host)
        if child is not None and child.running:
            child.signal(signal.SIGKILL)
            await _gone([child], STOP_TIMEOUT_S)

    async def _end(self, host: HostId, timeout_s: float) -> None:
        child = self._children.get(host)
        if child is not None and child.running:
            child.signal(signal.SIGTERM)
            if await _gone([child], timeout_s):
                raise LocalError(f"host {host} was told to stop and has not within {timeout_s:g} s")

    def _reap(self) -> None:
        """Look at all processes, so that the system forgets those that have ended."""
        _ = [child.running for child in self._children.values()]

    async def _stop_all(self) -> None:
        """Ask all hosts to end, and kill those that have not ended after a while."""
        left = [child for child in self._children.values() if child.running]
        for child in left:
            child.signal(signal.SIGTERM)
        for child in await _gone(left, self._timeout_s):
            child.signal(signal.SIGKILL)
        await _gone(left, STOP_TIMEOUT_S)
        for host in self._children:
            mark_path(self._cluster.folder, host).unlink(missing_ok=True)


async def _gone(children: list[HostProcess], timeout_s: float) -> list[HostProcess]:
    """Wait for processes to end; returns those that have not."""
    end = time.monotonic() + timeout_s
    while (left := [child for child in children if child.running]) and time.monotonic() < end:
        await asyncio.sleep(POLL_S / 5)
    return left


def _lock(cluster: Cluster) -> int:
    """Take the lock for as long as this process lives."""
    handle = os.open(lock_path(cluster.folder), os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            # Somebody who only looks whether there is a supervisor holds it for a moment, too.
            if time.monotonic() > end:
                os.close(handle)
                raise LocalError(f"the cluster '{cluster.name}' is already up") from None
        time.sleep(POLL_S / 5)


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with suppress(ValueError, RuntimeError):  # only the main thread may
            loop.add_signal_handler(number, stop)


def _put_aside(log: Path) -> None:
    with suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES_MAX:
            log.replace(log.with_suffix(".old.log"))


def _ended(code: int | None) -> str:
    if code is None:
        return ""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

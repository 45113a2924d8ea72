"""The host processes of a live scenario: starts, kills and pauses them, and exchanges messages with them.

They are forked from a server that has imported all libraries once, so that a host starts and restarts fast;
importing the libraries again would take as long as a fail-over that is to be measured.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from ordercast.core import HostId, LocalError, NodeId
from ordercast.lab.trial.child import run_child
from ordercast.lab.trial.messages import Life, Order, Report, Stop
from ordercast.lab.trial.setting import Setting

STOP_S = 120.0
"""Seconds that hosts have to end in good order: far more than they need, also on a busy machine."""

_encode = msgspec.json.encode
_decoder: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


class _Host:
    """One life of a host."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.report: Report | None = None


class Hosts:
    """All host processes."""

    def __init__(self, setting: Setting, on_fall: Callable[[HostId], None]) -> None:
        """`on_fall` is called when a host has ended that may end by itself."""
        self._setting = setting
        self._on_fall = on_fall
        self._may_fall: set[HostId] = set()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([run_child.__module__])
        self._up: dict[HostId, _Host] = {}
        self._stopped: set[HostId] = set()
        self._past: list[tuple[HostId, Report]] = []
        """The last reports of lives that are over."""

    @property
    def up(self) -> list[HostId]:
        """The hosts that have not been killed."""
        return sorted(self._up)

    def start(self, host: HostId, life: Life) -> None:
        """Begin a life of a host."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=run_child,
            args=(_encode(self._setting), _encode(life), host, theirs),
            name=f"ordercast host {host}",
            daemon=True,
        )
        process.start()
        theirs.close()
        self._up[host] = _Host(process, ours)

    def let_fall(self, host: HostId) -> None:
        """Do not wonder if this host ends by itself: its disk is bad."""
        self._may_fall.add(host)

    def kill(self, host: HostId) -> None:
        """End a host at once."""
        found = self._up.pop(host)
        found.process.kill()
        found.process.join()
        self._hear(host, found)
        if found.report is not None:
            self._past.append((host, found.report))
        found.connection.close()
        self._stopped.discard(host)

    def pause(self, host: HostId) -> None:
        """Pause a host."""
        self._signal(host, signal.SIGSTOP)
        self._stopped.add(host)

    def resume(self, host: HostId) -> None:
        """Resume a paused host."""
        if host in self._stopped:
            self._stopped.discard(host)
            self._signal(host, signal.SIGCONT)

    def _signal(self, host: HostId, number: signal.Signals) -> None:
        pid = self._up[host].process.pid
        if pid is not None and self._up[host].process.is_alive():
            os.kill(pid, number)

    def order(self, host: HostId, order: Order) -> None:
        """Send a command to a host."""
        try:
            self._up[host].connection.send_bytes(_encode(order))
        except OSError:
            self._hear(host, self._up[host])
            if host not in self._may_fall:
                raise self._dead(host) from None

    def hear(self, timeout_s: float) -> None:
        """Read the reports of hosts, for at most this time; `LocalError` if one has died unexpectedly."""
        connections = {found.connection: host for host, found in self._up.items()}
        for ready in wait(list(connections), timeout_s):
            host = connections[ready]  # type: ignore[index]  # it is one of those
            self._hear(host, self._up[host])
        for host, found in list(self._up.items()):
            if not found.process.is_alive() or (found.report is not None and found.report.error):
                if host not in self._may_fall:
                    raise self._dead(host)
                self.kill(host)  # it may not be quite gone
                self._on_fall(host)

    def await_ready(self, hosts: list[HostId], timeout_s: float) -> None:
        """Wait until hosts have reported for the first time."""
        end = time.monotonic() + timeout_s
        while any(host in self._up and self._up[host].report is None for host in hosts):
            self.hear(0.05)
            if time.monotonic() > end:
                raise LocalError(f"hosts {', '.join(map(str, hosts))} did not start within {timeout_s:g} s")

    def reports(self) -> list[Report]:
        """The newest report of each life, including lives that are over."""
        return [report for _, report in self._lives()]

    def _lives(self) -> list[tuple[HostId, Report]]:
        """The newest report of each life, with its host."""
        up = [(host, found.report) for host, found in self._up.items() if found.report is not None]
        return self._past + up

    def newest(self, host: HostId) -> Report | None:
        """The last report of a host in its current life."""
        return self._up[host].report if host in self._up else None

    def submitted(self, host: HostId) -> dict[NodeId, int]:
        """How many messages the senders of a host had submitted by its last report."""
        found: dict[NodeId, int] = {}
        for of, report in self._lives():
            for node, count in report.submitted.items() if of == host else ():
                found[node] = max(count, found.get(node, 0))
        return found

    def stop(self) -> list[HostId]:
        """Ask all hosts to end, and kill those that do not; returns these."""
        for host in list(self._stopped):
            self.resume(host)
        for found in self._up.values():
            try:
                found.connection.send_bytes(_encode(Stop()))
            except OSError:
                continue  # it ends, or has ended
        end = time.monotonic() + STOP_S
        stuck = []
        for host, found in self._up.items():
            while found.process.is_alive() and time.monotonic() < end:
                self._hear(host, found)  # so that it does not wait for us to listen
                found.process.join(0.01)
            self._hear(host, found)
            if found.process.is_alive():
                found.process.kill()
                found.process.join()
                stuck.append(host)
            elif host not in self._may_fall and (
                found.process.exitcode or (found.report is not None and found.report.error)
            ):
                raise self._dead(host)  # its trace would tell of a crash that nobody ordered
        return stuck

    def close(self) -> None:
        """End all processes that are left, in any case."""
        for found in self._up.values():
            if found.process.is_alive():
                found.process.kill()
            found.process.join()
            found.connection.close()

    def _hear(self, host: HostId, found: _Host) -> None:
        try:
            while found.connection.poll():
                report = _decoder.decode(found.connection.recv_bytes())
                if report.error and found.report is not None:  # it has no figures
                    report = msgspec.structs.replace(found.report, error=report.error)
                found.report = report
        except (EOFError, OSError):
            return  # it has hung up; whether it may is seen elsewhere

    def _dead(self, host: HostId) -> LocalError:
        found = self._up[host]
        if found.report is not None and found.report.error:
            return LocalError(f"host {host} ended: {found.report.error}")
        return LocalError(f"host {host} ended unexpectedly: {_last_line(self._setting.log_path(host))}")


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"

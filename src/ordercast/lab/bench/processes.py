"""The processes of a measurement: hosts of a cluster, and members of it that the measurement directs."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from ordercast.core import HostId, LocalError, Nanos
from ordercast.lab.bench.spec import GROUP
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.supervisor import node_command
from ordercast.net.tools.client import ControlClient

START_S = 600.0
"""Seconds that a cluster may take to start, on a busy machine too. A host that ends is noticed at once."""
GLANCE_S = 0.2
LOG_LINES_TOLD = 5


class Processes:
    """All hosts of a cluster, each in a process. Members take orders and answer in lines."""

    def __init__(
        self, cluster: Cluster, folder: Path, members: Mapping[HostId, str], absent: Collection[HostId] = ()
    ) -> None:
        """`members` names the hosts that run a module of their own."""
        self._cluster = cluster
        self._hosts = [host for host in cluster.hosts if host.id not in absent]
        self._folder = folder
        self._modules = members
        self.members: dict[HostId, subprocess.Popen[bytes]] = {}
        self._others: dict[HostId, subprocess.Popen[bytes]] = {}
        self._leashes: list[int] = []

    def __enter__(self) -> Self:
        """Start all hosts."""
        try:
            logs = self._folder / "logs"
            logs.mkdir(exist_ok=True)
            command = node_command(self._cluster, GROUP)
            for spec in self._hosts:
                with (logs / f"{spec.id}.log").open("wb") as log:
                    if spec.id in self._modules:
                        self.members[spec.id] = self._start_member(spec.id, log)
                    else:
                        self._others[spec.id] = self._start_host(spec.id, command, log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_member(self, host: HostId, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-m", self._modules[host], str(self._folder), str(host)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def _start_host(self, host: HostId, command: Any, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        reading, writing = os.pipe()
        self._leashes.append(writing)
        try:
            return subprocess.Popen(
                command(host, reading),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(reading,),
            )
        finally:
            os.close(reading)

    def __exit__(self, *_: object) -> None:
        """End all hosts; kill those that are slow."""
        for writing in self._leashes:
            os.close(writing)
        self._leashes.clear()
        for process in self.members.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        end = time.monotonic() + 10
        for process in (*self.members.values(), *self._others.values()):
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    @property
    def pids(self) -> dict[HostId, int]:
        """The processes of all hosts."""
        return {host: process.pid for host, process in (self.members | self._others).items()}

    def cpu(self) -> dict[HostId, Nanos]:
        """The CPU time of every host so far."""
        times = {}
        for spec in self._hosts:
            with ControlClient(spec.id, self._cluster.socket_path(spec.id), START_S) as client:
                times[spec.id] = int(client.metrics()["cpu_ns"])
        return times

    def cpu_by_role(self, cpu: Mapping[HostId, Nanos], messages: int) -> dict[str, float]:
        """Microseconds of CPU for each message, of the hosts of each role and of all together."""
        roles: dict[str, float] = {}
        for spec in self._hosts:
            role = " and ".join(dict.fromkeys(spec.roles))
            roles[role] = roles.get(role, 0) + cpu[spec.id] / 1000 / messages
        roles["total"] = sum(roles.values())
        return {role: round(value, 3) for role, value in roles.items()}

    def tell_all(self) -> None:
        """Tell all members to go on."""
        for host, process in self.members.items():
            assert process.stdin is not None
            try:
                process.stdin.write(b"go\n")
                process.stdin.flush()
            except OSError as error:
                raise self._died(host) from error

    def hear(self, word: str, timeout_s: float) -> dict[HostId, int]:
        """Read the next line of each member, which must be this one."""
        end, answers = time.monotonic() + timeout_s, {}
        for host, process in self.members.items():
            line = self._read_line(host, process, end)
            answer = msgspec.json.decode(line, type=dict[str, int]) if line else {}
            if word not in answer:
                raise self._died(host)
            answers[host] = answer[word]
        return answers

    def _read_line(self, host: HostId, process: "subprocess.Popen[bytes]", end: float) -> bytes:
        """A line that a member says, or nothing if it ended; a host that it needs may have ended instead."""
        assert process.stdout is not None
        while not select.select((process.stdout,), (), (), GLANCE_S)[0]:
            for other, needed in self._others.items():
                if needed.poll() is not None:
                    raise self._died(other)
            if time.monotonic() > end:
                raise self._died(host)
        return process.stdout.readline()

    def _died(self, host: HostId) -> LocalError:
        log = (self._folder / "logs" / f"{host}.log").read_text(errors="replace").splitlines()
        told = "; ".join(log[-LOG_LINES_TOLD:]) or "its log is empty"
        return LocalError(f"host {host} of the benchmark ended or does not answer: {told}")

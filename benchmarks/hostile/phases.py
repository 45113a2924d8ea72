"""The phases of a run, in turns: when each was, what hosts used in it, and what they refused in all."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.hostile.attacker import PHASES, QUIET, Sent
from benchmarks.peers.stage import die_with_parent
from ordercast.core import HostId, Nanos
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.tools.client import ControlClient

TICKS = os.sysconf("SC_CLK_TCK")
CALM_S = 1.0
"""How long hosts have after the last phase, to read what is on its way."""


class Span(msgspec.Struct, frozen=True):
    """One turn of a phase."""

    phase: str
    begin: Nanos
    end: Nanos
    host_cpu_s: float
    """CPU time of all hosts."""
    attacker_cpu_s: float


class Tally(msgspec.Struct, frozen=True):
    """The counters of all hosts together, and of their sockets."""

    counters: dict[str, int]
    dropped: int
    """Datagrams for which a socket had no room."""

    @property
    def rejected(self) -> int:
        """Refused datagrams."""
        return sum(count for name, count in self.counters.items() if name.startswith("rejected_"))

    def since(self, before: "Tally") -> "Tally":
        """What was counted after another tally."""
        counters = {name: count - before.counters[name] for name, count in self.counters.items()}
        return Tally(counters, self.dropped - before.dropped)


class Assault:
    """Attacks a cluster while it is loaded, and takes notes."""

    def __init__(self, insider: HostId, rate: float, share: float, cycles: int, turn_s: float) -> None:
        self._insider = insider
        self._arguments = (str(rate), str(share))
        self._cycles = cycles
        self._turn_s = turn_s
        self.spans: list[Span] = []
        self.sent = Sent(0, 0)
        self.found = Tally({}, 0)

    @property
    def seconds(self) -> float:
        """How long all phases take."""
        return self._cycles * len(PHASES) * self._turn_s

    @contextmanager
    def watch(self, pids: Mapping[HostId, int], folder: Path) -> Iterator[None]:
        """Go through all phases while the block runs."""
        cluster = load_cluster(folder / "cluster.toml")
        before = take_tally(cluster, pids)
        with self._attacker(folder) as process:
            thread = threading.Thread(target=self._go_through, args=(process, list(pids.values())))
            thread.start()
            try:
                yield
            finally:
                thread.join()
            said, _ = process.communicate()
        self.sent = msgspec.json.decode(said, type=Sent)
        time.sleep(CALM_S)
        self.found = take_tally(cluster, pids).since(before)

    @contextmanager
    def _attacker(self, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
        words = [sys.executable, "-m", "benchmarks.hostile.attacker", str(folder), str(self._insider)]
        process = subprocess.Popen(
            [*words, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError("the attacker did not start")
            yield process
        finally:
            process.kill()
            process.wait()

    def _go_through(self, process: "subprocess.Popen[bytes]", pids: list[int]) -> None:
        for cycle in range(self._cycles):
            for place in range(len(PHASES)):
                phase = PHASES[(cycle + place) % len(PHASES)]
                _tell(process, phase)
                self.spans.append(self._span(phase, process.pid, pids))
        _tell(process, QUIET)

    def _span(self, phase: str, attacker: int, pids: list[int]) -> Span:
        begin, used, used_there = time.time_ns(), cpu_s(*pids), cpu_s(attacker)
        time.sleep(self._turn_s)
        end = time.time_ns()
        return Span(phase, begin, end, cpu_s(*pids) - used, cpu_s(attacker) - used_there)


def _tell(process: "subprocess.Popen[bytes]", phase: str) -> None:
    assert process.stdin is not None
    process.stdin.write(phase.encode() + b"\n")
    process.stdin.flush()


def cpu_s(*pids: int) -> float:
    """The CPU time of processes so far."""
    used = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / TICKS


def take_tally(cluster: Cluster, hosts: Mapping[HostId, int]) -> Tally:
    """The counters of hosts now; a host that does not answer is an error."""
    counters: dict[str, int] = {}
    for host in hosts:
        with ControlClient(host, cluster.socket_path(host), 30.0) as client:
            for name, value in client.metrics().items():
                if isinstance(value, int):
                    counters[name] = counters.get(name, 0) + value
    ports = {cluster.host(host).address.port for host in hosts}
    return Tally(counters, sum(dropped for port, dropped in _socket_drops() if port in ports))


def _socket_drops() -> Iterator[tuple[int, int]]:
    """The port of each UDP socket of this machine, and the datagrams for which it had no room (Linux)."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        yield int(fields[1].rpartition(":")[2], 16), int(fields[-1])

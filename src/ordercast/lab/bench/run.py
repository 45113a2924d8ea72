"""Runs a measurement: starts the hosts of a cluster in its own folder, loads it, and accounts for it."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import SECOND, Deployment, HostId, LocalError, Nanos, Plan
from ordercast.lab.bench.account import Account, latencies, percentiles, read_log, to_all, violations
from ordercast.lab.bench.bundles import account_by_bundle, read_rows
from ordercast.lab.bench.spec import GROUP, BenchResult, BenchSpec
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.cluster.supervisor import node_command
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.net.tools.client import ControlClient
from ordercast.net.transports.address import free_ports
from ordercast.toml_file import convert_options

START_S = 600.0
"""Seconds that a cluster may take to start, on a busy machine too. A host that ends is noticed at once."""
GLANCE_S = 0.2
LOG_LINES_TOLD = 5


Watch: TypeAlias = Callable[[Mapping[HostId, int], Path], contextlib.AbstractContextManager[object]]
"""A context for the time of the load; it gets the processes of all hosts and their folder."""


def run_bench(
    spec: BenchSpec, keep: Path | None = None, watch: Watch | None = None, absent: Collection[HostId] = ()
) -> BenchResult:
    """Measure. With a folder to keep, traces and logs stay there; `watch` can watch the processes.

    Hosts that are `absent` are in the cluster's file, and not started.
    """
    with contextlib.ExitStack() as stack:
        folder = keep
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="ordercast-bench-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = prepare(spec, folder)
        with _Bench(spec, cluster, folder, absent) as bench:
            result = bench.measure(watch)
        if spec.trace:
            trace = finish_run(cluster.traces, cluster.plan(), GROUP, complete=False)
            result = msgspec.structs.replace(result, trace=str(trace))
        return result


def prepare(spec: BenchSpec, folder: Path) -> Cluster:
    """Write the cluster's file and key, and the spec for the members."""
    if (folder / "cluster.toml").exists():
        raise LocalError(f"{folder} already has a cluster; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not spec.plaintext:
        create_keys(folder / "cluster.key")
    hosts = sorted({node.host for node in plan_of(spec).nodes})
    lines = [
        f'name = "{GROUP}"',
        f'protocol = "{spec.protocol}"',
        "senders = 1",
        "colocated = true",
        f"trace = {str(spec.trace).lower()}",
        f"[groups]\n{GROUP} = {spec.receivers}",
        f'[transport]\nkind = "{spec.transport}"\nbusy_poll = {str(spec.busy_poll).lower()}',
        f"datagram_bytes = {spec.datagram_bytes}",
        '[security]\nmode = "plaintext"' if spec.plaintext else '[security]\nkey_file = "cluster.key"',
        "[options]",
        *_option_lines(spec.options),
    ]
    for host, port in zip(hosts, free_ports(len(hosts)), strict=True):
        lines.append(f'[[host]]\nid = {host}\naddress = "127.0.0.1:{port}"')
    (folder / "cluster.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "spec.json").write_bytes(msgspec.json.encode(spec))
    return load_cluster(folder / "cluster.toml")


def _latency_of(spec: BenchSpec) -> str:
    if spec.tasks:
        return "own delivery, as the task sees it"
    return "own delivery" if spec.load == "clients" else "delivery to all receivers"


def plan_of(spec: BenchSpec) -> Plan:
    """The plan of the measured cluster."""
    protocol = find_protocol(spec.protocol)
    options = convert_options(protocol.live_options(spec.options), protocol, list_keys=True)
    return protocol.deploy(Deployment.disjoint(1, spec.receivers, 1, colocated=True), options)


def _option_lines(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        yield f"{name} = {msgspec.json.encode(value).decode()}"  # the same as TOML for plain values


class _Bench:
    """The processes of a measurement."""

    def __init__(
        self, spec: BenchSpec, cluster: Cluster, folder: Path, absent: Collection[HostId] = ()
    ) -> None:
        self._spec = spec
        self._cluster = cluster
        self._hosts = [host for host in cluster.hosts if host.id not in absent]
        self._folder = folder
        self._members: dict[HostId, subprocess.Popen[bytes]] = {}
        self._others: dict[HostId, subprocess.Popen[bytes]] = {}
        self._leashes: list[int] = []

    def __enter__(self) -> "_Bench":
        """Start all hosts."""
        try:
            logs = self._folder / "logs"
            logs.mkdir(exist_ok=True)
            command = node_command(self._cluster, GROUP)
            for spec in self._hosts:
                with (logs / f"{spec.id}.log").open("wb") as log:
                    if spec.id < self._spec.receivers:
                        self._members[spec.id] = self._start_member(spec.id, log)
                    else:
                        self._others[spec.id] = self._start_host(spec.id, command, log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_member(self, host: HostId, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-m", "ordercast.lab.bench.member", str(self._folder), str(host)]
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
        for process in self._members.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        end = time.monotonic() + 10
        for process in (*self._members.values(), *self._others.values()):
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    # The measurement

    @property
    def pids(self) -> dict[HostId, int]:
        """The processes of all hosts."""
        return {host: process.pid for host, process in (self._members | self._others).items()}

    def measure(self, watch: Watch | None = None) -> BenchResult:
        """Wait until the cluster works, load it, and account for everything."""
        self._await("ready", START_S)
        before = self._cpu()
        self._tell_all()
        started = self._await("begun", START_S)[0]
        self._tell_all()
        with watch(self.pids, self._folder) if watch else contextlib.nullcontext():
            self._await("sent", self._spec.warmup_s + self._spec.seconds + START_S)
        ended = time.time_ns()
        after = self._cpu()
        self._tell_all()
        drops = sum(self._await("drops", START_S).values())
        start = started + round(self._spec.warmup_s * SECOND)
        cpu = {host: after[host] - before[host] for host in after}
        account = self._account_by_bundle if self._spec.by_packet else self._account
        result = account(start, start + round(self._spec.seconds * SECOND), ended - started, cpu, drops)
        self._tell_all()
        return result

    def _account(
        self, start: Nanos, end: Nanos, whole: Nanos, cpu: Mapping[HostId, Nanos], drops: int
    ) -> BenchResult:
        spec = self._spec
        submitted = read_log(self._folder / "submitted-0.bin")
        delivered = {host: self._delivered(host, submitted) for host in self._members}
        everywhere = to_all(list(delivered.values()))
        within = int(((everywhere.times >= start) & (everywhere.times < end)).sum())
        own = spec.load == "clients"
        arrived = delivered[0] if own else everywhere
        if spec.tasks:
            arrived = read_log(self._folder / "awaited-0.bin")
        taken = latencies(submitted, arrived, start, end)
        return BenchResult(
            protocol=spec.protocol,
            load=spec.load,
            ordered_per_s=round(within / spec.seconds, 1),
            latency_us=percentiles(taken),
            latency_of=_latency_of(spec),
            cpu_us_per_message=self._cpu_by_role(cpu, max(1, len(submitted.messages))),
            submitted=len(submitted.messages),
            lost=len(submitted.messages) - len(everywhere.messages),
            drops_notified=drops,
            violations=violations(delivered, submitted.messages),
            seconds=spec.seconds,
            options=msgspec.to_builtins(spec),
        )

    def _account_by_bundle(
        self, start: Nanos, end: Nanos, whole: Nanos, cpu: Mapping[HostId, Nanos], drops: int
    ) -> BenchResult:
        spec = self._spec
        submitted = read_rows(self._folder / "submitted-0.bin")
        delivered = {host: read_rows(self._folder / f"delivered-{host}.bin") for host in self._members}
        found = account_by_bundle(delivered, submitted, start, end)
        return BenchResult(
            protocol=spec.protocol,
            load=spec.load,
            ordered_per_s=round(found.within / spec.seconds, 1),
            latency_us=None,
            latency_of=_latency_of(spec),
            cpu_us_per_message=self._cpu_by_role(cpu, max(1, found.submitted)),
            submitted=found.submitted,
            lost=found.lost,
            drops_notified=drops,
            violations=found.violations,
            seconds=spec.seconds,
            options=msgspec.to_builtins(spec),
        )

    def _delivered(self, host: HostId, submitted: Account) -> Account:
        """What a member delivered since the measurement began, without the probes before it."""
        account = read_log(self._folder / f"delivered-{host}.bin")
        counts = account.messages >= (submitted.messages.min() if len(submitted.messages) else 0)
        return Account(account.messages[counts], account.times[counts])

    def _cpu(self) -> dict[HostId, Nanos]:
        """The CPU time of every host so far."""
        times = {}
        for spec in self._hosts:
            with ControlClient(spec.id, self._cluster.socket_path(spec.id), START_S) as client:
                times[spec.id] = int(client.metrics()["cpu_ns"])
        return times

    def _cpu_by_role(self, cpu: Mapping[HostId, Nanos], messages: int) -> dict[str, float]:
        roles: dict[str, float] = {}
        for spec in self._hosts:
            role = " and ".join(dict.fromkeys(spec.roles))
            roles[role] = roles.get(role, 0) + cpu[spec.id] / 1000 / messages
        roles["total"] = sum(roles.values())
        return {role: round(value, 3) for role, value in roles.items()}

    def _tell_all(self) -> None:
        for host, process in self._members.items():
            assert process.stdin is not None
            try:
                process.stdin.write(b"go\n")
                process.stdin.flush()
            except OSError as error:
                raise self._died(host) from error

    def _await(self, word: str, timeout_s: float) -> dict[HostId, int]:
        """Read the next line of each member, which must be this one."""
        end, answers = time.monotonic() + timeout_s, {}
        for host, process in self._members.items():
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

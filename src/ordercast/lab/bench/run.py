"""Runs a measurement: starts the hosts of a cluster in its own folder, loads it, and accounts for it."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import SECOND, Deployment, HostId, LocalError, Nanos, Plan
from ordercast.lab.bench.account import Account, latencies, percentiles, read_log, to_all, violations
from ordercast.lab.bench.bundles import account_by_bundle, read_rows
from ordercast.lab.bench.processes import START_S, Processes
from ordercast.lab.bench.spec import GROUP, BenchResult, BenchSpec
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.net.transports.address import free_ports
from ordercast.toml_file import convert_options

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


class _Bench(Processes):
    """A measurement of a protocol, in which all receivers are members."""

    def __init__(
        self, spec: BenchSpec, cluster: Cluster, folder: Path, absent: Collection[HostId] = ()
    ) -> None:
        members = dict.fromkeys(range(spec.receivers), "ordercast.lab.bench.member")
        super().__init__(cluster, folder, members, absent)
        self._spec = spec

    def measure(self, watch: Watch | None = None) -> BenchResult:
        """Wait until the cluster works, load it, and account for everything."""
        self.hear("ready", START_S)
        before = self.cpu()
        self.tell_all()
        started = self.hear("begun", START_S)[0]
        self.tell_all()
        with watch(self.pids, self._folder) if watch else contextlib.nullcontext():
            self.hear("sent", self._spec.warmup_s + self._spec.seconds + START_S)
        ended = time.time_ns()
        after = self.cpu()
        self.tell_all()
        drops = sum(self.hear("drops", START_S).values())
        start = started + round(self._spec.warmup_s * SECOND)
        cpu = {host: after[host] - before[host] for host in after}
        account = self._account_by_bundle if self._spec.by_packet else self._account
        result = account(start, start + round(self._spec.seconds * SECOND), ended - started, cpu, drops)
        self.tell_all()
        return result

    def _account(
        self, start: Nanos, end: Nanos, whole: Nanos, cpu: Mapping[HostId, Nanos], drops: int
    ) -> BenchResult:
        spec = self._spec
        submitted = read_log(self._folder / "submitted-0.bin")
        delivered = {host: self._delivered(host, submitted) for host in self.members}
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
            cpu_us_per_message=self.cpu_by_role(cpu, max(1, len(submitted.messages))),
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
        delivered = {host: read_rows(self._folder / f"delivered-{host}.bin") for host in self.members}
        found = account_by_bundle(delivered, submitted, start, end)
        return BenchResult(
            protocol=spec.protocol,
            load=spec.load,
            ordered_per_s=round(found.within / spec.seconds, 1),
            latency_us=None,
            latency_of=_latency_of(spec),
            cpu_us_per_message=self.cpu_by_role(cpu, max(1, found.submitted)),
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

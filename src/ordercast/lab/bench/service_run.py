"""Runs a measurement of a service: a cluster of its own, a program that calls, and its account."""

import contextlib
import shutil
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from ordercast.core import SECOND, HostId, LocalError, Nanos
from ordercast.lab.bench.account import percentiles
from ordercast.lab.bench.processes import START_S, Processes
from ordercast.lab.bench.service_member import ServiceReport
from ordercast.lab.bench.service_spec import ServiceBenchResult, ServiceBenchSpec
from ordercast.lab.bench.spec import GROUP
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.net.tools.client import NoAnswer
from ordercast.net.transports.address import free_ports
from ordercast.services import find_service

REPORT_S = 600.0


def run_service_bench(spec: ServiceBenchSpec, keep: Path | None = None) -> ServiceBenchResult:
    """Measure. With a folder to keep, traces and logs stay there."""
    with contextlib.ExitStack() as stack:
        folder = keep
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="ordercast-bench-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = prepare(spec, folder)
        with _ServiceBench(spec, cluster, folder) as bench:
            result = bench.measure()
        if spec.trace:
            trace = finish_run(cluster.traces, cluster.plan(), GROUP, complete=False)
            result = msgspec.structs.replace(result, trace=str(trace))
        return result


def prepare(spec: ServiceBenchSpec, folder: Path) -> Cluster:
    """Write the cluster's file and key, and the spec for the client."""
    new = NewCluster(
        name=GROUP,
        protocol=spec.protocol,
        receivers=spec.replicas,
        senders=1,
        embedded=spec.embedded,
        options=spec.options,
        plaintext=spec.plaintext,
        service=find_service(spec.service),
    )
    cluster = write_cluster(new, folder, transport=spec.transport, trace=spec.trace)
    (folder / "spec.json").write_bytes(msgspec.json.encode(spec))
    return cluster


def write_cluster(new: NewCluster, folder: Path, *, transport: str = "udp", trace: bool = False) -> Cluster:
    """Write the file and the key of a cluster, with ports that are free now."""
    file = folder / "cluster.toml"
    if file.exists():
        raise LocalError(f"{folder} already has a cluster; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not new.plaintext:
        create_keys(folder / "cluster.key")
    text = new.text().replace('kind = "udp"', f'kind = "{transport}"')
    text = text.replace("# trace = true", f"trace = {str(trace).lower()}")
    file.write_text(_with_ports(text), encoding="utf-8")
    return load_cluster(file, service_folder=Path.cwd())


def _with_ports(text: str) -> str:
    """The file of a cluster with ports that are free now."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith("address = ")]
    for place, port in zip(places, free_ports(len(places)), strict=True):
        lines[place] = f'address = "127.0.0.1:{port}"'
    return "\n".join(lines) + "\n"


class _ServiceBench(Processes):
    """A measurement in which the only client is a member."""

    def __init__(self, spec: ServiceBenchSpec, cluster: Cluster, folder: Path) -> None:
        (client,) = {cluster.plan().nodes[node].host for node in cluster.plan().senders}
        super().__init__(cluster, folder, {client: "ordercast.lab.bench.service_member"})
        self._spec = spec

    def measure(self) -> ServiceBenchResult:
        """Wait until the service answers, load it, and account for everything."""
        spec = self._spec
        self.hear("ready", START_S)
        before = self._cpu_when_up()
        self.tell_all()
        (begun,) = self.hear("begun", START_S).values()
        self.hear("called", spec.warmup_s + spec.seconds + START_S)
        after = self.cpu()
        self.tell_all()
        self.hear("reported", REPORT_S)
        start = begun + round(spec.warmup_s * SECOND)
        report = msgspec.json.decode((self._folder / "report.json").read_bytes(), type=ServiceReport)
        cpu = {host: after[host] - before[host] for host in after}
        result = self._result(report, start, start + round(spec.seconds * SECOND), cpu)
        self.tell_all()
        return result

    def _cpu_when_up(self) -> dict[HostId, Nanos]:
        """The CPU time of every host; the service may answer before all of its hosts are up."""
        end = time.monotonic() + START_S
        while True:
            try:
                return self.cpu()
            except NoAnswer:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def _result(
        self, report: ServiceReport, start: Nanos, end: Nanos, cpu: dict[int, Nanos]
    ) -> ServiceBenchResult:
        spec = self._spec
        times = np.fromfile(report.latencies, np.int64).reshape(-1, 2)
        within = times[(times[:, 0] >= start) & (times[:, 0] < end)]
        return ServiceBenchResult(
            protocol=spec.protocol,
            service=spec.service,
            tasks=spec.tasks,
            operations_per_s=round(len(within) / spec.seconds, 1),
            latency_us=percentiles(within[:, 1]),
            cpu_us_per_operation=self.cpu_by_role(cpu, max(1, report.answered)),
            answered=report.answered,
            unknown=report.unknown,
            violations=report.violations,
            checked=report.checked,
            seconds=spec.seconds,
            options=msgspec.to_builtins(spec),
        )

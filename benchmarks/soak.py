"""A cluster under half of its greatest load for a long time: does memory stay flat, and nothing get lost?

    python -m benchmarks.soak [--minutes 10] [--rate R] [--trace] [--json soak.json]

First the greatest rate is measured in a short run, unless a rate is given. Then messages are sent at half of
it, in open loop, while the resident memory and CPU time of each process are sampled. Members write their
notes to disk each second, so that these are not what grows.

Memory counts as flat if a straight line through the samples after the warming up (the first third) rises by
less than 1 MiB a minute, or by less than 4 MiB in all, which is about what an allocator rounds up to.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from ordercast.core import HostId
from ordercast.lab.bench.run import run_bench
from ordercast.lab.bench.spec import BenchResult, BenchSpec

MIB = 1 << 20
RISE_A_MINUTE = 1.0
RISE_IN_ALL = 4.0
"""In MiB: what is less is flat."""
SAMPLES_WANTED = 120
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """What one host process used."""

    host: HostId
    rss_first_mib: float
    """At the end of the warming up."""
    rss_last_mib: float
    rss_most_mib: float
    rise_mib_a_minute: float
    flat: bool
    cpu: float
    """Of a core, on average."""


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """What came out."""

    greatest_per_s: float
    """Messages a second, measured before; 0 if a rate was given."""
    rate_per_s: float
    ordered_per_s: float
    minutes: float
    submitted: int
    lost: int
    drops_notified: int
    violations: list[str]
    processes: list[Process]
    orphans: int
    disk_mib: dict[str, float]
    """State, traces and logs of all hosts at the end, and the members' own notes."""

    @property
    def passed(self) -> bool:
        """Whether memory was flat, and nothing lost, out of order or left behind."""
        flat = all(process.flat for process in self.processes)
        return flat and not (self.lost or self.violations or self.orphans)


class Sampler:
    """Looks at processes now and then."""

    def __init__(self, period_s: float) -> None:
        self.pids: dict[HostId, int] = {}
        self.disk: dict[str, float] = {}
        self._period_s = period_s
        self._times: list[float] = []
        self._rss: dict[HostId, list[int]] = {}
        self._cpu: dict[HostId, list[float]] = {}

    @contextmanager
    def watch(self, pids: Mapping[HostId, int], folder: Path) -> Iterator[None]:
        """Sample until the block ends."""
        self.pids = dict(pids)
        done = threading.Event()

        def sample() -> None:
            while True:
                self._sample()
                if done.wait(self._period_s):
                    return

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.disk = _disk(folder)

    def _sample(self) -> None:
        self._times.append(time.monotonic())
        for host, pid in self.pids.items():
            try:
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended, which the benchmark tells
                continue
            self._rss.setdefault(host, []).append(resident)
            self._cpu.setdefault(host, []).append((int(fields[11]) + int(fields[12])) / TICKS)

    def processes(self) -> list[Process]:
        """All of them, judged."""
        return [
            judge(host, self._times[: len(rss)], rss, self._cpu[host])
            for host, rss in sorted(self._rss.items())
        ]


def judge(host: HostId, times: list[float], rss: list[int], cpu: list[float]) -> Process:
    """Whether the memory of a process is flat after the warming up."""
    start = len(rss) // 3
    minutes = (np.array(times[start:]) - times[start]) / 60
    slope = float(np.polyfit(minutes, np.array(rss[start:]) / MIB, 1)[0]) if len(rss) - start > 2 else 0.0
    whole = times[-1] - times[0]
    return Process(
        host=host,
        rss_first_mib=round(rss[start] / MIB, 1),
        rss_last_mib=round(rss[-1] / MIB, 1),
        rss_most_mib=round(max(rss) / MIB, 1),
        rise_mib_a_minute=round(slope, 2),
        flat=slope < RISE_A_MINUTE or slope * float(minutes[-1]) < RISE_IN_ALL,
        cpu=round((cpu[-1] - cpu[0]) / whole, 2) if whole else 0.0,
    )


def soak(minutes: float, rate: float = 0, *, trace: bool = False, search_s: float = 5.0) -> Soak:
    """Find the greatest rate, unless one is given, and soak."""
    greatest = 0.0
    if not rate:
        greatest = run_bench(BenchSpec(load="max", seconds=search_s)).ordered_per_s
    chosen = rate or greatest / 2
    spec = BenchSpec(load="rate", rate=chosen, seconds=60 * minutes, by_packet=True, trace=trace)
    sampler = Sampler(max(0.2, min(5.0, 60 * minutes / SAMPLES_WANTED)))
    with tempfile.TemporaryDirectory(prefix="ordercast-soak-") as folder:
        result = run_bench(spec, Path(folder) / "bench", sampler.watch)
        return _sum_up(result, sampler, minutes, chosen, greatest, folder)


def _sum_up(
    result: BenchResult, sampler: Sampler, minutes: float, rate: float, greatest: float, folder: str
) -> Soak:
    return Soak(
        greatest_per_s=greatest,
        rate_per_s=round(rate, 1),
        ordered_per_s=result.ordered_per_s,
        minutes=minutes,
        submitted=result.submitted,
        lost=result.lost,
        drops_notified=result.drops_notified,
        violations=result.violations,
        processes=sampler.processes(),
        orphans=len(_processes_of(folder)),
        disk_mib=sampler.disk,
    )


def _processes_of(folder: str) -> list[int]:
    """Processes that still run for the cluster in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if folder.encode() in command:
                found.append(int(entry.name))
    return found


def _disk(folder: Path) -> dict[str, float]:
    kinds = {"state": "**/state/*", "traces": "**/traces/**/*", "logs": "**/logs/*", "notes": "*.bin"}
    return {
        kind: round(sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file()) / MIB, 2)
        for kind, pattern in kinds.items()
    }


def table(found: Soak) -> str:
    """The result for people."""
    greatest = f" (half of {found.greatest_per_s:,.0f})" if found.greatest_per_s else ""
    lines = [
        f"{found.rate_per_s:,.0f} messages a second{greatest} for {found.minutes:g} minutes",
        f"ordered {found.ordered_per_s:,.0f} a second; of {found.submitted:,} submitted {found.lost:,} lost, "
        f"{found.drops_notified:,} drop notifications, {len(found.violations)} violations",
        f"orphan processes: {found.orphans}; on disk, MiB: {found.disk_mib}",
        "host  cores  RSS MiB after warming up, at the end, most; rise a minute",
    ]
    for process in found.processes:
        sizes = f"{process.rss_first_mib:8.1f} {process.rss_last_mib:8.1f} {process.rss_most_mib:8.1f}"
        verdict = "flat" if process.flat else "GROWS"
        lines.append(
            f"{process.host:4}  {process.cpu:5.2f}  {sizes}  {process.rise_mib_a_minute:+6.2f}  {verdict}"
        )
    lines += found.violations
    return "\n".join([*lines, "passed" if found.passed else "FAILED"])


def main() -> int:
    """Soak as the command line says."""
    parser = argparse.ArgumentParser(description="Soak a Hydra cluster on this machine.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second; half of the greatest")
    parser.add_argument("--trace", action="store_true", help="write traces too")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    chosen = parser.parse_args()
    found = soak(chosen.minutes, chosen.rate, trace=chosen.trace)
    print(table(found))
    if chosen.json:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    return 0 if found.passed else 1


if __name__ == "__main__":
    sys.exit(main())

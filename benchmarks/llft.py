"""LLFT on this machine: latency against plain TCP, and what a client sees when the primary is killed.

*Latency*: one client calls `echo`, one call at a time, with arguments of several sizes. The same goes
through a blocking TCP connection between two Python processes (*plain TCP*), through `unreplicated` (one
server of ordercast, without replicas) and through `llft` with three replicas. All are processes of this
machine and talk by loopback; those of ordercast encrypt. They take turns in each round. The ratios are
those of medians: of LLFT to plain TCP, as in Figure 12 of LLFT's paper, and to `unreplicated`, which is
what replication adds.

*Fail-over*: four clients call without think time, and the primary is killed with SIGKILL after a second.
With two and three replicas, and with each detection time: how long after the kill the new primary has its
view, and the *outage*, the longest time between two answers of a client. The trace of each run is judged.

python -m benchmarks.llft [--seconds S] [--rounds N] [--part latency|failover] [--json]
"""

import argparse
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from math import nan
from pathlib import Path
from statistics import median

from ordercast.core import MILLISECOND, NodeId
from ordercast.lab.bench.service_run import run_service_bench
from ordercast.lab.bench.service_spec import ServiceBenchSpec
from ordercast.lab.trial.run import run_live
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import Kind, events_of

SIZES = (16, 1_024, 8_192, 65_536)
REPLICAS = (2, 3)
DETECT_MS = (30, 300)
"""That of the paper, and the default of live clusters."""
LLFT, UNREPLICATED, TCP = "llft", "unreplicated", "plain TCP"
CLIENTS = 4
KILL_MS = 1_000
WARM_UP = 200


def serve_echo(ready: "multiprocessing.SimpleQueue[int]", size: int) -> None:
    """Give back what one connection sends, message by message."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready.put(server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while message := _read(connection, size):
                connection.sendall(message)


def _read(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size and (part := connection.recv(size)):
        parts.append(part)
        size -= len(part)
    return b"" if size else b"".join(parts)


@contextmanager
def echo_server(size: int) -> Iterator[int]:
    """A process that gives back messages of a size; its port."""
    context = multiprocessing.get_context("spawn")
    ready = context.SimpleQueue()
    process = context.Process(target=serve_echo, args=(ready, size), daemon=True)
    process.start()
    try:
        yield ready.get()
    finally:
        process.join(5)
        process.kill()


def tcp_latency(size: int, seconds: float) -> float:
    """The median round trip by plain TCP, in microseconds."""
    message, times = bytes(size), []
    with echo_server(size) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + seconds
        while (start := time.perf_counter_ns()) and time.monotonic() < end:
            connection.sendall(message)
            _read(connection, size)
            times.append(time.perf_counter_ns() - start)
    return median(times[WARM_UP:] or times) / 1e3


def service_latency(protocol: str, size: int, seconds: float) -> float:
    """The median time of a call through a protocol, in microseconds."""
    spec = ServiceBenchSpec(
        protocol=protocol,
        service="echo",
        only="echo",
        replicas=3 if protocol == LLFT else 1,
        tasks=1,
        size=size,
        seconds=seconds,
    )
    with tempfile.TemporaryDirectory(prefix="ordercast-llft-", ignore_cleanup_errors=True) as folder:
        found = run_service_bench(spec, Path(folder) / "cluster")
    if found.latency_us is None or found.violations or found.unknown:
        raise SystemExit(f"{protocol}, {size} bytes: {found.violations or 'calls without an answer'}")
    return found.latency_us.p50


def measure_latency(seconds: float, rounds: int) -> list[dict[str, float]]:
    """All sizes and systems, in turns."""
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for size in SIZES:
            found.setdefault((TCP, size), []).append(tcp_latency(size, seconds))
            for protocol in (UNREPLICATED, LLFT):
                found.setdefault((protocol, size), []).append(service_latency(protocol, size, seconds))
    middle = {key: median(values) for key, values in found.items()}
    return [
        {
            "bytes": size,
            **{f"{system} us": round(middle[system, size], 1) for system in (TCP, UNREPLICATED, LLFT)},
            **{
                f"{LLFT} / {other}": round(middle[LLFT, size] / middle[other, size], 3)
                for other in (TCP, UNREPLICATED)
            },
        }
        for size in SIZES
    ]


def fail_over(replicas: int, detect_ms: int, seed: int, calls: int) -> tuple[float, float] | None:
    """Kill the primary under load: milliseconds until the new view, and the median outage of the clients.

    None if the primary was suspected while it lived: the machine was too busy for this detection time.
    """
    scenario = Scenario(
        protocol=LLFT,
        receivers=replicas,
        senders=CLIENTS,
        service="echo",
        seed=seed,
        live_options=True,
        options={"detect_ns": detect_ms * MILLISECOND, "heartbeat_ns": detect_ms * MILLISECOND // 6},
        workload=WorkloadSpec(kind="closed", messages=calls, bytes=1_024, reads=0.0),
        fault=(Crash(at_ms=KILL_MS, host=0),),
    )
    run, _ = run_live(scenario)
    events = sorted(events_of(run.table), key=lambda event: event.time_ns)
    (crash,) = run.crashes
    start = crash.time_ns
    views = [event.time_ns - start for event in events if event.kind is Kind.VIEW]
    suspected = any(view < 0 for view in views)
    # A killed primary cannot say that what it delivered on a branch of its own counts no longer, and how long
    # clients waited is measured here.
    complaints = () if suspected else (one for one in run.complaints if one.rule != "outage")
    broken = [*run.violations, *complaints]
    if broken:
        raise SystemExit(f"a promise was broken: {broken[0]}")
    if suspected:
        return None
    answers: dict[NodeId, list[int]] = {}
    for event in events:
        if event.kind is Kind.REPLY:
            answers.setdefault(event.node, []).append(event.time_ns)
    outages = [
        max((after - before for before, after in pairwise(times) if after > start), default=0)
        for times in answers.values()
    ]
    if not views or len(outages) < CLIENTS or not all(outages):
        raise SystemExit("the clients were done before the primary was killed: let them call more often")
    return views[0] / MILLISECOND, median(outages) / MILLISECOND


def measure_fail_over(rounds: int, calls: int) -> list[dict[str, float]]:
    """Two and three replicas, in turns."""
    settings = list(product(DETECT_MS, REPLICAS))
    found: dict[tuple[int, int], list[tuple[float, float]]] = {setting: [] for setting in settings}
    for turn in range(rounds):
        for detect_ms, replicas in settings:
            measured = fail_over(replicas, detect_ms, turn, calls)
            if measured is not None:
                found[detect_ms, replicas].append(measured)
    return [
        {
            "detect ms": detect_ms,
            "replicas": replicas,
            "view ms": round(median([view for view, _ in all_found] or [nan]), 1),
            "outage ms": round(median([outage for _, outage in all_found] or [nan]), 1),
            "longest outage ms": round(max([outage for _, outage in all_found], default=nan), 1),
            "kills": len(all_found),
            "suspected before": rounds - len(all_found),
        }
        for (detect_ms, replicas), all_found in found.items()
    ]


def show(rows: list[dict[str, float]]) -> None:
    """Print rows as a table."""
    names = list(rows[0])
    widths = [max(len(name), 9) for name in names]
    print("  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True)))
    for row in rows:
        print("  ".join(f"{row[name]:g}".rjust(width) for name, width in zip(names, widths, strict=True)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.llft",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="for each latency")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=12_000, help="in each run of a fail-over")
    parser.add_argument("--part", choices=("latency", "failover"))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    report: dict[str, list[dict[str, float]]] = {}
    if chosen.part != "failover":
        report["latency"] = measure_latency(chosen.seconds, chosen.rounds)
    if chosen.part != "latency":
        report["failover"] = measure_fail_over(chosen.rounds, chosen.calls)
    if chosen.json:
        print(json.dumps(report, indent=2))
        return
    for rows in report.values():
        show(rows)


if __name__ == "__main__":
    main()

"""The array engine on the largest runs of EpTO's Figure 7b: 10,000 processes, 5% broadcasts, both clocks.

A run has 20 rounds of broadcasts, about 10,000 events, and goes on until everybody has delivered them all.
Told are its seconds, the rounds of processes that it simulates in a second, counted once for each block of
events, and the bytes of its arrays for each process.

The yardstick is what the engine must do at the least: take the larger of two bytes for each event, for each
ball. `numpy.maximum` does as much over arrays as large as those of a block, from end to end, on as many cores
at once; the engine comes to rows in no order. `of_ceiling` is the time that NumPy would take for the bytes of
all balls, over the time of the run: everything else is what sampling, ages, latencies and the order of events
cost. Both take turns, and the ratio is the median of the rounds: machines are noisy.

    python -m benchmarks.epto [--processes N] [--rounds N] [--turns N] [--cores N] [--json]
"""

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np

from ordercast.engines.epto.latencies import published
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import BLOCK_BYTES, BLOCK_EVENTS, Outcome, run
from ordercast.engines.epto.setup import Setup
from ordercast.protocols.epto.parameters import lemma_parameters

C = 1.25
SLAB_BYTES = 1 << 20


def setup_for(processes: int, rounds: int, clock: Any, seed: int = 0) -> Setup:
    chosen = lemma_parameters(processes, C, clock=clock)
    return Setup(
        processes=processes, fanout=chosen.fanout, ttl=chosen.ttl, clock=clock, rounds=rounds, seed=seed
    )


def block_events(setup: Setup, latencies: Latencies, events: int, cores: int) -> int:
    """How many events a block has, as the engine cuts them."""
    ring = latencies.longest // (setup.round_ticks - setup.drift_ticks) + 2
    most = max(1, min(BLOCK_EVENTS, BLOCK_BYTES // (setup.processes * (ring + 1))))
    return max(1, min(most, -(-events // cores)))


def merged_bytes(outcome: Outcome, block: int) -> float:
    """Bytes of all balls: every round of a process that is simulated throws one, to each of its peers."""
    return float(outcome.rounds_run) * outcome.setup.fanout * block


def ceiling_bytes_per_s(size: int, cores: int, seconds: float = 0.5) -> float:
    """Bytes that `numpy.maximum` merges a second, over as large an array on each core."""
    arrays = [np.random.default_rng(core).integers(0, 9, size, np.uint8) for core in range(cores)]
    row = np.random.default_rng(cores).integers(0, 9, min(SLAB_BYTES, size), np.uint8)

    def merge(array: np.ndarray) -> float:
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for place in range(0, size - len(row) + 1, len(row)):
                slab = array[place : place + len(row)]
                np.maximum(slab, row, out=slab)
                done += len(row)
        return done / (time.perf_counter() - start)

    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(merge, arrays))


def measure(setup: Setup, latencies: Latencies, turns: int, cores: int) -> dict[str, Any]:
    seconds, ratios = [], []
    for _ in range(turns):
        start = time.perf_counter()
        outcome = run(setup, latencies, cores=cores)
        took = time.perf_counter() - start
        block = block_events(setup, latencies, len(outcome.events), cores)
        ring = latencies.longest // (setup.round_ticks - setup.drift_ticks) + 2
        ceiling = ceiling_bytes_per_s(setup.processes * ring * block, cores)
        seconds.append(took)
        ratios.append(merged_bytes(outcome, block) / ceiling / took)
    best = min(seconds)
    return {
        "clock": setup.clock,
        "processes": setup.processes,
        "events": len(outcome.events),
        "deliveries": outcome.deliveries,
        "holes": outcome.missing.count,
        "seconds": round(best, 2),
        "process_rounds_per_s": round(outcome.rounds_run / best),
        "event_rounds_per_s": round(outcome.rounds_run * block / best),
        "bytes_per_process": round(outcome.memory_bytes / setup.processes),
        "ceiling_gb_per_s": round(ceiling / 1e9, 2),
        "of_ceiling": round(median(ratios), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    latencies = published()
    run(setup_for(100, 2, "logical"), latencies, cores=1)  # compile
    load = os.getloadavg()[0]
    found = [
        measure(setup_for(options.processes, options.rounds, clock), latencies, options.turns, options.cores)
        for clock in ("global", "logical")
    ]
    if options.json:
        print(json.dumps({"cores": options.cores, "load_before": load, "runs": found}, indent=2))
        return
    print(f"{options.cores} cores, load before {load:.2f}")
    for each in found:
        print(
            ", ".join(f"{name} {value:,}" if name != "clock" else str(value) for name, value in each.items())
        )


if __name__ == "__main__":
    main()

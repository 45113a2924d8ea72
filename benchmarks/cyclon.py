"""How many of the peers that Cyclon gives a ball are alive, by the sizes of its views and shuffles.

500 processes of which some leave each round, a fan-out of 19, and latencies with the mean and the deviation
that EpTO's paper prints (157 and 119 ticks, rounds of 125; gamma). Views mix for 100 rounds, then processes
leave for 60, of which the last 30 count. Where a view has fewer than 19, the others count as not alive.

    python -m benchmarks.cyclon [--seeds N] [--json]
"""

import argparse
import json
from statistics import mean

import numpy as np

from ordercast.components.sampling.cyclon import CyclonOptions
from ordercast.engines.epto.cyclon import cyclon_targets
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import timeline

PROCESSES, FANOUT, ROUND, ROUNDS, WARMUP = 500, 19, 125, 60, 100
MEAN, DEVIATION, LONGEST = 157.0, 119.0, 6 * ROUND
CHURN = (0.01, 0.05, 0.10)
SIZES = (
    (40, 15, ROUND, 8),
    (25, 10, ROUND, 8),
    (25, 8, ROUND, 8),
    (20, 8, ROUND, 8),
    (25, 5, ROUND // 2, 16),
    (25, 5, ROUND // 4, 32),
)
"""Entries of a view, entries exchanged, ticks between shuffles, and for how many shuffles answers count."""


def latencies() -> Latencies:
    """Drawn once, the same for all settings."""
    shape, scale = (MEAN / DEVIATION) ** 2, DEVIATION**2 / MEAN
    drawn = np.random.default_rng(0).gamma(shape, scale, 20_000)
    values = np.maximum(1, np.minimum(drawn, LONGEST)).astype(np.int32)
    return Latencies(np.empty((0, 0), np.int16), values)


def living(options: CyclonOptions, churn: float, seed: int, between: Latencies) -> float:
    """How many targets of a ball are alive when it is thrown, on average."""
    setup = Setup(PROCESSES, FANOUT, 20, churn=churn, sampling="cyclon", seed=seed)
    line = timeline(setup, ROUNDS * ROUND)
    targets = cyclon_targets(setup, between, line, options, warmup_ticks=WARMUP * ROUND)
    ends = np.append(line.by_tick, len(line.slots))[: line.ticks + 1]
    tick = np.repeat(np.arange(line.ticks), np.diff(ends))
    late = tick >= line.ticks // 2
    chosen, when = targets[late], tick[late, None]
    alive = (chosen >= 0) & (line.left[np.maximum(chosen, 0)] > when)
    return float(alive.sum(axis=1).mean())


def main() -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    between = latencies()
    rows = []
    for view, length, period, patience in SIZES:
        options = CyclonOptions(view, length, period, max(0, period // 100), patience)
        found = [
            mean(living(options, churn, seed, between) for seed in range(chosen.seeds)) for churn in CHURN
        ]
        rows.append({"view": view, "length": length, "period": period, "patience": patience, "living": found})
        if not chosen.json:
            counts = "  ".join(f"{alive:5.1f}" for alive in found)
            print(f"view {view}, length {length}, every {period} ticks, patience {patience}: {counts}")
    if chosen.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()

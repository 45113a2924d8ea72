"""Fits the two free numbers of the experiments with transactions, on baselines alone.

The rule is that of `ordercast.experiments.hydra.transaction_calibration`: the execution with which Granola's
maximum throughput has its ratio to Lock-Store's, and then the limit with which Eris' has its ratio to
Granola's. Each ratio is measured at some values, by the rule for loads of all experiments, and the value in
between is interpolated. HydraTxn is not run.

    python -m benchmarks.transaction_fit
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median

import numpy as np

from ordercast.experiments.hydra.calibration import PUBLISHED
from ordercast.experiments.hydra.saturation import PEAK
from ordercast.experiments.hydra.transaction_calibration import UNLIMITED
from ordercast.experiments.hydra.transaction_runs import ERIS, GRANOLA, LOCK_STORE, transact
from ordercast.experiments.published import published

EXECUTIONS = (2.0, 3.0, 4.0, 5.0)
LIMITS = (160.0, 200.0, 240.0, 280.0)
"""Bytes in the time of a packet."""
SEEDS = (0, 1)
MESSAGES = 2_000


def peak(system: str, execution: float, limit: float = UNLIMITED) -> float:
    """The maximum throughput of a system."""
    found = [
        transact(
            system=system,
            packet_ns=PUBLISHED.packet_ns,
            link_us=PUBLISHED.link_us,
            seed=seed,
            messages=MESSAGES,
            execution=execution,
            limit=limit,
        ).numbers[PEAK]
        for seed in SEEDS
    ]
    return median(found)


def crossing(values: Sequence[float], ratios: Sequence[float], wanted: float) -> float:
    """The value at which the ratio is the wanted one; ratios rise or fall all the way."""
    pairs = sorted(zip(ratios, values, strict=True))
    found, at = [ratio for ratio, _ in pairs], [value for _, value in pairs]
    if not found[0] <= wanted <= found[-1]:
        raise SystemExit(f"{wanted:.3f} is not among the ratios {np.round(found, 3)}")
    return float(np.interp(wanted, found, at))


def main() -> None:
    """Fit, and print what was measured on the way."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        granola = list(pool.map(peak, [GRANOLA] * len(EXECUTIONS), EXECUTIONS))
        lock_store = list(pool.map(peak, [LOCK_STORE] * len(EXECUTIONS), EXECUTIONS))
        ratios = [one / other for one, other in zip(granola, lock_store, strict=True)]
        wanted = published("baseline.granola_vs_lockstore")
        execution = crossing(EXECUTIONS, ratios, wanted)
        print(f"Granola / Lock-Store {np.round(ratios, 3)} at executions of {EXECUTIONS} packets")
        print(f"{wanted:.3f} at {execution:.2f} packets")
        base = peak(GRANOLA, execution)
        eris = list(pool.map(peak, [ERIS] * len(LIMITS), [execution] * len(LIMITS), LIMITS))
    ratios, wanted = [one / base for one in eris], published("baseline.eris_vs_granola")
    print(f"Eris / Granola {np.round(ratios, 3)} with limits of {LIMITS} bytes a packet")
    print(f"{wanted:.3f} at {crossing(LIMITS, ratios, wanted):.0f} bytes a packet")


if __name__ == "__main__":
    main()

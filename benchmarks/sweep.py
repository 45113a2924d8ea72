"""Measures a sweep on two cores of Spark against the same runs in one plain Python process.

Each run takes about a second: it is simulated, judged event by event, summed up, and its trace written as
Parquet, on both sides. The plain side does that in a loop. Spark's side is the whole of `run_sweep`: the
tables, the manifests and the check sums too. Only Spark's start and tiny sweeps that wake its workers are
left out.

`ratio` is Spark's time over the plain time; with two cores it cannot be below 0.5. `--require` makes a larger
one an error. Both sides alternate, and the ratio is the median over the rounds. Both cores must be
free: whoever else computes takes one from Spark's side and none from the plain one. `load_before` tells.

    python -m benchmarks.sweep [--runs N] [--messages N] [--rounds N] [--require RATIO] [--json]
"""

import argparse
import gc
import json
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from ordercast.pipeline.session import running_spark
from ordercast.pipeline.sweep import outcome_of, run_sweep
from ordercast.pipeline.sweep_file import Sweep, load_sweep
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import simulate

CORES = 2

SWEEP = """\
seeds = "0:{runs}"
[scenario]
protocol = "atomic_multicast"
senders = 3
network.latency = {{ kind = "uniform", low_us = 50, high_us = 500 }}
network.loss = 0.005
workload.messages = {messages}
workload.rate_per_s = 2000
"""


def sweep_of(folder: Path, runs: int, messages: int) -> Sweep:
    path = folder / f"sweep-{runs}-{messages}.toml"
    path.write_text(SWEEP.format(runs=runs, messages=messages))
    return load_sweep(path)


def run_plainly(sweep: Sweep, out: Path) -> float:
    """Seconds that one process takes for all runs, one after the other."""
    gc.collect()
    start = time.perf_counter()
    for row in sweep.rows:
        run = simulate(msgspec.json.decode(row.scenario, type=Scenario))
        run.summary()
        run.write(out)
    return time.perf_counter() - start


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--messages", type=int, default=7_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--require", type=float, default=None, metavar="RATIO")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    plain_s: list[float] = []
    spark_s: list[float] = []
    with (
        tempfile.TemporaryDirectory() as name,
        running_spark(f"local[{CORES}]", "ordercast sweep benchmark") as spark,
    ):
        folder = Path(name)
        for messages in (50, 51):
            run_sweep(spark, sweep_of(folder, 4 * CORES, messages), folder / f"warm-up-{messages}")
        sweep = sweep_of(folder, options.runs, options.messages)
        for round_ in range(options.rounds):
            plain_s.append(run_plainly(sweep, folder / f"plain-{round_}"))
            start = time.perf_counter()
            tables = run_sweep(spark, sweep, folder / f"spark-{round_}")
            spark_s.append(time.perf_counter() - start)
            kept = outcome_of(tables).count("kept")
            if kept != options.runs:
                raise SystemExit(f"Spark's side kept its promises in {kept} of {options.runs} runs")
    ratios = [ours / plain for ours, plain in zip(spark_s, plain_s, strict=True)]
    result = {
        "runs": options.runs,
        "cores": CORES,
        "load_before": round(load_before, 1),
        "plain_run_s": round(median(plain_s) / options.runs, 2),
        "plain_s": [round(seconds, 1) for seconds in plain_s],
        "spark_s": [round(seconds, 1) for seconds in spark_s],
        "ratio_by_round": [round(ratio, 3) for ratio in ratios],
        "ratio": round(median(ratios), 3),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:<20}{value}" for name, value in result.items()))
    if options.require is not None and median(ratios) > options.require:
        raise SystemExit(f"the ratio should be at most {options.require}")


if __name__ == "__main__":
    main()

"""Verification on Spark against DuckDB, on the same Parquet files, in the same run.

Large traces (`benchmarks/traces.py`) of one run, and of as many events spread over ten, at two sizes. Spark
judges all promises of every run: clocks, lifecycle, integrity, stamps, order over all nodes, FIFO,
agreement, validity. DuckDB, on the same two cores, answers with its best queries for three of them:
duplicates and agreement in one aggregation, and order against a reference node by a join and a window. Both
are warm, and take turns; the figure is the median of the rounds.

    python -m benchmarks.verify [--deliveries N] [--rounds N] [--folder DIR] [--json]
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from benchmarks.memory import watched_memory
from benchmarks.traces import RECEIVERS, write_trace
from ordercast.pipeline.session import running_spark
from ordercast.pipeline.traces import traces
from ordercast.pipeline.verify import verify

RUNS = 10
CORES = 2

_DELIVERED = "select run, node, message, position from read_parquet('{files}') where kind = 'deliver'"
DUPLICATES_AND_AGREEMENT = f"""
    select count(*) from (
        select run, message from ({_DELIVERED})
        group by run, message
        having count(*) <> {RECEIVERS} or bit_or(1 << node) <> {(1 << RECEIVERS) - 1}
    )
"""
ORDER = f"""
    with delivered as ({_DELIVERED}),
    reference as (select run, message, position as place from delivered where node = 0)
    select count(*) from (
        select place, lag(place) over (partition by delivered.run, node order by delivered.position) as before
        from delivered join reference using (run, message)
    ) where place <= before
"""


def make_traces(folder: Path, deliveries: int, runs: int) -> Path:
    """A folder of runs with so many deliveries together; made once."""
    target = folder / f"{deliveries}-in-{runs}"
    for seed in range(runs):
        if not (target / f"run-{seed}").exists():
            write_trace(target, f"run-{seed}", deliveries // runs, seed)
    return target


def time_spark(spark: SparkSession, folder: Path, runs: int, deliveries: int) -> float:
    """Seconds to judge a folder."""
    start = time.perf_counter()
    verdicts = verify(traces(spark, folder)).collect()
    elapsed = time.perf_counter() - start
    judged = sum(row["deliveries"] for row in verdicts)
    wrong = [row for row in verdicts if row["findings"] or row["error"]]
    if len(verdicts) != runs or judged != deliveries or wrong:
        raise SystemExit(f"a wrong verdict: {wrong or verdicts}")
    return elapsed


def time_duckdb(folder: Path) -> float:
    """Seconds for DuckDB's answers, in a process of its own: its memory is not ours."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(ask_duckdb, folder).result()


def ask_duckdb(folder: Path) -> float:
    """Seconds for the queries, without the start of the database."""
    with duckdb.connect() as database:
        database.execute(f"set threads = {CORES}; set enable_progress_bar = false")
        elapsed = 0.0
        for _ in range(2):  # the first round warms up
            start = time.perf_counter()
            for query in (DUPLICATES_AND_AGREEMENT, ORDER):
                found = database.execute(query.format(files=folder / "*" / "events.parquet")).fetchone()
                if found != (0,):
                    raise SystemExit(f"DuckDB found {found}")
            elapsed = time.perf_counter() - start
        return elapsed


def measure(spark: SparkSession, folder: Path, deliveries: int, runs: int, rounds: int) -> dict[str, Any]:
    """One folder, both sides in turn."""
    target = make_traces(folder, deliveries, runs)
    with watched_memory() as peak:  # not while it is timed: to look at memory takes time too
        for _ in range(2):
            time_spark(spark, target, runs, deliveries)
    pairs = [(time_spark(spark, target, runs, deliveries), time_duckdb(target)) for _ in range(rounds)]
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    return {
        "deliveries": deliveries,
        "runs": runs,
        "spark_s": round(ours, 2),
        "duckdb_s": round(theirs, 2),
        "ratio_to_duckdb": round(median(one / other for one, other in pairs), 2),
        "deliveries_per_s": round(deliveries / ours),
        "peak_gib": round(peak.bytes / 2**30, 2),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--deliveries", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, help="keep the traces here (1 GB), and use those that are there"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        for runs in (1, RUNS):
            for deliveries in (options.deliveries // 10, options.deliveries):
                make_traces(folder, deliveries, runs)
        with running_spark(f"local[{CORES}]", "verification benchmark") as spark:
            cases = [
                measure(spark, folder, deliveries, runs, options.rounds)
                for runs in (1, RUNS)
                for deliveries in (options.deliveries // 10, options.deliveries)
            ]
    result = {
        "cases": cases,
        "growth_one_run": round(cases[1]["spark_s"] / cases[0]["spark_s"] / 10, 2),
        "growth_many_runs": round(cases[3]["spark_s"] / cases[2]["spark_s"] / 10, 2),
        "peak_gib": max(case["peak_gib"] for case in cases),
    }
    if options.json:
        print(json.dumps(result))
        return
    for case in cases:
        print("  ".join(f"{name} {value}" for name, value in case.items()))
    for name in ("growth_one_run", "growth_many_runs", "peak_gib"):
        print(f"{name:<20}{result[name]}")


if __name__ == "__main__":
    main()

"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

from collections.abc import Mapping, Sequence
from statistics import median

from rich.table import Table

import benchmarks.transactions
from benchmarks.services.turns import Comparison, figures_table, ratios
from benchmarks.transactions.contender import Contender, Figures
from benchmarks.transactions.etcd_transactions import EtcdTransactions
from benchmarks.transactions.ours import TRANSACTIONAL, Ours
from benchmarks.transactions.redis_script import RedisScript
from benchmarks.transactions.store import MAIN, WORKLOADS

TASKS = 64
SUBJECT = "hydra_txn"
RATE = "transactions_per_s"
Measured = dict[str, dict[str, list[Figures]]]
"""The figures of each contender, by workload."""


def contenders() -> list[Contender]:
    """All that could take part, in the order of their turns."""
    ours = [Ours(protocol) for protocol in TRANSACTIONAL]
    ours += [Ours(SUBJECT, f"{SUBJECT}_one_shard", shards=1), Ours("hydra_paxos", shards=1)]
    return [*ours, EtcdTransactions(in_memory=True), EtcdTransactions(in_memory=False), RedisScript()]


def middle(rounds: Sequence[Figures]) -> dict[str, float]:
    """The medians of some rounds; violations are added up."""
    return {
        RATE: median(one.transactions_per_s for one in rounds),
        "p50_us": median(one.p50_us for one in rounds),
        "p99_us": median(one.p99_us for one in rounds),
        "aborted": median(one.aborted for one in rounds),
        "violations": sum(one.violations for one in rounds),
    }


def report(measured: Measured, absent: Mapping[str, str]) -> dict[str, object]:
    """All figures, for programs; those of single keys stand before the other workloads."""
    by_workload = {
        workload: {name: middle(found[workload]) for name, found in measured.items() if found[workload]}
        for workload in WORKLOADS
    }
    others = [workload for workload in WORKLOADS if workload != MAIN]
    return {
        "contenders": {
            name: {
                **by_workload[MAIN].get(name, {}),
                "tasks": TASKS,
                **{workload: by_workload[workload].get(name) for workload in others},
            }
            for name in measured
            if any(measured[name].values())
        },
        "ratios": {
            f"{SUBJECT}_to{'' if workload == MAIN else f'_with_{workload}'}": ratios(found, SUBJECT, RATE)
            for workload, found in by_workload.items()
        },
        "absent": dict(absent),
    }


def table_of(measured: Measured) -> Table:
    """All figures, for people."""
    figures = {RATE: "1/s", "p50_us": "p50 us", "p99_us": "p99 us", "aborted": "aborted"}
    return figures_table(measured, {workload: workload for workload in WORKLOADS}, figures, middle)


def main() -> None:
    """Measure and print."""
    Comparison(
        "benchmarks.transactions",
        benchmarks.transactions.__doc__,
        contenders(),
        tuple(WORKLOADS),
        lambda contender, workload, seconds, folder: contender.measure(workload, TASKS, seconds, folder),
        lambda workload, found: f"{workload}: {found.transactions_per_s:,.0f}/s, p50 {found.p50_us:,.0f} us",
        report,
        table_of,
        200,
    ).run(3.0)


if __name__ == "__main__":
    main()

"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import benchmarks.transactions
from benchmarks.services.__main__ import ratios
from benchmarks.services.contender import MeasureError
from benchmarks.services.turns import in_turns, parser_of, present
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


def attempt(contender: Contender, workload: str, seconds: float, console: Console) -> Figures | None:
    """One measurement in a folder of its own; a failure is told and is not the end."""
    with tempfile.TemporaryDirectory(prefix="ordercast-transactions-", ignore_cleanup_errors=True) as folder:
        try:
            found = contender.measure(workload, TASKS, seconds, Path(folder))
        except (MeasureError, OSError, TimeoutError) as error:
            console.print(f"{contender.name}, {workload}: {type(error).__name__}: {error}", markup=False)
            return None
    told = f"{found.transactions_per_s:,.0f}/s, p50 {found.p50_us:,.0f} us"
    console.print(f"{contender.name}, {workload}: {told}", markup=False)
    return found


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
    columns = [
        f"{workload}: {one}" for workload in WORKLOADS for one in ("1/s", "p50 us", "p99 us", "aborted")
    ]
    table = Table("contender", *columns, "violations")
    for name, found in measured.items():
        cells, wrong = [], 0.0
        for workload in WORKLOADS:
            taken = middle(found[workload]) if found[workload] else {}
            wrong += taken.get("violations", 0)
            for key in (RATE, "p50_us", "p99_us", "aborted"):
                cells.append(f"{taken[key]:,.0f}" if taken else "-")
        table.add_row(name, *cells, f"{wrong:.0f}")
    return table


def main() -> None:
    """Measure and print."""
    everybody = contenders()
    parser = parser_of("python -m benchmarks.transactions", benchmarks.transactions.__doc__, everybody, 3.0)
    chosen = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    here, absent = present(everybody, chosen.only, console)
    measured = in_turns(
        here,
        list(WORKLOADS),
        chosen.rounds,
        lambda contender, workload: attempt(contender, workload, chosen.seconds, console),
    )
    if chosen.json:
        print(json.dumps(report(measured, absent), indent=2))
    else:
        Console(highlight=False, width=200).print(table_of(measured))


if __name__ == "__main__":
    main()

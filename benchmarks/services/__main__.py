"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import benchmarks.services
from benchmarks.services.bare_chain import BareChain
from benchmarks.services.contender import Contender, Figures, MeasureError
from benchmarks.services.etcd import Etcd
from benchmarks.services.nopaxos_cpp import NopaxosCpp
from benchmarks.services.ours import COMPACT, DURABLE, EMBEDDED, protocols_that_serve
from benchmarks.services.pysyncobj_map import PySyncObjMap
from benchmarks.services.redis_wait import RedisWait
from benchmarks.services.turns import in_turns, parser_of, present

MANY, ONE = 64, 1
SUBJECT = "hydra_paxos"
Measured = dict[str, dict[int, list[Figures]]]
"""The figures of each contender, by the number of tasks."""


def contenders() -> list[Contender]:
    """All that could take part, in the order of their turns."""
    others = (Etcd(in_memory=False), Etcd(in_memory=True), RedisWait(), PySyncObjMap(), NopaxosCpp())
    return [*protocols_that_serve(), *others, BareChain()]


def attempt(contender: Contender, tasks: int, seconds: float, console: Console) -> Figures | None:
    """One measurement in a folder of its own; a failure is told and is not the end."""
    with tempfile.TemporaryDirectory(prefix="ordercast-services-", ignore_cleanup_errors=True) as folder:
        try:
            found = contender.measure(tasks, seconds, Path(folder))
        except (MeasureError, OSError, TimeoutError) as error:
            console.print(f"{contender.name}, {tasks} tasks: {type(error).__name__}: {error}", markup=False)
            return None
    told = f"{found.operations_per_s:,.0f}/s, p50 {found.p50_us:,.0f} us"
    console.print(f"{contender.name}, {tasks} tasks: {told}", markup=False)
    return found


def middle(rounds: Sequence[Figures]) -> dict[str, float]:
    """The medians of some rounds; violations are added up."""
    return {
        "operations_per_s": median(one.operations_per_s for one in rounds),
        "p50_us": median(one.p50_us for one in rounds),
        "p99_us": median(one.p99_us for one in rounds),
        "violations": sum(one.violations for one in rounds),
    }


def ratios(
    found: Mapping[str, Mapping[str, float]], name: str = SUBJECT, key: str = "operations_per_s"
) -> dict[str, float]:
    """How many times as many operations the subject answers as each of the others."""
    subject = found.get(name)
    if subject is None:
        return {}
    rate = subject[key]
    return {other: round(rate / one[key], 3) for other, one in found.items() if other != name}


def report(measured: Measured, absent: Mapping[str, str]) -> dict[str, object]:
    """All figures, for programs."""
    many = {name: middle(found[MANY]) for name, found in measured.items() if found[MANY]}
    one = {name: middle(found[ONE]) for name, found in measured.items() if found[ONE]}
    everybody = sorted({*many, *one})
    return {
        "contenders": {
            name: {**many.get(name, {}), "tasks": MANY, "one_task": one.get(name)} for name in everybody
        },
        "ratios": {
            "hydra_paxos_to": ratios(many),
            "hydra_paxos_to_with_one_task": ratios(one),
            "hydra_paxos_durable_to": ratios(many, DURABLE),
            "hydra_paxos_compact_to": ratios(many, COMPACT),
            "hydra_paxos_embedded_to": ratios(many, EMBEDDED),
            "hydra_paxos_embedded_to_with_one_task": ratios(one, EMBEDDED),
        },
        "absent": dict(absent),
    }


def table_of(measured: Measured) -> Table:
    """All figures, for people."""
    figures = ("operations/s", "p50 us", "p99 us")
    columns = [f"{tasks}: {one}" for tasks in (f"{MANY} tasks", "one task") for one in figures]
    table = Table("contender", *columns, "violations")
    for name, found in measured.items():
        cells, wrong = [], 0.0
        for tasks in (MANY, ONE):
            taken = middle(found[tasks]) if found[tasks] else {}
            wrong += taken.get("violations", 0)
            for key in ("operations_per_s", "p50_us", "p99_us"):
                cells.append(f"{taken[key]:,.0f}" if taken else "-")
        table.add_row(name, *cells, f"{wrong:.0f}")
    return table


def main() -> None:
    """Measure and print."""
    everybody = contenders()
    parser = parser_of("python -m benchmarks.services", benchmarks.services.__doc__, everybody, 5.0)
    chosen = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    here, absent = present(everybody, chosen.only, console)
    measured = in_turns(
        here,
        (MANY, ONE),
        chosen.rounds,
        lambda contender, tasks: attempt(contender, tasks, chosen.seconds, console),
    )
    if chosen.json:
        print(json.dumps(report(measured, absent), indent=2))
    else:
        Console(highlight=False, width=150).print(table_of(measured))


if __name__ == "__main__":
    main()

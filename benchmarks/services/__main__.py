"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

from collections.abc import Mapping, Sequence
from statistics import median

from rich.table import Table

import benchmarks.services
from benchmarks.services.bare_chain import BareChain
from benchmarks.services.contender import Contender, Figures
from benchmarks.services.etcd import Etcd
from benchmarks.services.nopaxos_cpp import NopaxosCpp
from benchmarks.services.ours import APART, COMPACT, DURABLE, SUBJECT, protocols_that_serve
from benchmarks.services.pysyncobj_map import PySyncObjMap
from benchmarks.services.redis_wait import RedisWait
from benchmarks.services.turns import Comparison, figures_table, ratios

MANY, ONE = 64, 1
RATE = "operations_per_s"
Measured = dict[str, dict[int, list[Figures]]]
"""The figures of each contender, by the number of tasks."""


def contenders() -> list[Contender]:
    """All that could take part, in the order of their turns."""
    others = (Etcd(in_memory=False), Etcd(in_memory=True), RedisWait(), PySyncObjMap(), NopaxosCpp())
    return [*protocols_that_serve(), *others, BareChain()]


def middle(rounds: Sequence[Figures]) -> dict[str, float]:
    """The medians of some rounds; violations are added up."""
    return {
        RATE: median(one.operations_per_s for one in rounds),
        "p50_us": median(one.p50_us for one in rounds),
        "p99_us": median(one.p99_us for one in rounds),
        "violations": sum(one.violations for one in rounds),
    }


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
            "hydra_paxos_to": ratios(many, SUBJECT, RATE),
            "hydra_paxos_to_with_one_task": ratios(one, SUBJECT, RATE),
            "hydra_paxos_durable_to": ratios(many, DURABLE, RATE),
            "hydra_paxos_compact_to": ratios(many, COMPACT, RATE),
            "hydra_paxos_apart_to": ratios(many, APART, RATE),
        },
        "absent": dict(absent),
    }


def table_of(measured: Measured) -> Table:
    """All figures, for people."""
    figures = {RATE: "operations/s", "p50_us": "p50 us", "p99_us": "p99 us"}
    return figures_table(measured, {MANY: f"{MANY} tasks", ONE: "one task"}, figures, middle)


def main() -> None:
    """Measure and print."""
    Comparison(
        "benchmarks.services",
        benchmarks.services.__doc__,
        contenders(),
        (MANY, ONE),
        lambda contender, tasks, seconds, folder: contender.measure(tasks, seconds, folder),
        lambda tasks, found: f"{tasks} tasks: {found.operations_per_s:,.0f}/s, p50 {found.p50_us:,.0f} us",
        report,
        table_of,
        150,
    ).run(5.0)


if __name__ == "__main__":
    main()

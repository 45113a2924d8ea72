"""From the figures of all rounds to one table a measurement, with the ratio of ordercast to each other."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.peers.contender import Figures

BASE = "ordercast"
Rounds = Sequence[Figures | None]
"""What a contender found in each round; `None` where it failed."""


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """The median with the least and the greatest; `None` of nothing."""
    if not values:
        return None
    return {
        name: round(function(values), 1)
        for name, function in (("median", median), ("min", min), ("max", max))
    }


def summary(rounds: Rounds, base: Rounds | None) -> dict[str, Any]:
    """A contender's figures over the rounds of one measurement."""
    done = [figures for figures in rounds if figures is not None]
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(base or [], rounds, strict=False)
        if ours is not None and theirs is not None
    ]
    return {
        "rounds": len(done),
        "failed": len(rounds) - len(done),
        "ordered_per_s": spread([figures.ordered_per_s for figures in done]),
        "p50_us": spread([figures.p50_us for figures in done if figures.p50_us is not None]),
        "p99_us": spread([figures.p99_us for figures in done if figures.p99_us is not None]),
        "lost": sum(figures.lost for figures in done),
        "violations": sum(figures.violations for figures in done),
        "rate_ordercast_to_this": _ratio(
            [(ours.ordered_per_s, theirs.ordered_per_s) for ours, theirs in pairs]
        ),
        "p50_ordercast_to_this": _ratio([(ours.p50_us, theirs.p50_us) for ours, theirs in pairs]),
    }


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The median over the rounds, each compared within itself."""
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    return round(median(ratios), 2) if ratios else None


def summaries(found: Mapping[str, Mapping[str, Rounds]]) -> dict[str, dict[str, dict[str, Any]]]:
    """The summary of each contender in each measurement."""
    return {
        task: {name: summary(rounds, contenders.get(BASE)) for name, rounds in contenders.items()}
        for task, contenders in found.items()
    }


def table_for(task: str, contenders: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> Table:
    """One measurement as a table."""
    table = Table(title=task, title_justify="left")
    table.add_column("contender")
    for heading in ("ordered/s", "p50 us", "p99 us", "lost", "violations", "rate ratio", "p50 ratio"):
        table.add_column(heading, justify="right")
    for name, found in contenders.items():
        failed = f" ({found['failed']} failed)" if found["failed"] else ""
        table.add_row(
            titles[name] + failed,
            *(_range(found[figure]) for figure in ("ordered_per_s", "p50_us", "p99_us")),
            str(found["lost"]),
            str(found["violations"]),
            _times(found["rate_ordercast_to_this"]),
            _times(found["p50_ordercast_to_this"]),
        )
    return table


def _range(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    return f"{found['median']:,.0f} ({found['min']:,.0f}-{found['max']:,.0f})"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"

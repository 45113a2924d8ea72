"""What the evaluations of EpTO's figures have in common: delays over seeds, and distributions as curves."""

from collections.abc import Mapping, Sequence
from statistics import median

from ordercast.experiments.epto.latencies import STAND_IN
from ordercast.experiments.epto.runs import (
    CAUSES,
    HOLES,
    NEW_HOLES,
    NEW_PROCESSES,
    NEW_ROUNDS,
    named_holes,
)
from ordercast.experiments.experiment import Measurement, Results, Setup
from ordercast.report.figures import Axis, Curve, Figure, Point

PAPER = "EpTO (Middleware 2015)"
MEDIAN, HIGH = "p50", "p99"
SHARES = (0, 1, 2, 5, *range(10, 100, 5), 98, 99, 100)
"""The percentiles of a curve."""


def seeds(setup: Setup, quick: int = 2, full: int = 5) -> range:
    """The seeds of each point."""
    return range(quick if setup.quick else full)


def by_seed(results: Results, value: str) -> dict[int, float]:
    """A value of each seed."""
    return dict(zip((each.case.seed for each in results.all), results.values(value), strict=True))


def ratios(above: Results, below: Results, value: str = MEDIAN, other: str = "") -> dict[int, float]:
    """For each seed that both have, how many times larger a value is; of another name below, if given."""
    over, under = by_seed(above, value), by_seed(below, other or value)
    return {seed: over[seed] / under[seed] for seed in over if seed in under}


def compared(claim: str, values: Mapping[int, float], note: str = "") -> Measurement:
    """The median over seeds, and the range in the note."""
    found = sorted(values.values())
    said = f"{found[0]:.4g} to {found[-1]:.4g} over {len(found)} seeds" if len(found) > 1 else "one seed"
    return Measurement(claim=claim, value=median(found), note=f"{said}; {note}" if note else said)


def counted(claim: str, results: Results, value: str = HOLES, note: str = "") -> Measurement:
    """How many there are in all runs together; of holes, the causes and the first ones too."""
    said = [f"in {len(results.all)} runs, {sum(results.values('deliveries')):.4g} deliveries"]
    if value == HOLES:
        said += _causes(results)
    if note:
        said.append(note)
    return Measurement(claim=claim, value=sum(results.values(value)), note="; ".join(said))


def _causes(results: Results) -> list[str]:
    counts = {cause: sum(results.values(name)) for cause, name in CAUSES.items()}
    said = [f"missing: {', '.join(f'{count:.0f} {cause}' for cause, count in counts.items() if count)}"]
    new = sum(results.values(NEW_HOLES))
    if new:
        processes, rounds = sum(results.values(NEW_PROCESSES)), max(results.values(NEW_ROUNDS))
        said.append(
            f"{new:.0f} of them at {processes:.0f} newcomers, up to {rounds:.0f} rounds after they joined;"
            " not counted"
        )
    said += [named_holes(each) for each in results.all if each.values[HOLES]][:2]
    return said if any(counts.values()) else []


def typical(results: Results, value: str = MEDIAN) -> float:
    """The median over seeds."""
    return median(results.values(value))


def distribution(label: str, results: Results, prefix: str = "") -> Curve:
    """Which share of deliveries took at most so long: each percentile at its median over seeds."""
    points = (Point(typical(results, f"{prefix}p{share:02}"), share / 100) for share in SHARES)
    return Curve(label=label, points=tuple(points), marks=False)


def distributions(
    number: str, title: str, caption: str, curves: Sequence[Curve], results: Results, variant: str = ""
) -> Figure:
    """A figure of delays, as the paper has them."""
    return Figure(
        id=f"epto-{number}-{variant}" if variant else f"epto-{number}",
        title=title,
        caption=f"After Figure {number} of {PAPER}: {caption} {latencies_said(results)}",
        x=Axis(label="delivery delay (ticks)", low=0.0),
        y=Axis(label="share of deliveries", low=0.0, high=1.0),
        curves=tuple(curves),
    )


def latencies_said(results: Results) -> str:
    """Which latencies the runs had."""
    stands_in = any(each.case.parameters["model"] == STAND_IN for each in results.all)
    return f"Latencies: {'a stand-in from published figures' if stands_in else 'those of the authors'}."

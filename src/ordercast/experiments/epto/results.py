"""What the evaluations of EpTO's figures have in common: delays over seeds, and distributions as curves."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from ordercast.experiments.epto.latencies import DRAWN, MATRIX, STAND_IN
from ordercast.experiments.epto.runs import (
    AUTHORS_HOLES,
    AUTHORS_PROCESSES,
    CAUSES,
    HOLES,
    NEW_HOLES,
    NEW_PROCESSES,
    NEW_ROUNDS,
    named_holes,
)
from ordercast.experiments.epto.worlds import AUTHORS, SAID, WORLDS, World
from ordercast.experiments.experiment import Measurement, Results, Setup
from ordercast.report.figures import Axis, Curve, Figure, Point

PAPER = "EpTO (Middleware 2015)"
MEDIAN, HIGH = "p50", "p99"
SHARES = (0, 1, 2, 5, *range(10, 100, 5), 98, 99, 100)
"""The percentiles of a curve."""
TABLE = (5, 50, 95)
"""Those in the table below a figure."""
LATENCIES = {
    MATRIX: "those of the authors' nodes, where some pairs never hear each other",
    DRAWN: "those that the authors measured, drawn for each pair",
    STAND_IN: "a stand-in from published figures",
}


def seeds(setup: Setup, quick: int = 2, full: int = 5) -> range:
    """The seeds of each point."""
    return range(quick if setup.quick else full)


def by_world(results: Results) -> dict[World, Results]:
    """The runs of each world; the authors' comes first."""
    return {world: results.where(world=world) for world in WORLDS}


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
        said += [*_causes(results), *_as_authors(results)]
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


def _as_authors(results: Results) -> list[str]:
    """Holes as the authors' program counts them, where processes leave and join."""
    if not any(each.case.parameters.get("churn") for each in results.all):
        return []
    holes, processes = sum(results.values(AUTHORS_HOLES)), sum(results.values(AUTHORS_PROCESSES))
    where = f" at {processes:.0f} processes" if holes else ""
    return [f"as the authors count, newcomers too: {holes:.0f}{where}"]


def typical(results: Results, value: str = MEDIAN) -> float:
    """The median over seeds."""
    return median(results.values(value))


def distribution(label: str, results: Results, prefix: str = "") -> Curve:
    """Which share of deliveries took at most so long: each percentile at its median over seeds."""

    def at(share: int) -> float:
        return typical(results, f"{prefix}p{share:02}")

    points = tuple(Point(at(share), share / 100) for share in SHARES)
    return Curve(label=label, points=points, marks=False, numbers={f"p{share}": at(share) for share in TABLE})


def side_by_side(
    number: str, title: str, caption: str, results: Results, curves: Callable[[Results], Sequence[Curve]]
) -> tuple[Figure, ...]:
    """A figure of the paper in both worlds."""
    return tuple(
        distributions(
            number,
            f"{title}: {SAID[world]}",
            caption,
            curves(each),
            each,
            variant="" if world == AUTHORS else "random",
            beside=f"epto-{number}",
        )
        for world, each in by_world(results).items()
    )


def distributions(
    number: str,
    title: str,
    caption: str,
    curves: Sequence[Curve],
    results: Results,
    variant: str = "",
    beside: str = "",
) -> Figure:
    """A figure of delays, as the paper has them."""
    return Figure(
        id=f"epto-{number}-{variant}" if variant else f"epto-{number}",
        title=title,
        caption=f"After Figure {number} of {PAPER}: {caption} {latencies_said(results)}",
        x=Axis(label="delivery delay (ticks)", low=0.0),
        y=Axis(label="share of deliveries", low=0.0, high=1.0),
        curves=tuple(curves),
        beside=beside,
    )


def latencies_said(results: Results) -> str:
    """Which latencies the runs had."""
    models = dict.fromkeys(each.case.parameters["model"] for each in results.all)
    return f"Latencies: {'; '.join(LATENCIES[model] for model in LATENCIES if model in models)}."

"""Delays over the rate of broadcasts and over the number of processes (EpTO, section 6, Figure 7).

The paper prints of both clocks that the rate has little impact, and that 100 times as many processes less
than double the delay. Each claim is of the clock that does worse: whose ratio is further from 1. Both are
measured in the authors' world. There a delay is TTL + 1 rounds, whatever the rate is, and grows with the
logarithm of the number of processes as the TTL does.
"""

import math

import msgspec

from ordercast.experiments.epto.results import (
    by_world,
    compared,
    distribution,
    ratios,
    seeds,
    side_by_side,
    typical,
)
from ordercast.experiments.epto.runs import CLOCKS, Clock, run_case
from ordercast.experiments.epto.worlds import AUTHORS, RANDOM, WORLDS
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.report.figures import Curve

PROCESSES = 500
RATES = (0.01, 0.02, 0.05, 0.1)
SIZES = (100, 500, 1_000, 5_000, 10_000)
RATE_CLAIM, SIZE_CLAIM = "epto.rate_insensitive", "epto.scale_log"
PAPER = "EpTO (Middleware 2015), section 6"
MANY, FEW = 5_000, {AUTHORS: 2, RANDOM: 1}
"""From so many processes on, few seeds are enough: a run of 5,000 has 25 million deliveries."""


def cases_rates(setup: Setup) -> list[Case]:
    """Figure 7a."""
    rates = (RATES[0], RATES[-1]) if setup.quick else RATES
    return [
        run_case(setup, seed, world=world, processes=PROCESSES, clock=clock, rate=rate)
        for world in WORLDS
        for clock in CLOCKS
        for rate in rates
        for seed in seeds(setup)
    ]


def cases_sizes(setup: Setup) -> list[Case]:
    """Figure 7b."""
    sizes = (100, 1_000, 10_000) if setup.quick else SIZES
    return [
        run_case(setup, seed, world=world, processes=processes, clock=clock)
        for processes in sorted(sizes, reverse=True)  # those that take longest first
        for world in WORLDS
        for clock in CLOCKS
        for seed in (seeds(setup, quick=1, full=FEW[world]) if processes >= MANY else seeds(setup))
    ]


def _worse(claim: str, results: Results, parameter: str, low: float, high: float) -> Measurement:
    """Of both clocks the ratio that is further from 1."""
    by_clock: dict[Clock, dict[int, float]] = {}
    said = []
    for clock in CLOCKS:
        of_clock = results.where(clock=clock)
        above, below = of_clock.where(**{parameter: high}), of_clock.where(**{parameter: low})
        by_clock[clock] = ratios(above, below)
        said.append(f"{clock} clock: {typical(below):.0f} to {typical(above):.0f} ticks")
    measured = {clock: compared(claim, found) for clock, found in by_clock.items()}
    worse = max(CLOCKS, key=lambda clock: abs(math.log(measured[clock].value)))
    other = ", ".join(f"{clock} {each.value:.3f}" for clock, each in measured.items())
    return compared(claim, by_clock[worse], f"{'; '.join(said)}; ratios: {other}")


def _in_both(claim: str, results: Results, parameter: str, low: float, high: float) -> Measurement:
    """The ratio in the authors' world, with that of random phases in the note."""
    found = {world: _worse(claim, each, parameter, low, high) for world, each in by_world(results).items()}
    other = f"{RANDOM}: {found[RANDOM].value:.3f}, {found[RANDOM].note}"
    return msgspec.structs.replace(found[AUTHORS], note=f"{found[AUTHORS].note}; {other}")


def evaluate_rates(results: Results) -> Evaluation:
    """Delays by rate, and the ratio of the highest to the lowest."""
    caption = f"{PROCESSES} processes. Some curves overlap."
    figures = side_by_side("7a", "Delivery delay by broadcast rate", caption, results, _by_rate)
    measured = _in_both(RATE_CLAIM, results, "rate", RATES[0], RATES[-1])
    return Evaluation(measurements=(measured,), figures=figures)


def _by_rate(results: Results) -> list[Curve]:
    return [
        distribution(f"{float(rate):.0%}, {clock} clock", each)
        for clock in CLOCKS
        for rate, each in results.where(clock=clock).by("rate").items()
    ]


def evaluate_sizes(results: Results) -> Evaluation:
    """Delays by size, and the ratio of the largest to the smallest."""
    caption = "5% broadcasts; K and TTL by the lemmas for each size."
    figures = side_by_side("7b", "Delivery delay by number of processes", caption, results, _by_size)
    measured = _in_both(SIZE_CLAIM, results, "processes", SIZES[0], SIZES[-1])
    return Evaluation(measurements=(measured,), figures=figures)


def _by_size(results: Results) -> list[Curve]:
    curves: list[Curve] = []
    for clock in CLOCKS:
        by_size = results.where(clock=clock).by("processes")
        curves += (
            distribution(f"{size:,} processes, {clock} clock", by_size[size])
            for size in sorted(by_size, key=int)
        )
    return curves


EXPERIMENTS = (
    Experiment(
        name="epto-7a",
        title="More broadcasts",
        source=f"{PAPER}, Figure 7a",
        claims=(RATE_CLAIM,),
        cases=cases_rates,
        evaluate=evaluate_rates,
    ),
    Experiment(
        name="epto-7b",
        title="More processes",
        source=f"{PAPER}, Figure 7b",
        claims=(SIZE_CLAIM,),
        cases=cases_sizes,
        evaluate=evaluate_sizes,
    ),
)

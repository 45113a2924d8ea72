"""What order costs over mere spreading, and a TTL far below the lemmas' (EpTO, section 6, Figures 5 and 6).

100 processes, 5% broadcasts, global clock. *Unordered* is the time to the first ball with an event, which is
what Algorithm 1 alone delivers. It is counted in the same runs.

The claims are measured as the paper describes its runs: latencies drawn from the sample, and rounds at random
phases. Two other ways to read it are shown beside: the authors' nodes themselves as the processes,
among which absent pairs never hear each other; and rounds that all begin together and do not drift.

With random phases, an event is relayed about twice in a round's time along its fastest way, so its age runs
ahead of the time that has passed. TTL = 15 is over after some seven rounds, and TTL = 5 after two or three,
before an event has reached everybody over slow links. That is why the ratio is at the lower end of what the
paper says, and why the small TTL leaves holes here.
"""

import numpy as np

from ordercast.experiments.epto.latencies import (
    DRAWN,
    MATRIX,
    STAND_IN,
    Model,
    file_arguments,
    find_file,
    latencies_of,
)
from ordercast.experiments.epto.results import (
    HIGH,
    MEDIAN,
    PAPER,
    SHARES,
    compared,
    counted,
    distribution,
    distributions,
    latencies_said,
    ratios,
    seeds,
    typical,
)
from ordercast.experiments.epto.runs import HOLES, percentiles, run_case
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Results, Setup
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference

PROCESSES, SMALL_TTL, LARGE_TTL = 100, 5, 15
COST, SMALL = "epto.cost_of_order", "epto.small_ttl"


def latency_percentiles(*, model: Model, file: str, digest: str, seed: int) -> dict[str, float]:
    """Figure 5: the latencies themselves."""
    return percentiles(np.bincount(latencies_of(model, file, digest).values))


def cases(setup: Setup) -> list[Case]:
    """As described, and read in two other ways."""
    file = find_file(setup.data)
    shown = Case(
        parameters={"model": DRAWN if file else STAND_IN},
        seed=0,
        function="ordercast.experiments.epto.cost:latency_percentiles",
        arguments=file_arguments(file),
    )
    found = [shown]
    for seed in seeds(setup, quick=3, full=10):
        for ttl in (0, SMALL_TTL):
            found.append(run_case(setup, seed, processes=PROCESSES, ttl=ttl))
            found.append(run_case(setup, seed, processes=PROCESSES, ttl=ttl, in_step=True))
            if file:
                found.append(run_case(setup, seed, processes=PROCESSES, ttl=ttl, model=MATRIX))
    return found


def runs(results: Results) -> dict[str, Results]:
    """The runs by the way in which the paper is read."""
    of_pairs = Results(
        each
        for each in results.all
        if "ttl" in each.case.parameters and each.case.parameters["model"] != MATRIX
    )
    readings = {
        "as described": of_pairs.where(in_step=False),
        "the authors' nodes": results.where(model=MATRIX, in_step=False),
        "rounds in step": of_pairs.where(in_step=True),
    }
    return {name: each for name, each in readings.items() if each.all}


def evaluate(results: Results) -> Evaluation:
    """The ratio of the tails, holes with a small TTL, and both figures."""
    readings = runs(results)
    cost, holes = [], []
    for name, each in readings.items():
        large, small = each.where(ttl=0), each.where(ttl=SMALL_TTL)
        tail = typical(large, HIGH) / typical(large, f"first_{HIGH}")
        middle = typical(large, MEDIAN) / typical(large, f"first_{MEDIAN}")
        cost.append(f"{name} {tail:.2f} (medians {middle:.2f})")
        holes.append(f"{name} {sum(small.values(HOLES)):.0f} of {sum(small.values('deliveries')):.0f}")
    main = readings["as described"]
    large, small = main.where(ttl=0), main.where(ttl=SMALL_TTL)
    measured = (
        compared(COST, ratios(large, large, HIGH, f"first_{HIGH}"), f"by reading: {', '.join(cost)}"),
        counted(SMALL, small, note=f"by reading: {', '.join(holes)}"),
    )
    return Evaluation(measurements=measured, figures=(_figure_5(results), *_figures_6(readings)))


def _figure_5(results: Results) -> Figure:
    from ordercast.engines.epto.latencies import LONGEST, PERCENTILES

    (shown,) = (each for each in results.all if "ttl" not in each.case.parameters)
    points = tuple(Point(shown.values[f"p{share:02}"], share / 100) for share in SHARES)
    return Figure(
        id="epto-5",
        title="Latencies between processes",
        caption=f"After Figure 5 of {PAPER}. {latencies_said(results)}",
        x=Axis(label="latency (ticks)", low=0.0, high=LONGEST),
        y=Axis(label="share of pairs", low=0.0, high=1.0),
        curves=(Curve(label="used here", points=points, marks=False),),
        references=tuple(
            Reference(label=f"printed: {share:.0%}", x=ticks, y=share) for share, ticks in PERCENTILES
        ),
    )


def _figures_6(readings: dict[str, Results]) -> list[Figure]:
    figures = []
    for number, (name, each) in enumerate(readings.items()):
        large, small = each.where(ttl=0), each.where(ttl=SMALL_TTL)
        curves = (
            distribution("unordered", large, "first_"),
            distribution(f"TTL = {SMALL_TTL}", small),
            distribution(f"TTL = {LARGE_TTL}", large),
        )
        caption = f"{PROCESSES} processes, 5% broadcasts, global clock; {name}."
        variant = "abc"[number]
        figures.append(distributions("6", f"The cost of order: {name}", caption, curves, each, variant))
    return figures


EXPERIMENTS = (
    Experiment(
        name="epto-6",
        title="The cost of order",
        source=f"{PAPER}, section 6, Figures 5 and 6",
        claims=(COST, SMALL),
        cases=cases,
        evaluate=evaluate,
    ),
)

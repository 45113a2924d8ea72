"""What order costs over mere spreading, and a TTL far below the lemmas' (EpTO, section 6, Figures 5 and 6).

100 processes, 5% broadcasts, global clock. *Unordered* is what Algorithm 1 alone delivers, counted in the
same runs: in the authors' world in the round in which a process first relays an event, with random phases
when its first ball arrives.

With rounds together, an event is relayed about once in a round's time, and TTL = 15 is over after 13 to 15
rounds, or after 16 to 18 if rounds come before the balls that arrive in their tick (see `worlds.py`). With
random phases it is relayed about twice along its fastest way, so its age runs ahead of the time that has
passed: TTL = 15 is over after some seven rounds, and TTL = 5 after two or three, before an event has reached
everybody over slow links. That is why order costs less there, and why the small TTL leaves holes.
"""

import numpy as np

from ordercast.experiments.epto.latencies import (
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
    TABLE,
    compared,
    counted,
    distribution,
    distributions,
    latencies_said,
    ratios,
    seeds,
    side_by_side,
    typical,
)
from ordercast.experiments.epto.runs import HOLES, percentiles, run_case
from ordercast.experiments.epto.worlds import AUTHORS, RANDOM, World
from ordercast.experiments.experiment import Case, CaseResult, Evaluation, Experiment, Results, Setup
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference

PROCESSES, SMALL_TTL, LARGE_TTL = 100, 5, 15
COST, SMALL = "epto.cost_of_order", "epto.small_ttl"
READINGS: dict[str, tuple[World, bool]] = {
    "authors": (AUTHORS, False),
    "random phases": (RANDOM, False),
    "authors, rounds before balls of their tick": (AUTHORS, True),
}
ALL_PAIRS, FIRST_PAIRS = "all_", "first_"
ABSENT_SHARE = "absent_share"


def latency_percentiles(*, model: Model, file: str, digest: str, seed: int) -> dict[str, float]:
    """Figure 5: the latencies themselves, of all pairs and of those in Figure 6."""
    latencies = latencies_of(model, file, digest)
    found = percentiles(np.bincount(latencies.values), ALL_PAIRS)
    if not latencies.matrix.size:
        return found
    first = latencies.matrix[:PROCESSES, :PROCESSES]
    pairs = first[~np.eye(len(first), dtype=bool)]
    measured = pairs[pairs > 0]
    found |= percentiles(np.bincount(measured), FIRST_PAIRS)
    return found | {ABSENT_SHARE: 1 - measured.size / pairs.size}


def cases(setup: Setup) -> list[Case]:
    """Both TTLs in both worlds, with ties either way in that of the authors; and the latencies."""
    file = find_file(setup.data)
    shown = Case(
        parameters={"model": MATRIX if file else STAND_IN},
        seed=0,
        function="ordercast.experiments.epto.cost:latency_percentiles",
        arguments=file_arguments(file),
    )
    return [
        shown,
        *(
            run_case(setup, seed, world=world, processes=PROCESSES, ttl=ttl, rounds_first=rounds_first)
            for seed in seeds(setup, quick=3, full=10)
            for world, rounds_first in READINGS.values()
            for ttl in (0, SMALL_TTL)
        ),
    ]


def evaluate(results: Results) -> Evaluation:
    """The ratio of the tails, holes with a small TTL, and both figures."""
    (shown,) = (each for each in results.all if "ttl" not in each.case.parameters)
    runs = Results(each for each in results.all if each is not shown)
    cost, holes = [], []
    for reading, (world, rounds_first) in READINGS.items():
        each = runs.where(world=world, rounds_first=rounds_first)
        large, small = each.where(ttl=0), each.where(ttl=SMALL_TTL)
        middle = typical(large, MEDIAN) / typical(large, f"first_{MEDIAN}")
        cost.append(
            f"{reading}: {typical(large, HIGH):.0f} over {typical(large, f'first_{HIGH}'):.0f} ticks"
            f" (medians {middle:.2f})"
        )
        holes.append(f"{reading}: {sum(small.values(HOLES)):.0f} of {sum(small.values('deliveries')):.0f}")
    main = runs.where(world=AUTHORS, rounds_first=False)
    large, small = main.where(ttl=0), main.where(ttl=SMALL_TTL)
    measured = (
        compared(COST, ratios(large, large, HIGH, f"first_{HIGH}"), "; ".join(cost)),
        counted(SMALL, small, note="; ".join(holes)),
    )
    caption = f"{PROCESSES} processes, 5% broadcasts, global clock."
    figures = side_by_side("6", "The cost of order", caption, runs.where(rounds_first=False), _curves)
    ties = distributions(
        "6",
        "The cost of order: the authors' world, with rounds before the balls that arrive in their tick",
        caption,
        _curves(runs.where(rounds_first=True)),
        runs.where(rounds_first=True),
        variant="ties",
        beside=figures[0].beside,
    )
    return Evaluation(measurements=measured, figures=(_figure_5(shown, results), *figures, ties))


def _curves(results: Results) -> list[Curve]:
    large, small = results.where(ttl=0), results.where(ttl=SMALL_TTL)
    return [
        distribution("unordered", large, "first_"),
        distribution(f"TTL = {SMALL_TTL}", small),
        distribution(f"TTL = {LARGE_TTL}", large),
    ]


def _figure_5(shown: CaseResult, results: Results) -> Figure:
    from ordercast.engines.epto.latencies import LONGEST, PERCENTILES

    curves, caption = [_latencies("all pairs", shown, ALL_PAIRS)], ""
    if ABSENT_SHARE in shown.values:
        curves.append(_latencies(f"pairs of the first {PROCESSES} nodes", shown, FIRST_PAIRS))
        caption = (
            f" Of the pairs of the first {PROCESSES} nodes, which are the processes of Figure 6,"
            f" {shown.values[ABSENT_SHARE]:.1%} have no measurement and never hear each other."
        )
    return Figure(
        id="epto-5",
        title="Latencies between processes",
        caption=f"After Figure 5 of {PAPER}. {latencies_said(results)}{caption}",
        x=Axis(label="latency (ticks)", low=0.0, high=LONGEST),
        y=Axis(label="share of pairs", low=0.0, high=1.0),
        curves=tuple(curves),
        references=tuple(
            Reference(label=f"printed: {share:.0%}", x=ticks, y=share) for share, ticks in PERCENTILES
        ),
    )


def _latencies(label: str, shown: CaseResult, prefix: str) -> Curve:
    points = tuple(Point(shown.values[f"{prefix}p{share:02}"], share / 100) for share in SHARES)
    numbers = {f"p{share}": shown.values[f"{prefix}p{share:02}"] for share in TABLE}
    return Curve(label=label, points=points, marks=False, numbers=numbers)


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

"""The bounds on holes, and how many there are (EpTO, section 4.2, Figure 3).

Figure 3 has upper bounds for the probability that an event that arrives c n log2(n) times is missing: at a
given process (3a), and anywhere (3b). To see holes at all, K and TTL must be far below the lemmas'. Here K is
two or three, and TTL is the smallest with which an event arrives so often on average. The model is that of
section 4: rounds in step, and balls that arrive before the next round. The more often an event arrives and
the more processes there are, the rarer are holes; so not all is tried at all sizes.

What is counted is what the bound speaks of: events that in fact arrived at least c n log2(n) times, and are
missing. They are set against all events. Events of one run share their balls, so confidence comes from the
differences between runs, which share nothing. Where the bound itself allows fewer than 30 holes in all runs
together, too few could be seen to say anything, and nothing is said.

Some of this was settled after first looks. They had c = 2, of which a single hole was seen where the bound
allows less than one, which made a ratio of 1.34; bounds of 1, which nothing can break; and events so dense
that those of a run were missed together, which left the confidence too wide to tell.
"""

import math
from statistics import fmean, stdev

import numpy as np

from ordercast.experiments.epto.results import seeds
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.protocols.epto.bounds import expected_balls, figure_3
from ordercast.report.figures import Axis, Curve, Figure, Point

CLAIM = "epto.bound"
SIZES = (100, 1_000, 10_000)
DRAWN_SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
LARGEST = SIZES[-1]
FANOUTS = (2, 3)
OBSERVED_C = (0.5, 1.0, 1.5)
PRINTED_C = (1.0, 2.0, 3.0)
EVENTS, EVENTS_QUICK = 2_000, 500
"""Of a run, about; fewer of the largest size where it must be quick."""
HOLES_MIN = 30
EVENTS_A_ROUND = 5
"""Few, at all sizes: events under way together share their balls, and who misses one misses many."""
CONFIDENCE = 2.326
"""Standard errors: 99%, to one side."""
AT_PROCESS, ANYWHERE = "at_process", "anywhere"
PAPER = "EpTO (Middleware 2015)"


def wanted_balls(processes: int, c: float) -> int:
    """How often an event arrives, in Figure 3."""
    return math.ceil(c * processes * math.log2(processes))


def lowered_ttl(processes: int, fanout: int, c: float) -> int:
    """The smallest TTL with which events arrive so often on average."""
    ttl = 1
    while expected_balls(processes, fanout, ttl) < wanted_balls(processes, c):
        ttl += 1
    return ttl


def measure(*, processes: int, fanout: int, c: float, seed: int, events: int = EVENTS) -> dict[str, float]:
    """Which share of events arrived often enough and is still missing: at a process, and anywhere."""
    from ordercast.engines.epto import run as engine
    from ordercast.engines.epto.network import Latencies
    from ordercast.engines.epto.setup import Setup as Asked

    asked = Asked(
        processes=processes,
        fanout=fanout,
        ttl=lowered_ttl(processes, fanout, c),
        round_ticks=2,
        drift=0.0,
        rate=EVENTS_A_ROUND / processes,
        rounds=events // EVENTS_A_ROUND,
        in_step=True,
        seed=seed,
    )
    outcome = engine.run(asked, Latencies.constant(1), balls=True, cores=1)
    count = len(outcome.events)
    enough = outcome.balls >= wanted_balls(processes, c)
    missing = np.bincount(outcome.missing.rows[:, 1], minlength=count)
    return {
        AT_PROCESS: float(missing[enough].sum()) / (count * (processes - 1)),
        ANYWHERE: float(np.count_nonzero(missing[enough])) / count,
        "enough": float(np.count_nonzero(enough)) / count,
        "balls": float(outcome.balls.mean()),
        "holes": float(outcome.missing.count),
        "came_too_late": float(np.count_nonzero(outcome.missing.rows[:, 2] >= 0)),
        "events": float(count),
        "ttl": float(asked.ttl),
    }


def cases(setup: Setup) -> list[Case]:
    """Three sizes, two fanouts, events that arrive more and less often, as far as holes can be seen."""
    points = [(processes, fanout, c) for processes in SIZES for fanout in FANOUTS for c in OBSERVED_C]
    return [
        Case(
            parameters={"processes": processes, "fanout": fanout, "c": c},
            seed=seed,
            function="ordercast.experiments.epto.bounds:measure",
            weight=processes,
            arguments={"events": EVENTS_QUICK if setup.quick and processes == LARGEST else EVENTS},
        )
        for processes, fanout, c in reversed(points)  # those that take longest first
        if (processes < LARGEST or fanout == FANOUTS[0]) and (processes == SIZES[0] or c <= 1)
        for seed in (seeds(setup, 4, 10) if processes == LARGEST else seeds(setup, 8, 20))
    ]


def interval(shares: list[float]) -> Point:
    """The mean over runs and its band of confidence; the place is not set."""
    mean = fmean(shares)
    error = CONFIDENCE * stdev(shares) / math.sqrt(len(shares))
    return Point(0.0, mean, max(0.0, mean - error), min(1.0, mean + error))


def evaluate(results: Results) -> Evaluation:
    """The largest share of the bound that was seen, and both figures."""
    worst, where, compared = 0.0, "", 0
    for (processes, fanout, c), each in _points(results).items():
        bound, events = figure_3(processes, c), sum(each.values("events"))
        kinds = ((AT_PROCESS, bound.at_process, events * (processes - 1)), (ANYWHERE, bound.anywhere, events))
        for name, limit, chances in kinds:
            if limit >= 1 or limit * chances < HOLES_MIN:  # it rules out nothing, or nothing that shows
                continue
            compared += 1
            share = interval(each.values(name))
            if (share.high or 0.0) / limit >= worst:
                worst = (share.high or 0.0) / limit
                where = (
                    f"{name.replace('_', ' ')} with n = {processes:,}, K = {fanout} and c = {c:g}:"
                    f" {share.y:.3g} measured, at most {share.high:.3g}; the bound is {limit:.3g}"
                )
    events, holes = sum(results.values("events")), sum(results.values("holes"))
    note = (
        f"the worst of {compared}: {where}; {holes:.0f} holes, of {events:.0f} events at all processes, in"
        f" {len(results.all)} runs"
    )
    figures = (
        _figure(results, "3a", AT_PROCESS, "A hole at a given process"),
        _figure(results, "3b", ANYWHERE, "A hole anywhere"),
    )
    return Evaluation(measurements=(Measurement(claim=CLAIM, value=worst, note=note),), figures=figures)


def _points(results: Results) -> dict[tuple[int, int, float], Results]:
    return {
        (int(processes), int(fanout), float(c)): each
        for processes, of_size in results.by("processes").items()
        for fanout, of_fanout in of_size.by("fanout").items()
        for c, each in of_fanout.by("c").items()
    }


def _figure(results: Results, number: str, name: str, title: str) -> Figure:
    curves = [_bound(c, name) for c in sorted({*OBSERVED_C, *PRINTED_C})]
    for c in OBSERVED_C:
        seen = _seen(results.where(fanout=FANOUTS[0], c=c), name)
        if seen:
            curves.append(Curve(label=f"measured, c = {c:g}, K = {FANOUTS[0]}", points=seen))
    return Figure(
        id=f"epto-{number}",
        title=f"{title}: bounds and measured frequencies",
        caption=f"After Figure {number} of {PAPER}: events that arrive c n log2(n) times, rounds in step."
        " Bands: 99% confidence. There is no point if no hole was measured.",
        x=Axis(label="processes", scale="log"),
        y=Axis(label="probability", scale="log"),
        curves=tuple(curves),
    )


def _bound(c: float, name: str) -> Curve:
    points = (Point(float(n), getattr(figure_3(n, c), name)) for n in DRAWN_SIZES)
    return Curve(label=f"bound, c = {c:g}", points=tuple(points), marks=False)


def _seen(results: Results, name: str) -> tuple[Point, ...]:
    """What was seen by size, where it was; a band that reaches to 0 is cut at a tenth, for a logarithm."""
    points = []
    for processes, each in sorted(results.by("processes").items(), key=lambda item: int(item[0])):
        found = interval(each.values(name))
        if found.y:
            points.append(Point(float(processes), found.y, max(found.low or 0.0, found.y / 10), found.high))
    return tuple(points)


EXPERIMENTS = (
    Experiment(
        name="epto-3",
        title="Bounds on holes, and measured holes",
        source=f"{PAPER}, section 4.2, Figure 3",
        claims=(CLAIM,),
        cases=cases,
        evaluate=evaluate,
    ),
)

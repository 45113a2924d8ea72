"""Members that adapt, under loads that change (hybrid paper, section 6.2, Figure 5).

The nine loads of Figure 3 follow each other in one run, every 20 seconds, with quasi-periodic and with
Poisson sources. Latency is that of the steady state of each load: from 12 seconds after the change on. All
members begin as active.
"""

from ordercast.experiments.experiment import (
    Case,
    CaseValues,
    Evaluation,
    Experiment,
    Measurement,
    Results,
    Setup,
)
from ordercast.experiments.hybrid.alone import PAPER
from ordercast.experiments.hybrid.runs import DYNAMIC, SYMMETRIC, TOKEN_SITE, Source, changing, places
from ordercast.experiments.hybrid.static import FAR_MS, NEAR_MS, RATES_PER_S, SCENARIOS
from ordercast.report.figures import Axis, Curve, Figure, Point

SECONDS = 20.0
QUICK_SCENARIOS = 3
SYSTEMS = {TOKEN_SITE: "token-site", SYMMETRIC: "symmetric", DYNAMIC: "hybrid, dynamic"}
CLAIMS = {"periodic": "hybrid.dynamic.tracks", "poisson": "hybrid.dynamic.poisson"}


def cases(setup: Setup) -> list[Case]:
    """All three protocols with both sources."""
    count = QUICK_SCENARIOS if setup.quick else len(SCENARIOS)
    return [
        Case(
            parameters={"system": system, "source": source},
            seed=0,
            function="ordercast.experiments.hybrid.dynamic:measure",
            arguments={"scenarios": count, "seconds": SECONDS},
        )
        for system in SYSTEMS
        for source in CLAIMS
    ]


def measure(*, seed: int, system: str, source: Source, scenarios: int, seconds: float) -> CaseValues:
    """One protocol through the loads, with the latency of each."""
    high, low = RATES_PER_S
    rates = [[high if node in loaded else low for node in range(5)] for loaded in SCENARIOS[:scenarios]]
    network = places(NEAR_MS, FAR_MS)
    found = changing(seed=seed, system=system, network=network, source=source, rates=rates, seconds=seconds)
    return CaseValues(numbers={f"scenario {number}": latency for number, latency in enumerate(found, 1)})


def evaluate(results: Results) -> Evaluation:
    """How close members that adapt come to the better of the others, load by load."""
    curves = {
        source: {system: _latencies(results.where(source=source, system=system)) for system in SYSTEMS}
        for source in CLAIMS
    }
    return Evaluation(
        measurements=(_tracking(curves["periodic"]), _below(curves["poisson"])),
        figures=tuple(_figure(source, curves[source]) for source in CLAIMS),
    )


def _latencies(results: Results) -> list[float]:
    (result,) = results.all
    return [result.values[f"scenario {number}"] for number in range(1, len(result.values) + 1)]


def _tracking(curves: dict[str, list[float]]) -> Measurement:
    """The mean ratio to the better of the others, over all loads."""
    best = [min(pair) for pair in zip(curves[TOKEN_SITE], curves[SYMMETRIC], strict=True)]
    ratios = [hybrid / other for hybrid, other in zip(curves[DYNAMIC], best, strict=True)]
    note = f"by scenario: {', '.join(f'{ratio:.3g}' for ratio in ratios)}"
    return Measurement(claim=CLAIMS["periodic"], value=sum(ratios) / len(ratios), note=note)


def _below(curves: dict[str, list[float]]) -> Measurement:
    """The share of loads in which the hybrid protocol is faster than both others."""
    rows = list(zip(curves[DYNAMIC], curves[TOKEN_SITE], curves[SYMMETRIC], strict=True))
    share = sum(hybrid < min(others) for hybrid, *others in rows) / len(rows)
    told = ", ".join(" / ".join(f"{value:.0f}" for value in row) for row in rows)
    return Measurement(
        claim=CLAIMS["poisson"], value=share, note=f"hybrid / token-site / symmetric in ms: {told}"
    )


def _figure(source: str, curves: dict[str, list[float]]) -> Figure:
    return Figure(
        id=f"hybrid-5-{source}",
        title=f"Members that adapt, {source} sources",
        caption=f"After Figure 5 of {PAPER}: the loads of Figure 3 one after the other.",
        x=Axis(label="scenario", whole=True),
        y=Axis(label="mean of the last delivery of each message (ms)", low=0.0),
        curves=tuple(
            Curve(label=name, points=tuple(Point(x, y) for x, y in enumerate(curves[system], 1)))
            for system, name in SYSTEMS.items()
        ),
        beside="hybrid-5",
    )


EXPERIMENTS = (
    Experiment(
        name="hybrid-5",
        title="Dynamic hybrid order",
        source=f"{PAPER}, section 6.2, Figure 5",
        claims=tuple(CLAIMS.values()),
        cases=cases,
        evaluate=evaluate,
    ),
)

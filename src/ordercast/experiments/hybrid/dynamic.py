"""Members that adapt, under loads that change (hybrid paper, section 6.2, Figure 5).

The nine loads of Figure 3 follow each other in one run, every 20 seconds, with quasi-periodic and with
Poisson sources. Latency is that of the steady state of each load: from 12 seconds after the change on. All
members begin as active.

The hybrid protocol also runs with the other detector (EWMA). How long members take to adapt to each load is
the time until the last of them changed its role, before the steady state; changes of role in the steady state
have no reason in the load.
"""

from collections.abc import Iterable
from statistics import mean

import msgspec

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
from ordercast.experiments.hybrid.runs import (
    DYNAMIC,
    SYMMETRIC,
    TOKEN_SITE,
    Source,
    UnderLoad,
    changing,
    places,
)
from ordercast.experiments.hybrid.static import FAR_MS, NEAR_MS, RATES_PER_S, SCENARIOS
from ordercast.report.figures import Axis, Curve, Figure, Point

SECONDS = 20.0
QUICK_SCENARIOS = 3
SYSTEMS = {TOKEN_SITE: "token-site", SYMMETRIC: "symmetric", DYNAMIC: "hybrid, dynamic"}
DETECTORS = ("mean-shift", "ewma")
LABELS = SYSTEMS | {"ewma": "hybrid, EWMA detector"}
PAPERS = "mean-shift"
"""The detector of the paper, with which claims are measured."""
CLAIMS = {"periodic": "hybrid.dynamic.tracks", "poisson": "hybrid.dynamic.poisson"}


def cases(setup: Setup) -> list[Case]:
    """All three protocols with both sources, and the hybrid one with both detectors."""
    count = QUICK_SCENARIOS if setup.quick else len(SCENARIOS)
    return [
        Case(
            parameters={"system": system, "source": source, "detector": detector},
            seed=0,
            function="ordercast.experiments.hybrid.dynamic:measure",
            arguments={"scenarios": count, "seconds": SECONDS},
        )
        for system in SYSTEMS
        for source in CLAIMS
        for detector in (DETECTORS if system == DYNAMIC else [PAPERS])
    ]


def measure(
    *, seed: int, system: str, source: Source, detector: str, scenarios: int, seconds: float
) -> CaseValues:
    """One protocol through the loads, with what it does under each."""
    high, low = RATES_PER_S
    found = changing(
        seed=seed,
        system=system,
        network=places(NEAR_MS, FAR_MS),
        source=source,
        rates=[[high if node in loaded else low for node in range(5)] for loaded in SCENARIOS[:scenarios]],
        seconds=seconds,
        detector=detector,
    )
    return CaseValues(numbers={}, records=[msgspec.structs.asdict(load) for load in found])


def evaluate(results: Results) -> Evaluation:
    """How close members that adapt come to the better of the others, load by load."""
    loads = {
        source: {system: _loads(results, source, system) for system in SYSTEMS} | _others(results, source)
        for source in CLAIMS
    }
    return Evaluation(
        measurements=(_tracking(loads["periodic"]), _below(loads["poisson"])),
        figures=tuple(_figure(source, loads[source]) for source in CLAIMS),
    )


def _loads(results: Results, source: str, system: str, detector: str = PAPERS) -> list[UnderLoad]:
    (result,) = results.where(source=source, system=system, detector=detector).all
    return msgspec.convert(result.records, list[UnderLoad])


def _others(results: Results, source: str) -> dict[str, list[UnderLoad]]:
    return {name: _loads(results, source, DYNAMIC, name) for name in DETECTORS if name != PAPERS}


def _ms(loads: Iterable[UnderLoad]) -> list[float]:
    return [load.latency_ms for load in loads]


def _adapting(loads: list[UnderLoad]) -> str:
    """How long it took to adapt to each load, and how often roles changed."""
    took = ", ".join(f"{load.adapted_s:.1f} s ({load.adapted_messages})" for load in loads)
    changes, late = sum(load.changes for load in loads), sum(load.late for load in loads)
    return f"time (and messages) to adapt: {took}; {changes} changes of role, and {late} in steady states"


def _tracking(loads: dict[str, list[UnderLoad]]) -> Measurement:
    """The mean ratio to the better of the others, over all loads."""
    best = [min(pair) for pair in zip(_ms(loads[TOKEN_SITE]), _ms(loads[SYMMETRIC]), strict=True)]
    ratios = [hybrid / other for hybrid, other in zip(_ms(loads[DYNAMIC]), best, strict=True)]
    note = f"by scenario: {', '.join(f'{ratio:.3g}' for ratio in ratios)}; {_adapting(loads[DYNAMIC])}"
    return Measurement(claim=CLAIMS["periodic"], value=sum(ratios) / len(ratios), note=note)


def _below(loads: dict[str, list[UnderLoad]]) -> Measurement:
    """The share of loads in which the hybrid protocol is faster than both others."""
    rows = list(zip(*(_ms(loads[system]) for system in (DYNAMIC, TOKEN_SITE, SYMMETRIC)), strict=True))
    share = sum(hybrid < min(others) for hybrid, *others in rows) / len(rows)
    told = ", ".join(" / ".join(f"{value:.0f}" for value in row) for row in rows)
    note = f"hybrid / token-site / symmetric in ms: {told}; {_adapting(loads[DYNAMIC])}"
    return Measurement(claim=CLAIMS["poisson"], value=share, note=note)


def _numbers(loads: list[UnderLoad]) -> dict[str, float]:
    return {
        "mean time to adapt (s)": mean(load.adapted_s for load in loads),
        "messages until then": mean(load.adapted_messages for load in loads),
        "changes of role": float(sum(load.changes for load in loads)),
        "late changes": float(sum(load.late for load in loads)),
    }


def _figure(source: str, loads: dict[str, list[UnderLoad]]) -> Figure:
    return Figure(
        id=f"hybrid-5-{source}",
        title=f"Members that adapt, {source} sources",
        caption=f"After Figure 5 of {PAPER}: the loads of Figure 3 one after the other. Late changes of role"
        " have no reason in the load.",
        x=Axis(label="scenario", whole=True),
        y=Axis(label="mean of the last delivery of each message (ms)", low=0.0),
        curves=tuple(
            Curve(
                label=LABELS[system],
                points=tuple(Point(x, y) for x, y in enumerate(_ms(loads[system]), 1)),
                numbers=_numbers(loads[system]) if system not in (TOKEN_SITE, SYMMETRIC) else {},
            )
            for system in loads
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

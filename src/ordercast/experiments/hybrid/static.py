"""Static roles against the two protocols alone, under nine loads (hybrid paper, section 4.4, Figure 3).

Processes A, B and C are D1 from each other, D and E too, and the two places are D1 + D2 apart. D1 is 20 ms
and D2 500 ms. A process sends 100 messages a second (high load) or one (low load). In the token-site protocol
A is the token site; in the hybrid one, heavily loaded processes are active and the others passive.

The table of the nine scenarios is not in the text at hand. These go the same way, from load only at the token
site to load everywhere: A; A and B; A, B and C; A, B, C and D; A, B and D; A and D; D; D and E; all.
"""

from statistics import mean

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
from ordercast.experiments.hybrid.runs import LATENCY, STATIC, SYMMETRIC, TOKEN_SITE, two_sites
from ordercast.report.figures import Axis, Curve, Figure, Point

NEAR_MS, FAR_MS = 20.0, 520.0
RATES_PER_S = (100.0, 1.0)
SCENARIOS = ((0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 3), (0, 3), (3,), (3, 4), (0, 1, 2, 3, 4))
"""The processes with a high load; A is 0."""
QUICK_SCENARIOS = (1, 6, 9)
SYSTEMS = {TOKEN_SITE: "token-site", SYMMETRIC: "symmetric", STATIC: "hybrid, static"}
CLAIM = "hybrid.static.best_everywhere"


def cases(setup: Setup) -> list[Case]:
    """All three protocols in each scenario."""
    return [
        Case(
            parameters={"system": system, "scenario": number},
            seed=0,
            function="ordercast.experiments.hybrid.static:measure",
            arguments={"seconds": 8.0 if setup.quick else 10.0},
        )
        for system in SYSTEMS
        for number in (QUICK_SCENARIOS if setup.quick else range(1, 10))
    ]


def measure(*, seed: int, system: str, scenario: int, seconds: float) -> CaseValues:
    """One protocol in one scenario."""
    return two_sites(
        seed=seed,
        system=system,
        near_ms=NEAR_MS,
        far_ms=FAR_MS,
        high=SCENARIOS[scenario - 1],
        rates_per_s=RATES_PER_S,
        seconds=seconds,
    )


def evaluate(results: Results) -> Evaluation:
    """The worst ratio of the hybrid latency to the better of the others."""
    numbers = sorted({int(result.case.parameters["scenario"]) for result in results.all})
    curves = {
        system: [mean(results.where(system=system, scenario=number).values(LATENCY)) for number in numbers]
        for system in SYSTEMS
    }
    best = [min(pair) for pair in zip(curves[TOKEN_SITE], curves[SYMMETRIC], strict=True)]
    ratios = [hybrid / other for hybrid, other in zip(curves[STATIC], best, strict=True)]
    worst = max(range(len(numbers)), key=ratios.__getitem__)
    figure = Figure(
        id="hybrid-3",
        title="Static hybrid order under nine loads",
        caption=f"After Figure 3 of {PAPER}: five processes at two places, D1 = 20 ms, D2 = 500 ms.",
        x=Axis(label="scenario", whole=True),
        y=Axis(label="mean of the last delivery of each message (ms)", low=0.0),
        curves=tuple(
            Curve(
                label=name,
                points=tuple(Point(x, y) for x, y in zip(numbers, curves[system], strict=True)),
            )
            for system, name in SYSTEMS.items()
        ),
    )
    note = f"worst in scenario {numbers[worst]}; by scenario: {', '.join(f'{one:.3g}' for one in ratios)}"
    return Evaluation(
        measurements=(Measurement(claim=CLAIM, value=ratios[worst], note=note),), figures=(figure,)
    )


EXPERIMENTS = (
    Experiment(
        name="hybrid-3",
        title="Static hybrid order",
        source=f"{PAPER}, section 4.4, Figure 3",
        claims=(CLAIM,),
        cases=cases,
        evaluate=evaluate,
    ),
)

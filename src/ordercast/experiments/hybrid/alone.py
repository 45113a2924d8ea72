"""Token-site and symmetric order alone, over the network delay (hybrid paper, section 4.2, Figure 1).

30 processes send 10 messages a second each. The latency of the token-site protocol follows 2 D, that of the
symmetric one D + t. The delay is constant; the paper's has a small variance.
"""

from itertools import pairwise
from statistics import mean, median

from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.hybrid.runs import LATENCY, SYMMETRIC, TOKEN_SITE
from ordercast.report.figures import Axis, Curve, Figure, Point

PROCESSES, RATE_PER_S = 30, 10.0
INTERVAL_MS = 1000 / RATE_PER_S
DELAYS_MS = (20.0, 50.0, 80.0, 120.0, 200.0, 400.0)
SECONDS = 7.0
QUICK_DELAYS_MS = (50.0, 200.0)
SYSTEMS = {TOKEN_SITE: "token-site", SYMMETRIC: "symmetric"}
PAPER = "Totally Ordered Multicast in Large-Scale Systems (ICDCS 1996)"
TOKEN_CLAIM, SYMMETRIC_CLAIM, CROSSOVER_CLAIM = (
    "hybrid.token_latency",
    "hybrid.symmetric_latency",
    "hybrid.crossover",
)


def cases(setup: Setup) -> list[Case]:
    """Both protocols at each delay."""
    return [
        Case(
            parameters={"system": system, "delay_ms": delay},
            seed=0,
            function="ordercast.experiments.hybrid.runs:flat",
            arguments={
                "processes": PROCESSES,
                "rate_per_s": RATE_PER_S,
                "seconds": SECONDS,
            },
        )
        for system in SYSTEMS
        for delay in (QUICK_DELAYS_MS if setup.quick else DELAYS_MS)
    ]


def evaluate(results: Results) -> Evaluation:
    """Latency over the delay, and where the curves cross."""
    curves = {system: _curve(results.where(system=system)) for system in SYSTEMS}
    token = median(latency / delay for delay, latency in curves[TOKEN_SITE].items())
    symmetric = median((latency - delay) / INTERVAL_MS for delay, latency in curves[SYMMETRIC].items())
    figure = Figure(
        id="hybrid-1",
        title="Latency of token-site and symmetric order alone",
        caption=f"After Figure 1 of {PAPER}: 30 processes, 10 messages/s each,"
        " quasi-periodic, constant delay.",
        x=Axis(label="network delay D (ms)", low=0.0),
        y=Axis(label="mean of the last delivery of each message (ms)", low=0.0),
        curves=tuple(
            Curve(label=name, points=tuple(Point(x, y) for x, y in curves[system].items()))
            for system, name in SYSTEMS.items()
        ),
    )
    crossing = crossover(curves[TOKEN_SITE], curves[SYMMETRIC])
    return Evaluation(
        measurements=(
            Measurement(claim=TOKEN_CLAIM, value=token, note="the token site's own messages take one delay"),
            Measurement(claim=SYMMETRIC_CLAIM, value=symmetric),
            Measurement(claim=CROSSOVER_CLAIM, value=crossing / INTERVAL_MS),
        ),
        figures=(figure,),
    )


def _curve(results: Results) -> dict[float, float]:
    """The mean latency over all seeds, by delay."""
    delays = sorted({float(result.case.parameters["delay_ms"]) for result in results.all})
    return {delay: mean(results.where(delay_ms=delay).values(LATENCY)) for delay in delays}


def crossover(token: dict[float, float], symmetric: dict[float, float]) -> float:
    """The delay from which on the symmetric protocol is faster, between the points by a straight line."""
    gaps = [(delay, token[delay] - symmetric[delay]) for delay in token]
    for (before, low), (after, high) in pairwise(gaps):
        if low < 0 <= high:
            return before + (after - before) * -low / (high - low)
    return gaps[0][0] if gaps[0][1] >= 0 else gaps[-1][0]


EXPERIMENTS = (
    Experiment(
        name="hybrid-1",
        title="Token-site and symmetric order alone",
        source=f"{PAPER}, section 4.2, Figure 1",
        claims=(TOKEN_CLAIM, SYMMETRIC_CLAIM, CROSSOVER_CLAIM),
        cases=cases,
        evaluate=evaluate,
    ),
)

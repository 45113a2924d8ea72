"""Hydra under clock skew among sequencers (NSDI 2023, appendix A.1, Figure 10).

15 groups of three and eight switch sequencers; no virtual groups. "Clock skew shows the maximum skew between
any two sequencers": their clocks are ahead by equal steps, the first by nothing and the last by the skew.
Latency is the mean, for what comes from the slowest sequencer waits for nobody, and a median would tell of
the middle ones alone. Flushes are adaptive, the product's default.
"""

from statistics import median

from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.results import (
    MODEL,
    PAPER,
    compared,
    latencies,
    latency_curve,
    loads,
    peak_curve,
    ratio,
)
from ordercast.experiments.hydra.saturation import MEAN
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import HYDRA
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Figure, Reference

GROUPS, RECEIVERS, SEQUENCERS = 15, 3, 8
SMALL, LARGE = 10.0, 200.0
SEED = 0
"""One for all: no clock is drawn, and tens of thousands of clients take long to simulate."""
LOADS_TOLD = 5
"""In the notes, the lightest first: where nothing is saturated."""
RATE_CLAIM = "hydra.skew.throughput"
WAIT_CLAIMS = {SMALL: "hydra.skew.latency_10us", LARGE: "hydra.skew.latency_200us"}


def cases(effort: Effort) -> list[Case]:
    """No skew to 200 us."""
    skews = (0.0, 1.0, SMALL, 50.0, 100.0, LARGE) if effort.thorough else (0.0, SMALL, LARGE)
    return [
        Case(
            parameters={"skew_us": skew},
            seed=SEED,
            function="ordercast.experiments.hydra.saturation:closed_loop",
            arguments={
                "system": HYDRA,
                "groups": GROUPS,
                "receivers": RECEIVERS,
                "sequencers": SEQUENCERS,
                "messages": effort.messages,
                "least_us": skew,
            },
        )
        for skew in skews
    ]


def evaluate(results: Results) -> Evaluation:
    """Latency and throughput over skew."""
    base = latencies(results.where(skew_us=0.0), MEAN)
    about = (
        f"After Figure 10 of {PAPER}: 15 groups of three, eight switch sequencers. Band: all seeds. {MODEL}"
    )
    skews = Axis(label="largest clock skew between two sequencers (us)")
    waits = Figure(
        id="hydra-10-latency",
        title="Latency over clock skew",
        caption=about,
        x=skews,
        y=Axis(label="mean latency at clients (us)", low=0.0),
        curves=(latency_curve("Hydra, adaptive", results, "skew_us", MEAN),),
        references=tuple(
            Reference(
                label=f"at most, by the paper at {skew:.0f} us",
                x=skew,
                y=median(base.values()) + published(claim),
            )
            for skew, claim in WAIT_CLAIMS.items()
        ),
    )
    rates = Figure(
        id="hydra-10-throughput",
        title="Maximum throughput over clock skew",
        caption=about,
        x=skews,
        y=Axis(label="max throughput (1000 messages/s)", low=0.0),
        curves=(peak_curve("Hydra, adaptive", results, "skew_us"),),
    )
    added = {skew: latencies(results.where(skew_us=skew), MEAN) for skew in WAIT_CLAIMS}
    measured = (
        ratio(RATE_CLAIM, results.where(skew_us=LARGE), results.where(skew_us=0.0)),
        *(
            compared(claim, {seed: added[skew][seed] - base[seed] for seed in base}, _by_load(results, skew))
            for skew, claim in WAIT_CLAIMS.items()
        ),
    )
    return Evaluation(measurements=measured, figures=(waits, rates))


def _by_load(results: Results, skew: float) -> str:
    """What the skew adds at other loads, of the first seed."""
    plain, skewed = (loads(results.where(skew_us=each).all[0]) for each in (0.0, skew))
    pairs = list(zip(plain, skewed, strict=False))[:LOADS_TOLD]
    said = ", ".join(
        f"{one.clients // GROUPS}: {(other.mean_ns - one.mean_ns) / 1e3:.3g}" for one, other in pairs
    )
    return (
        f"clocks at equal steps make messages wait for half of the skew; us added by clients a group: {said}"
    )


EXPERIMENTS = (
    on_testbed(
        name="hydra-10",
        title="Clock skew",
        source=f"{PAPER}, appendix A.1, Figure 10",
        claims=(RATE_CLAIM, *WAIT_CLAIMS.values()),
        cases=cases,
        evaluate=evaluate,
    ),
)

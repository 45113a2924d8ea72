"""An hour of real arrivals on measured wide-area latencies (beyond the paper).

The arrivals are an hour of requests to a service of language models (`azure-llm`): 19,366 requests at
a rate that changes all the time. Six members are nodes of PlanetLab (`planetlab226`), with the measured
latencies between them. Each request goes to one member; some members get many and others few (shares 1, 1/2,
1/3, ..., dealt by the seed). All options are those of live clusters, except for slow heartbeats.

Without the data there is a stand-in from published figures: as many Poisson arrivals, and two places whose
delays are the 5th percentile and the median of PlanetLab's.

Claimed is what the paper says of all its loads: hybrid order is about as fast as the better of the two.
"""

from pathlib import Path
from random import Random

from ordercast.core import SECOND, LocalError
from ordercast.experiments.experiment import (
    Case,
    CaseValues,
    Evaluation,
    Experiment,
    Measurement,
    Results,
    Setup,
)
from ordercast.experiments.hybrid.runs import DYNAMIC, SYMMETRIC, TOKEN_SITE, between, places, waits
from ordercast.report.figures import Axis, Curve, Figure, Point
from ordercast.scenario.arrival_file import read_arrivals
from ordercast.scenario.spec import MatrixSpec, NetworkSpec, Scenario, SubmissionSpec, WorkloadSpec
from ordercast.sim.run import simulate

ARRIVALS = Path("azure-llm", "AzureLLMInferenceTrace_conv.csv")
LATENCIES = Path("planetlab226", "latency_ticks.npz")
MEMBERS = 6
REQUESTS, HOUR_S, QUICK_S = 19_366, 3_600.0, 300.0
NEAR_MS, FAR_MS = 15.0, 125.0
SYSTEMS = {TOKEN_SITE: "token-site", SYMMETRIC: "symmetric", DYNAMIC: "hybrid"}
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
CLAIMS = {0.5: "hybrid.arrivals.median", 0.99: "hybrid.arrivals.p99"}


def cases(setup: Setup) -> list[Case]:
    """All three protocols through the hour."""
    return [
        Case(
            parameters={"system": system},
            seed=0,
            function="ordercast.experiments.hybrid.arrivals:measure",
            arguments={"data": find_data(setup.data), "seconds": QUICK_S if setup.quick else HOUR_S},
        )
        for system in SYSTEMS
    ]


def find_data(data: Path | None) -> str:
    """The folder of data; empty without one. An error if a file is not there."""
    if data is None:
        return ""
    for name in (ARRIVALS, LATENCIES):
        if not (data / name).is_file():
            raise LocalError(f"no {name} in {data}; leave --data out for a stand-in from published figures")
    return str(data)


def measure(*, seed: int, system: str, data: str, seconds: float) -> CaseValues:
    """The latencies of one protocol: percentiles over all requests."""
    run = simulate(scenario(seed, system, data, seconds))
    if run.violations:
        raise LocalError(f"a promise was broken: {run.violations[0]}")
    found = sorted(between(waits(run), 0.0, seconds))
    return CaseValues(numbers={_name(share): found[int(share * len(found))] for share in QUANTILES})


def scenario(seed: int, system: str, data: str, seconds: float) -> Scenario:
    """The run of one protocol."""
    measured = MatrixSpec(file=str(Path(data) / LATENCIES), key="lat_ticks")
    return Scenario(
        protocol=system,
        seed=seed,
        receivers=MEMBERS,
        senders=MEMBERS,
        colocated=True,
        network=NetworkSpec(latency=measured if data else places(NEAR_MS, FAR_MS)),
        workload=WorkloadSpec(kind="listed", submission=requests(seed, data, seconds)),
        live_options=True,
        options={"views": {"heartbeat_ns": 5 * SECOND, "suspect_ns": 60 * SECOND}},
        settle_ms=20_000,
    )


def requests(seed: int, data: str, seconds: float) -> tuple[SubmissionSpec, ...]:
    """The requests up to a time, and the member of each."""
    rng = Random(f"{seed}/requests")
    weights = [1 / rank for rank in range(1, MEMBERS + 1)]
    rng.shuffle(weights)
    if data:
        times = sorted(time / SECOND for time in read_arrivals(Path(data) / ARRIVALS))
    else:
        times = sorted(rng.random() * HOUR_S for _ in range(REQUESTS))
    return tuple(
        SubmissionSpec(at_ms=time * 1000, sender=rng.choices(range(MEMBERS), weights)[0])
        for time in times
        if time < seconds
    )


def evaluate(results: Results) -> Evaluation:
    """The median and the 99th percentile of hybrid order against the better of the others."""
    curves = {system: _curve(results.where(system=system)) for system in SYSTEMS}
    figure = Figure(
        id="hybrid-arrivals",
        title="An hour of real arrivals",
        caption=f"{MEMBERS} members. With --data: requests of azure-llm, latencies of planetlab226; otherwise"
        " a stand-in.",
        x=Axis(label="last delivery of a message (ms)", low=0.0),
        y=Axis(label="share of messages", low=0.0, high=1.0),
        curves=tuple(
            Curve(label=name, points=tuple(Point(curves[system][share], share) for share in QUANTILES))
            for system, name in SYSTEMS.items()
        ),
    )
    return Evaluation(
        measurements=tuple(_measured(curves, share) for share in CLAIMS),
        figures=(figure,),
    )


def _curve(results: Results) -> dict[float, float]:
    (result,) = results.all
    return {share: result.values[_name(share)] for share in QUANTILES}


def _measured(curves: dict[str, dict[float, float]], share: float) -> Measurement:
    told = ", ".join(f"{name} {curves[system][share]:.0f} ms" for system, name in SYSTEMS.items())
    better = min(curves[TOKEN_SITE][share], curves[SYMMETRIC][share])
    return Measurement(claim=CLAIMS[share], value=curves[DYNAMIC][share] / better, note=told)


def _name(share: float) -> str:
    return f"q{share:g}"


EXPERIMENTS = (
    Experiment(
        name="hybrid-arrivals",
        title="An hour of real arrivals",
        source="beyond the paper",
        claims=tuple(CLAIMS.values()),
        cases=cases,
        evaluate=evaluate,
    ),
)

"""Functions and experiments small enough for tests."""

from pathlib import Path

from ordercast.pipeline.cases import Case, Results
from ordercast.pipeline.claims import Claim, Measurement
from ordercast.pipeline.reproduce import Evaluation, Work
from ordercast.report.figures import Axis, Curve, Figure, over_seeds
from ordercast.scenario.spec import Scenario, WorkloadSpec

SQUARE, MEAN = "toy.square", "toy.mean"


def square(*, n: int, seed: int, called: str) -> dict[str, float]:
    """What a function of an experiment looks like; it leaves a line wherever it is called."""
    with Path(called).open("a") as file:
        file.write(f"{n} {seed}\n")
    if n < 0:
        raise ValueError("no negative numbers <here>")
    return {"square": n * n + seed, "seconds": 0.5}


def wrong(*, seed: int) -> dict[str, float]:
    """Returns what is no number."""
    return {"value": float("nan")}


def claim(name: str, published: float, low: float, high: float) -> Claim:
    about = {"system": "toy", "source": "nowhere", "setup": "", "metric": "a number", "note": "made up"}
    return Claim(id=name, published=published, accept_low=low, accept_high=high, **about)


CLAIMS = [claim(SQUARE, 16.0, 15.0, 18.0), claim(MEAN, 5.0, 100.0, 200.0), claim("toy.later", 1.0, 0.0, 2.0)]


def function_work(called: Path, numbers: tuple[int, ...] = (3, 4)) -> Work:
    """An experiment whose work is a function, in this file as a module of its own: so executors get it."""
    function = "toy:square"
    cases = [
        Case(parameters={"n": n}, seed=seed, function=function, arguments={"called": str(called)})
        for n in numbers
        for seed in (0, 1)
    ]

    def evaluate(results: Results) -> Evaluation:
        highest = max(results.where(n=4).values("square"))
        points = over_seeds([(float(n), each.values("square")) for n, each in results.by("n").items()])
        figure = Figure(
            id="toy-squares",
            title="Squares",
            caption="of the toy",
            x=Axis(label="n"),
            y=Axis(label="square"),
            curves=(Curve(label="square", points=points),),
        )
        return Evaluation(
            measurements=(Measurement(claim=SQUARE, value=highest, note="of two"),), figures=(figure,)
        )

    return Work("squares", "Squares", "nowhere", (SQUARE,), cases, evaluate)


def scenario_work() -> Work:
    """An experiment that simulates; its claim's band is out of reach."""
    cases = [
        Case(
            parameters={"protocol": protocol},
            seed=seed,
            scenario=Scenario(
                protocol=protocol, seed=seed, workload=WorkloadSpec(kind="closed", messages=50)
            ),
        )
        for protocol in ("unordered", "atomic_multicast")
        for seed in (0, 1)
    ]

    def evaluate(results: Results) -> Evaluation:
        (rate, _) = results.where(protocol="unordered").values("client_messages_per_s")
        assert rate > 0
        delivered = results.values("delivered")
        return Evaluation(measurements=(Measurement(claim=MEAN, value=sum(delivered) / len(delivered) / 30),))

    return Work("means", "Means", "nowhere", (MEAN,), cases, evaluate)

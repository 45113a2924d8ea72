"""What the evaluations of Hydra's microbenchmarks have in common: highest rates, their ratios, and curves."""

from collections.abc import Iterable, Mapping
from statistics import median

from ordercast.experiments.experiment import Measurement, Results, Setup
from ordercast.experiments.hydra.bench import LATENCY, RATE
from ordercast.experiments.hydra.testbed import ATOMIC, HYDRA, UNORDERED
from ordercast.report.figures import Curve, Point, over_seeds

PAPER = "Hydra (NSDI 2023)"
MODEL = (
    "Model: each packet or copy costs 1 us of CPU to send or receive, and none at switches; 100 Gb/s star."
)
NAMES = {UNORDERED: "unordered multicast", ATOMIC: "atomic multicast", HYDRA: "Hydra"}


def seeds(setup: Setup, quick: int = 2, full: int = 3) -> range:
    """The seeds of each point."""
    return range(quick if setup.quick else full)


def peaks(results: Results) -> dict[int, float]:
    """For each seed, the highest throughput over all loads."""
    found: dict[int, float] = {}
    for result in results.all:
        seed = result.case.seed
        found[seed] = max(found.get(seed, 0.0), result.values[RATE])
    return found


def lightest(results: Results) -> Results:
    """Those with the fewest clients."""
    by = results.by("clients")
    return by[min(by, key=lambda clients: int(clients))]


def latencies(results: Results, value: str = LATENCY) -> dict[int, float]:
    """For each seed the latency at the lightest load, in microseconds; by default the median."""
    return {result.case.seed: result.values[value] / 1e3 for result in lightest(results).all}


def compared(claim: str, values: Mapping[int, float], note: str = "") -> Measurement:
    """The median over seeds, and the range in the note."""
    found = sorted(values.values())
    said = f"{found[0]:.4g} to {found[-1]:.4g} over {len(found)} seeds" if len(found) > 1 else "one seed"
    return Measurement(claim=claim, value=median(found), note=f"{said}; {note}" if note else said)


def ratio(claim: str, above: Results, below: Results, note: str = "") -> Measurement:
    """The ratio of two highest throughputs."""
    over, under = peaks(above), peaks(below)
    return compared(claim, {seed: over[seed] / under[seed] for seed in over}, note)


def typical_ratio(above: Results, below: Results) -> float:
    """The same as a number, for a note."""
    return median(peaks(above).values()) / median(peaks(below).values())


def load_curve(label: str, results: Results) -> Curve:
    """Latency over throughput, a marker a load."""
    points: list[Point] = []
    for load in results.by("clients").values():
        rates, waits = load.values(RATE), load.values(LATENCY)
        points += over_seeds([(median(rates) / 1e3, [wait / 1e3 for wait in waits])])
    return Curve(label=label, points=tuple(points))


def peak_curve(label: str, results: Results, parameter: str) -> Curve:
    """Maximum throughput over a parameter."""
    return _curve(label, {at: peaks(each).values() for at, each in _by_number(results, parameter)}, 1e-3)


def latency_curve(label: str, results: Results, parameter: str, value: str = LATENCY) -> Curve:
    """Latency at the lightest load over a parameter, in microseconds."""
    waits = {at: latencies(each, value).values() for at, each in _by_number(results, parameter)}
    return _curve(label, waits, 1.0)


def _by_number(results: Results, parameter: str) -> list[tuple[float, Results]]:
    return [(float(value), each) for value, each in results.by(parameter).items()]


def _curve(label: str, values: Mapping[float, Iterable[float]], unit: float) -> Curve:
    return Curve(label=label, points=over_seeds([(x, [y * unit for y in ys]) for x, ys in values.items()]))

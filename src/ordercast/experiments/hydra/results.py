"""What the evaluations of Hydra's microbenchmarks have in common: highest rates, their ratios, and curves."""

from collections.abc import Iterable, Mapping
from statistics import median

import msgspec

from ordercast.experiments.experiment import CaseResult, Measurement, Results
from ordercast.experiments.hydra.bench import Counted
from ordercast.experiments.hydra.calibration import PACKETS_OF_ORDER, PUBLISHED
from ordercast.experiments.hydra.saturation import LATENCY, PEAK
from ordercast.experiments.hydra.testbed import ATOMIC, HYDRA, UNORDERED
from ordercast.report.figures import Curve, Point, over_seeds

PAPER = "Hydra (NSDI 2023)"
MODEL = (
    f"Model: each packet or copy costs {PUBLISHED.packet_ns} ns of CPU to send or receive, and none at "
    f"switches; order costs a message of Hydra {PACKETS_OF_ORDER[HYDRA]:.3g} packets, and one of atomic "
    f"multicast {PACKETS_OF_ORDER[ATOMIC]:.3g}; a link takes {PUBLISHED.link_us:.4g} us; 100 Gb/s star."
)
ORDER = (
    f"order costs {PACKETS_OF_ORDER[HYDRA]:.3g} packets of CPU a message; unordered multicast has 2 in all"
)
"""The reason for what Hydra has less than unordered multicast."""
ORDER_OF_ATOMIC = f"order costs atomic multicast {PACKETS_OF_ORDER[ATOMIC]:.3g} packets of CPU a message"
NAMES = {UNORDERED: "unordered multicast", ATOMIC: "atomic multicast", HYDRA: "Hydra"}


def peaks(results: Results) -> dict[int, float]:
    """For each seed the maximum throughput."""
    return {result.case.seed: result.values[PEAK] for result in results.all}


def latencies(results: Results, value: str = LATENCY) -> dict[int, float]:
    """For each seed the latency at the lightest load, in microseconds; by default the median."""
    return {result.case.seed: result.values[value] / 1e3 for result in results.all}


def loads(result: CaseResult) -> list[Counted]:
    """All loads of a case, the lightest first."""
    return msgspec.convert(result.records, list[Counted])


def compared(claim: str, values: Mapping[int, float], *notes: str) -> Measurement:
    """The median over seeds, and the range before the notes."""
    found = sorted(values.values())
    said = f"{found[0]:.4g} to {found[-1]:.4g} over {len(found)} seeds" if len(found) > 1 else "one seed"
    return Measurement(claim=claim, value=median(found), note="; ".join(filter(None, (said, *notes))))


def ratio(claim: str, above: Results, below: Results, *notes: str) -> Measurement:
    """The ratio of two maximum throughputs."""
    over, under = peaks(above), peaks(below)
    return compared(claim, {seed: over[seed] / under[seed] for seed in over}, *notes)


def typical_ratio(above: Results, below: Results) -> float:
    """The same as a number, for a note."""
    return median(peaks(above).values()) / median(peaks(below).values())


def load_curve(label: str, results: Results) -> Curve:
    """Latency over throughput, a marker a load; seeds may differ in how many loads they need."""
    by_clients: dict[int, list[Counted]] = {}
    for result in results.all:
        for load in loads(result):
            by_clients.setdefault(load.clients, []).append(load)
    points: list[Point] = []
    for found in by_clients.values():
        rate = median(load.messages_per_s for load in found) / 1e3
        points += over_seeds([(rate, [load.p50_ns / 1e3 for load in found])])
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

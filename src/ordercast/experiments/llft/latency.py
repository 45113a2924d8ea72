"""End-to-end latency of one client: by size of messages (Figure 12) and number of replicas (Figure 14).

*Small* and *large* are the two ends of Figure 12 here: 16 bytes and 64 KiB. The paper does not say what its
sizes were. Claims are about requests of a size with short replies; the note has short requests with replies
of a size, which the paper found to be the same.
"""

from statistics import median

from ordercast.experiments.experiment import Case, CaseValues, Evaluation, Measurement, Results
from ordercast.experiments.llft.calibration import Costs
from ordercast.experiments.llft.sensitivity import MODEL, PAPER, Amount, on_testbed
from ordercast.experiments.llft.testbed import ECHO, GIVE, LLFT, NAMES, TAKE, TCP, counted, scenario_of
from ordercast.experiments.llft.throughput import cases_13, figures_13
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference, over_seeds

SIZES = (16, 64, 256, 1_024, 4_096, 16_384, 65_536)
SMALL_BYTES, LARGE_BYTES = SIZES[0], SIZES[-1]
PATTERNS = {TAKE: "requests of this size, short replies", GIVE: "short requests, replies of this size"}
REPLICAS = (2, 3, 4, 5, 6, 7, 8)
CLAIM_SIZE = 1_024
"""Of Figure 14; the paper does not say what it was there."""
SMALL_CLAIM, LARGE_CLAIM, FLAT_CLAIM = (
    "llft.latency_overhead_small",
    "llft.latency_overhead_large",
    "llft.replicas_flat",
)
P50, MEAN = "p50_ns", "mean_ns"
"""Means decide; medians would not show a call that waited behind a heartbeat."""


def measure(
    *,
    system: str,
    replicas: int,
    size: int,
    service: str,
    packet_ns: int,
    link_us: float,
    seed: int,
    calls: int,
    copies: bool = False,
) -> CaseValues:
    """The latency of one client, of so many calls."""
    scenario = scenario_of(system, replicas=replicas, clients=1, size=size, service=service, seed=seed)
    found = counted(scenario, Costs(packet_ns, link_us), calls, copies=copies)
    return CaseValues(numbers={P50: found.p50_ns, MEAN: found.mean_ns, "seconds": found.seconds})


def cases_12(amount: Amount) -> list[Case]:
    """Both systems, and both patterns."""
    return [
        Case(
            parameters={"system": system, "replicas": 3, "size": size, "service": service},
            seed=seed,
            function=f"{__name__}:measure",
            arguments={"calls": amount.calls},
            weight=size,
        )
        for service in PATTERNS
        for size in (SIZES if amount.thorough else (SMALL_BYTES, LARGE_BYTES))
        for system in NAMES
        for seed in range(amount.seeds)
    ] + cases_13(amount)


def cases_14(amount: Amount) -> list[Case]:
    """From two replicas on, with a multicast that the switch copies and with one send for each copy."""
    return [
        Case(
            parameters={
                "system": LLFT,
                "replicas": replicas,
                "size": CLAIM_SIZE,
                "service": ECHO,
                "copies": copies,
            },
            seed=seed,
            function=f"{__name__}:measure",
            arguments={"calls": amount.calls},
        )
        for copies in (False, True)
        for replicas in (REPLICAS if amount.thorough else (REPLICAS[0], REPLICAS[-1]))
        for seed in range(amount.seeds)
    ]


def overhead(results: Results, size: int, service: str, value: str = MEAN) -> list[float]:
    """For each seed, the latency of LLFT over that of plain TCP."""
    there = results.where(size=size, service=service)
    ours, theirs = (there.where(system=system).values(value) for system in (LLFT, TCP))
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def evaluate_12(results: Results) -> Evaluation:
    """Latency by size, and the two ratios."""
    measurements = []
    for claim, size in ((SMALL_CLAIM, SMALL_BYTES), (LARGE_CLAIM, LARGE_BYTES)):
        ours, theirs = (
            median(results.where(size=size, service=TAKE, system=system).values(MEAN)) / 1e3
            for system in (LLFT, TCP)
        )
        note = (
            f"{size} bytes: {ours:.1f} us and {theirs:.1f} us; medians"
            f" {median(overhead(results, size, TAKE, P50)):.3f}; replies of this size"
            f" {median(overhead(results, size, GIVE)):.3f}; the time of LLFT's own code is not charged"
        )
        measurements.append(Measurement(claim=claim, value=median(overhead(results, size, TAKE)), note=note))
    tcp = results.where(system=TCP, service=TAKE)
    references = tuple(
        Reference(
            label=f"LLFT by the paper, {size} bytes",
            x=float(size),
            y=published(claim) * median(tcp.where(size=size).values(MEAN)) / 1e3,
        )
        for claim, size in ((SMALL_CLAIM, SMALL_BYTES), (LARGE_CLAIM, LARGE_BYTES))
    )
    figure = Figure(
        id="llft-12",
        title="End-to-end latency over the size of messages, one client, three replicas",
        caption=f"After Figure 12 of {PAPER}. Stars: plain TCP times the paper's ratios. {MODEL}",
        x=Axis(label="bytes", scale="log"),
        y=Axis(label="mean latency (us)", scale="log"),
        curves=tuple(
            Curve(
                label=f"{name}, {pattern}", points=_by(results.where(system=system, service=service), "size")
            )
            for system, name in NAMES.items()
            for service, pattern in PATTERNS.items()
        ),
        references=references,
    )
    return Evaluation(measurements=tuple(measurements), figures=(figure, *figures_13(results)))


def evaluate_14(results: Results) -> Evaluation:
    """The latency with most replicas over that with two."""
    multicast, unicast = (results.where(copies=copies) for copies in (False, True))
    note = (
        f"{REPLICAS[-1]} replicas over {REPLICAS[0]}; medians {median(_growth(multicast, P50)):.3f}; with one"
        f" send for each copy {median(_growth(unicast, MEAN)):.3f}, medians"
        f" {median(_growth(unicast, P50)):.3f}"
    )
    figure = Figure(
        id="llft-14",
        title="End-to-end latency over the number of replicas",
        caption=f"After Figure 14 of {PAPER}: one client, {CLAIM_SIZE} bytes both ways. {MODEL}",
        x=Axis(label="replicas", whole=True),
        y=Axis(label="mean latency (us)", low=0.0),
        curves=(
            Curve(label="the switch copies a multicast", points=_by(multicast, "replicas")),
            Curve(label="one send for each copy", points=_by(unicast, "replicas")),
        ),
    )
    measured = Measurement(claim=FLAT_CLAIM, value=median(_growth(multicast, MEAN)), note=note)
    return Evaluation(measurements=(measured,), figures=(figure,))


def _growth(results: Results, value: str) -> list[float]:
    most, fewest = (results.where(replicas=REPLICAS[place]).values(value) for place in (-1, 0))
    return [one / other for one, other in zip(most, fewest, strict=True)]


def _by(results: Results, parameter: str) -> tuple[Point, ...]:
    return over_seeds(
        (float(at), [one / 1e3 for one in each.values(MEAN)]) for at, each in results.by(parameter).items()
    )


EXPERIMENTS = (
    on_testbed(
        name="llft-12",
        title="Latency by message size, and throughput by clients",
        source="section VI.A, Figures 12 and 13",
        claims=(SMALL_CLAIM, LARGE_CLAIM),
        cases=cases_12,
        evaluate=evaluate_12,
    ),
    on_testbed(
        name="llft-14",
        title="Latency by number of replicas",
        source="section VI.A, Figure 14",
        claims=(FLAT_CLAIM,),
        cases=cases_14,
        evaluate=evaluate_14,
    ),
)

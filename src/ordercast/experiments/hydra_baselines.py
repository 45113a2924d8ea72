"""The two baselines of Hydra's microbenchmarks against each other (NSDI 2023, section 7.1.1, Figure 2).

Hydra itself is not needed for them: how far apart unordered and atomic multicast are follows from what the
paper prints of Hydra against each. Clients are added until throughput rises no more.
"""

from collections.abc import Iterable, Mapping
from statistics import median

from ordercast.experiments.experiment import Case, Experiment, Measurement, Outcome, Results, Setup
from ordercast.experiments.hydra_testbed import microbenchmark
from ordercast.experiments.published import published
from ordercast.pipeline.cases import Value
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference, over_seeds

UNORDERED, ATOMIC = "unordered", "atomic_multicast"
PROTOCOLS = (UNORDERED, ATOMIC)
NAMES = {UNORDERED: "unordered multicast", ATOMIC: "atomic multicast"}
RATE, LATENCY = "client_messages_per_s", "client_p50_ns"

THROUGHPUT_CLAIM = "baseline.atomic_vs_unordered_throughput"
GROUP_SIZE_CLAIM = "baseline.atomic_group_size"
GROUPS_CLAIM = "baseline.atomic_vs_unordered_groups15"

_PAPER = "Hydra (NSDI 2023)"
_MODEL = "Model: a packet costs 5 us of CPU in or out, each copy of it too; 100 Gb/s star."


def _seeds(setup: Setup) -> range:
    return range(2 if setup.quick else 3)


def _cases(
    protocols: Iterable[str],
    shapes: Iterable[tuple[int, int]],
    loads: Iterable[int],
    messages: int,
    setup: Setup,
) -> list[Case]:
    """All combinations; `loads` are clients for each group, `messages` are for each group too."""
    return [
        Case(
            parameters={
                "protocol": protocol,
                "groups": groups,
                "receivers": receivers,
                "clients": load * groups,
            },
            seed=seed,
            scenario=microbenchmark(
                protocol,
                clients=load * groups,
                seed=seed,
                messages=messages * groups,
                groups=groups,
                receivers=receivers,
            ),
        )
        for protocol in protocols
        for groups, receivers in shapes
        for load in loads
        for seed in _seeds(setup)
    ]


def peaks(results: Results) -> dict[int, float]:
    """For each seed, the highest throughput over all loads."""
    found: dict[int, float] = {}
    for result in results.all:
        seed = result.case.seed
        found[seed] = max(found.get(seed, 0.0), result.values[RATE])
    return found


def ratio(claim: str, above: Results, below: Results) -> Measurement:
    """The ratio of two highest throughputs: its median over seeds, and its range in the note."""
    over, under = peaks(above), peaks(below)
    ratios = [over[seed] / under[seed] for seed in sorted(over)]
    note = f"{min(ratios):.4g} to {max(ratios):.4g} over {len(ratios)} seeds"
    return Measurement(claim=claim, value=median(ratios), note=note)


def cases_2a(setup: Setup) -> list[Case]:
    """One group of three receivers, more and more clients."""
    loads = (1, 2, 4, 8, 16) if setup.quick else (1, 2, 3, 4, 6, 8, 16, 32)
    return _cases(PROTOCOLS, [(1, 3)], loads, 2_000 if setup.quick else 4_000, setup)


def evaluate_2a(results: Results) -> Outcome:
    """Latency over throughput, load by load."""
    by = results.by("protocol")
    curves = []
    for protocol in PROTOCOLS:
        points = []
        for load in by[protocol].by("clients").values():
            rates, latencies = load.values(RATE), load.values(LATENCY)
            (point,) = over_seeds([(median(rates) / 1e3, [value / 1e3 for value in latencies])])
            points.append(point)
        curves.append(Curve(label=NAMES[protocol], points=tuple(points)))
    highest, printed = median(peaks(by[UNORDERED]).values()) / 1e3, published(THROUGHPUT_CLAIM)
    figure = Figure(
        id="hydra-2a",
        title="Latency and throughput, one group of three receivers",
        caption=f"After Figure 2a of {_PAPER}, without Hydra. Each marker is a load, from one client on. "
        f"Band: all seeds. Dotted: where the paper's ratios put the maximum of atomic multicast. {_MODEL}",
        x=Axis(label="throughput (1000 messages/s)", low=0.0),
        y=Axis(label="median latency at clients (us)", scale="log"),
        curves=tuple(curves),
        references=(
            Reference(
                label=f"atomic multicast's maximum, by the paper ({printed:.3g} of unordered)",
                x=printed * highest,
            ),
        ),
    )
    return Outcome(measurements=(ratio(THROUGHPUT_CLAIM, by[ATOMIC], by[UNORDERED]),), figures=(figure,))


def cases_group_size(setup: Setup) -> list[Case]:
    """One group of three to nine receivers, at loads around saturation."""
    sizes = (3, 9) if setup.quick else (3, 5, 7, 9)
    messages = 1_500 if setup.quick else 2_500
    return _cases(PROTOCOLS, [(1, size) for size in sizes], (8, 16), messages, setup)


def evaluate_group_size(results: Results) -> Outcome:
    """Maximum throughput over the size of the group."""
    by, printed = results.by("protocol"), published(GROUP_SIZE_CLAIM)
    figure = Figure(
        id="hydra-group-size",
        title="Maximum throughput over group size",
        caption=f'Section 7.1.1 of {_PAPER}, "Increasing group size", without Hydra. Band: all seeds. '
        f"{_MODEL}",
        x=Axis(label="receivers in the group", low=2.0, high=10.0),
        y=Axis(label="max throughput (1000 messages/s)", scale="log"),
        curves=_peak_curves(by, "receivers"),
        references=(
            Reference(
                label=f"atomic multicast at 9, by the paper ({printed:.3g} of that at 3)",
                x=9.0,
                y=printed * median(peaks(by[ATOMIC].where(receivers=3)).values()) / 1e3,
            ),
        ),
    )
    atomic = by[ATOMIC]
    measured = ratio(GROUP_SIZE_CLAIM, atomic.where(receivers=9), atomic.where(receivers=3))
    return Outcome(measurements=(measured,), figures=(figure,))


def cases_groups(setup: Setup) -> list[Case]:
    """Up to fifteen groups of three; a fifth of the messages goes to two of them."""
    counts = (1, 15) if setup.quick else (1, 5, 10, 15)
    loads = (8,) if setup.quick else (6, 12)
    return _cases(PROTOCOLS, [(count, 3) for count in counts], loads, 600 if setup.quick else 800, setup)


def evaluate_groups(results: Results) -> Outcome:
    """Maximum throughput over the number of groups."""
    by, printed = results.by("protocol"), published(GROUPS_CLAIM)
    many = {protocol: by[protocol].where(groups=15) for protocol in PROTOCOLS}
    figure = Figure(
        id="hydra-2c",
        title="Maximum throughput over the number of groups",
        caption=f"After Figure 2c of {_PAPER}, without Hydra: groups of three, 80% of messages to one group, "
        f"20% to two. Band: all seeds. {_MODEL}",
        x=Axis(label="groups", low=0.0, high=16.0),
        y=Axis(label="max throughput (1000 messages/s)", low=0.0),
        curves=_peak_curves(by, "groups"),
        references=(
            Reference(
                label=f"atomic multicast at 15, by the paper ({printed:.3g} of unordered)",
                x=15.0,
                y=printed * median(peaks(many[UNORDERED]).values()) / 1e3,
            ),
        ),
    )
    measured = ratio(GROUPS_CLAIM, many[ATOMIC], many[UNORDERED])
    return Outcome(measurements=(measured,), figures=(figure,))


def _peak_curves(by: Mapping[Value, Results], parameter: str) -> tuple[Curve, ...]:
    curves = []
    for protocol in PROTOCOLS:
        sizes = by[protocol].by(parameter)
        highest: list[tuple[float, list[float]]] = [
            (float(size), [peak / 1e3 for peak in peaks(results).values()]) for size, results in sizes.items()
        ]
        points: tuple[Point, ...] = over_seeds(highest)
        curves.append(Curve(label=NAMES[protocol], points=points))
    return tuple(curves)


EXPERIMENTS = (
    Experiment(
        name="hydra-2a",
        title="Baselines: latency and throughput",
        source=f"{_PAPER}, section 7.1.1, Figure 2a",
        claims=(THROUGHPUT_CLAIM,),
        cases=cases_2a,
        evaluate=evaluate_2a,
    ),
    Experiment(
        name="hydra-group-size",
        title="Baselines: larger groups",
        source=f"{_PAPER}, section 7.1.1",
        claims=(GROUP_SIZE_CLAIM,),
        cases=cases_group_size,
        evaluate=evaluate_group_size,
    ),
    Experiment(
        name="hydra-2c",
        title="Baselines: more groups",
        source=f"{_PAPER}, section 7.1.1, Figure 2c",
        claims=(GROUPS_CLAIM,),
        cases=cases_groups,
        evaluate=evaluate_groups,
    ),
)

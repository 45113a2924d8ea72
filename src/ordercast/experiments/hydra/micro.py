"""Hydra's microbenchmarks against unordered and atomic multicast (NSDI 2023, section 7.1.1, Figure 2).

Clients are added until throughput rises no more. Hydra has two switch sequencers, and its receivers ask for a
flush as soon as a message waits for one: the plainest of the policies of section 4.6.1, which the paper names
here. The adaptive policy, the default of the product, is measured beside it and never counts for a claim.

How far apart the two baselines are follows from what the paper prints of Hydra against each; these derived
claims need no Hydra.
"""

from collections.abc import Iterable
from statistics import median

from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.results import (
    MODEL,
    NAMES,
    ORDER,
    ORDER_OF_ATOMIC,
    PAPER,
    compared,
    latencies,
    latency_curve,
    load_curve,
    peak_curve,
    peaks,
    ratio,
    typical_ratio,
)
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import ATOMIC, HYDRA, UNORDERED
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Curve, Figure, Reference

SOLICITED, ADAPTIVE = "solicited", "adaptive"
SYSTEMS = ((UNORDERED, ""), (ATOMIC, ""), (HYDRA, SOLICITED), (HYDRA, ADAPTIVE))
"""Each with its flush policy."""

ATOMIC_CLAIM = "baseline.atomic_vs_unordered_throughput"
ATOMIC_SIZE_CLAIM = "baseline.atomic_group_size"
ATOMIC_GROUPS_CLAIM = "baseline.atomic_vs_unordered_groups15"
MICRO = "hydra.micro."
SIZE = "hydra.group_size."
GROUPS = "hydra.groups15."

_RATE_AXIS = "max throughput (1000 messages/s)"
_WAIT_AXIS = "median latency at clients (us)"


def _cases(shapes: Iterable[tuple[int, int]], effort: Effort) -> list[Case]:
    """All systems with so many groups of so many receivers."""
    return [
        Case(
            parameters={"system": system, "flush": flush, "groups": groups, "receivers": receivers},
            seed=seed,
            function="ordercast.experiments.hydra.saturation:closed_loop",
            arguments={"messages": effort.messages, "flush_ns": _flush_ns(flush)},
        )
        for system, flush in SYSTEMS
        if effort.thorough or flush != ADAPTIVE
        for groups, receivers in shapes
        for seed in range(effort.seeds)
    ]


def _flush_ns(flush: str) -> int:
    """Solicited at once; otherwise the product's default."""
    return 0 if flush == SOLICITED else -1


def pick(results: Results, system: str, flush: str = "") -> Results:
    """The results of one system."""
    return results.where(system=system, flush=flush)


def name(system: str, flush: str) -> str:
    """The name of a curve."""
    return f"{NAMES[system]}, {flush}" if flush else NAMES[system]


def cases_2a(effort: Effort) -> list[Case]:
    """One group of three receivers."""
    return _cases([(1, 3)], effort)


def evaluate_2a(results: Results) -> Evaluation:
    """Latency over throughput, load by load."""
    unordered, atomic = pick(results, UNORDERED), pick(results, ATOMIC)
    hydra, adaptive = pick(results, HYDRA, SOLICITED), pick(results, HYDRA, ADAPTIVE)
    highest = median(peaks(unordered).values()) / 1e3
    base, slow, alone, lazy = map(latencies, (unordered, atomic, hydra, adaptive))
    figure = Figure(
        id="hydra-2a",
        title="Latency and throughput, one group of three receivers",
        caption=f"After Figure 2a of {PAPER}. Each marker is a load, from one client on. Band: all seeds. "
        f"Dotted: the maximum throughputs by the paper's ratios. {MODEL}",
        x=Axis(label="throughput (1000 messages/s)", low=0.0),
        y=Axis(label=_WAIT_AXIS, scale="log"),
        curves=tuple(load_curve(name(*system), pick(results, *system)) for system in _shown(results)),
        references=tuple(
            Reference(label=f"{system}, by the paper ({share:.3g} of unordered)", x=share * highest)
            for system, share in (
                ("atomic multicast", published(ATOMIC_CLAIM)),
                ("Hydra", published(f"{MICRO}throughput_vs_unordered")),
            )
        ),
    )
    measured = (
        ratio(f"{MICRO}throughput_vs_atomic", hydra, atomic, _adaptive(adaptive, atomic)),
        compared(f"{MICRO}latency_vs_atomic", {seed: alone[seed] / slow[seed] for seed in alone}),
        compared(
            f"{MICRO}latency_penalty_us",
            {seed: alone[seed] - base[seed] for seed in alone},
            f"unordered multicast {median(base.values()):.3g} us"
            + (f", adaptive flushes {median(lazy.values()):.3g} us" if lazy else ""),
        ),
        ratio(f"{MICRO}throughput_vs_unordered", hydra, unordered, ORDER, _adaptive(adaptive, unordered)),
        ratio(ATOMIC_CLAIM, atomic, unordered, ORDER_OF_ATOMIC),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def _shown(results: Results) -> list[tuple[str, str]]:
    """The systems that were measured."""
    return [system for system in SYSTEMS if pick(results, *system).all]


def _adaptive(adaptive: Results, other: Results) -> str:
    return f"adaptive flushes: {typical_ratio(adaptive, other):.4g}" if adaptive.all else ""


def cases_group_size(effort: Effort) -> list[Case]:
    """One group of three to nine receivers."""
    if effort.thorough:
        return _cases([(1, size) for size in (3, 5, 7, 9)], effort)
    cases = _cases([(1, size) for size in (3, 9)], effort)
    return [case for case in cases if case.parameters["system"] != UNORDERED]  # no claim needs it


def evaluate_group_size(results: Results) -> Evaluation:
    """Maximum throughput over the size of the group."""
    atomic, hydra = pick(results, ATOMIC), pick(results, HYDRA, SOLICITED)
    adaptive = pick(results, HYDRA, ADAPTIVE)
    small, large = {"receivers": 3}, {"receivers": 9}
    figure = Figure(
        id="hydra-group-size",
        title="Maximum throughput over group size",
        caption=f'Section 7.1.1 of {PAPER}, "Increasing group size". Band: all seeds. {MODEL}',
        x=Axis(label="receivers in the group", low=2.0, high=10.0),
        y=Axis(label=_RATE_AXIS, scale="log"),
        curves=_peak_curves(results, "receivers"),
        references=tuple(
            Reference(
                label=f"{label} at 9, by the paper ({published(claim):.3g} of that at 3)",
                x=9.0,
                y=published(claim) * median(peaks(of.where(**small)).values()) / 1e3,
            )
            for label, claim, of in (
                ("atomic multicast", ATOMIC_SIZE_CLAIM, atomic),
                ("Hydra", f"{SIZE}drop_3_to_9", hydra),
            )
        ),
    )
    measured = (
        ratio(
            f"{SIZE}drop_3_to_9",
            hydra.where(**large),
            hydra.where(**small),
            _adaptive(adaptive.where(**large), adaptive.where(**small)),
        ),
        ratio(
            f"{SIZE}throughput_vs_atomic_9",
            hydra.where(**large),
            atomic.where(**large),
            _adaptive(adaptive.where(**large), atomic.where(**large)),
        ),
        ratio(ATOMIC_SIZE_CLAIM, atomic.where(**large), atomic.where(**small)),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def cases_groups(effort: Effort) -> list[Case]:
    """Up to fifteen groups of three; a fifth of the messages goes to two of them."""
    counts = (1, 5, 10, 15) if effort.thorough else (15,)
    return _cases([(count, 3) for count in counts], effort)


def evaluate_groups(results: Results) -> Evaluation:
    """Latency and maximum throughput over the number of groups."""
    many = results.where(groups=15)
    unordered, atomic = pick(many, UNORDERED), pick(many, ATOMIC)
    hydra, adaptive = pick(many, HYDRA, SOLICITED), pick(many, HYDRA, ADAPTIVE)
    about = f"of {PAPER}: groups of three, 80% of messages to one group, 20% to two. Band: all seeds. {MODEL}"
    groups = Axis(label="groups", low=0.0, high=16.0)
    highest = median(peaks(unordered).values()) / 1e3
    waits = Figure(
        id="hydra-2b",
        title="Latency over the number of groups",
        caption=f"After Figure 2b {about} One client for each group.",
        x=groups,
        y=Axis(label=_WAIT_AXIS, low=0.0),
        curves=tuple(
            latency_curve(name(*system), pick(results, *system), "groups") for system in _shown(results)
        ),
    )
    rates = Figure(
        id="hydra-2c",
        title="Maximum throughput over the number of groups",
        caption=f"After Figure 2c {about}",
        x=groups,
        y=Axis(label=_RATE_AXIS, low=0.0),
        curves=_peak_curves(results, "groups"),
        references=tuple(
            Reference(
                label=f"{label} at 15, by the paper ({published(claim):.3g} of unordered)",
                x=15.0,
                y=published(claim) * highest,
            )
            for label, claim in (
                ("atomic multicast", ATOMIC_GROUPS_CLAIM),
                ("Hydra", f"{GROUPS}throughput_vs_unordered"),
            )
        ),
    )
    measured = (
        ratio(
            f"{GROUPS}throughput_vs_unordered",
            hydra,
            unordered,
            ORDER,
            _adaptive(adaptive, unordered),
        ),
        ratio(f"{GROUPS}throughput_vs_atomic", hydra, atomic, _adaptive(adaptive, atomic)),
        ratio(ATOMIC_GROUPS_CLAIM, atomic, unordered, ORDER_OF_ATOMIC),
    )
    return Evaluation(measurements=measured, figures=(waits, rates))


def _peak_curves(results: Results, parameter: str) -> tuple[Curve, ...]:
    return tuple(peak_curve(name(*system), pick(results, *system), parameter) for system in _shown(results))


EXPERIMENTS = (
    on_testbed(
        name="hydra-2a",
        title="Latency and throughput",
        source=f"{PAPER}, section 7.1.1, Figure 2a",
        claims=(
            f"{MICRO}throughput_vs_atomic",
            f"{MICRO}latency_vs_atomic",
            f"{MICRO}latency_penalty_us",
            f"{MICRO}throughput_vs_unordered",
            ATOMIC_CLAIM,
        ),
        cases=cases_2a,
        evaluate=evaluate_2a,
    ),
    on_testbed(
        name="hydra-group-size",
        title="Larger groups",
        source=f"{PAPER}, section 7.1.1",
        claims=(f"{SIZE}drop_3_to_9", f"{SIZE}throughput_vs_atomic_9", ATOMIC_SIZE_CLAIM),
        cases=cases_group_size,
        evaluate=evaluate_group_size,
    ),
    on_testbed(
        name="hydra-2c",
        title="More groups",
        source=f"{PAPER}, section 7.1.1, Figures 2b and 2c",
        claims=(f"{GROUPS}throughput_vs_unordered", f"{GROUPS}throughput_vs_atomic", ATOMIC_GROUPS_CLAIM),
        cases=cases_groups,
        evaluate=evaluate_groups,
    ),
)

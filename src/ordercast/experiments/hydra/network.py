"""Load balancing in the network (Hydra, NSDI 2023, section 7.4, Figures 7 and 8): one sequencer or eight.

All multicasts through one rack fill its uplinks; through eight, no link is half full. When bursts congest the
rack of a sequencer, every message waits there if it is the only one, and one in eight if there are eight: the
median is that of the others. They do not wait for the messages that are stuck, because those have no stamp
yet; and the flushes of the congested sequencer go out by uplinks that are free. This is so with periodic
flushes only. A receiver that solicits them has its question stuck as well: with eight sequencers the median
is then about 0.4 ms, half of what it is with one.

The network, all loads and who chose them: `fat_tree.py`.
"""

from statistics import median

import numpy as np

from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.hydra.fat_tree import FULL_GBPS, LIGHT_GBPS, Route, data_centre, observe
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference, over_seeds

SINGLE_CLAIM = "hydra.net.link_utilisation_single"
EIGHT_CLAIM = "hydra.net.link_utilisation_eight"
MEDIAN_CLAIM = "hydra.net.congestion_median"

AGGREGATION, CORE = "aggregation", "core"
MEDIAN, DELIVERED = "latency_q50_ns", "delivered"
SATURATED = 0.95
QUANTILES = range(1, 100)

_PAPER = "Hydra (NSDI 2023)"
_NETWORK = "FatTree of 2,560 servers and 112 switches, with background traffic at 0.1 of each server's link"
_SEQUENCERS = {1: "one sequencer", 8: "eight sequencers"}


def utilisation(*, sequencers: int, measured_ms: float, seed: int) -> dict[str, float]:
    """How busy the links are at full load: of each layer all links, the busiest first."""
    scenario = data_centre(
        sequencers=sequencers,
        route="random",
        receiver_gbps=FULL_GBPS,
        bursts=False,
        measured_ms=measured_ms,
        seed=seed,
    )
    observed = observe(scenario, measured_ms)
    layers = {AGGREGATION: observed.aggregation, CORE: observed.core}
    return {
        _link(layer, rank): used for layer, all_used in layers.items() for rank, used in enumerate(all_used)
    }


def latency(
    *, sequencers: int, route: Route, bursts: bool, measured_ms: float, seed: int
) -> dict[str, float]:
    """The distribution of latencies at light load, and what share of messages arrived."""
    scenario = data_centre(
        sequencers=sequencers,
        route=route,
        receiver_gbps=LIGHT_GBPS,
        bursts=bursts,
        measured_ms=measured_ms,
        seed=seed,
    )
    observed = observe(scenario, measured_ms)
    values = np.percentile(observed.latencies_ns, list(QUANTILES)).tolist()
    return {DELIVERED: observed.delivered} | {
        _quantile(quantile): value for quantile, value in zip(QUANTILES, values, strict=True)
    }


def _link(layer: str, rank: int) -> str:
    return f"{layer}_{rank:03d}"


def _quantile(quantile: int) -> str:
    return f"latency_q{quantile:02d}_ns"


def _seeds(setup: Setup) -> range:
    return range(1 if setup.quick else 3)


def cases_7(setup: Setup) -> list[Case]:
    """One sequencer and eight, under the same load."""
    return [
        Case(
            parameters={"sequencers": sequencers},
            seed=seed,
            function=f"{__name__}:utilisation",
            arguments={"measured_ms": 2.0 if setup.quick else 5.0},
        )
        for sequencers in _SEQUENCERS
        for seed in _seeds(setup)
    ]


def evaluate_7(results: Results) -> Evaluation:
    """The busiest links, and all links in order."""
    by = results.by("sequencers")
    # The seed that is worst for the claim counts: every run has to saturate links, and none may with eight.
    single = by[1].values(_link(AGGREGATION, 0))
    eight = [
        max(pair)
        for pair in zip(by[8].values(_link(AGGREGATION, 0)), by[8].values(_link(CORE, 0)), strict=True)
    ]
    full = [len([used for used in _all(run, AGGREGATION) if used >= SATURATED]) for run in _runs(by[1])]
    curves = tuple(
        Curve(label=f"{name}, {layer} links", points=_ranks(by[sequencers], layer), marks=False)
        for sequencers, name in _SEQUENCERS.items()
        for layer in (AGGREGATION, CORE)
    )
    figure = Figure(
        id="hydra-7",
        title="Utilisation of links, one and eight sequencers",
        caption=f"After Figure 7 of {_PAPER}. {_NETWORK}; 16 groups of three receivers, each of which gets "
        f"{FULL_GBPS:.3g} Gb/s. Links of a layer in order of their utilisation, the directions of a cable "
        "separately. Band: all seeds. Dotted: the paper's upper limit of all links with eight sequencers.",
        x=Axis(label="rank of the link, the busiest first", scale="log", low=1.0),
        y=Axis(label="utilisation", low=0.0, high=1.05),
        curves=curves,
        references=(Reference(label="eight sequencers, by the paper", y=published(EIGHT_CLAIM)),),
    )
    measurements = (
        Measurement(
            claim=SINGLE_CLAIM,
            value=min(single),
            note=f"lowest of {len(single)} seeds; {min(full)} to {max(full)} links above {SATURATED}",
        ),
        Measurement(claim=EIGHT_CLAIM, value=max(eight), note=f"highest of {len(eight)} seeds"),
    )
    return Evaluation(measurements=measurements, figures=(figure,))


def _runs(results: Results) -> list[Results]:
    return [Results([result]) for result in results.all]


def _all(run: Results, layer: str) -> list[float]:
    """The utilisation of all links of a layer in one run."""
    (result,) = run.all
    return [value for name, value in result.values.items() if name.startswith(f"{layer}_")]


def _ranks(results: Results, layer: str) -> tuple[Point, ...]:
    by_seed = [_all(run, layer) for run in _runs(results)]
    return over_seeds((rank + 1.0, used) for rank, used in enumerate(zip(*by_seed, strict=True)))


_DEPLOYMENTS: dict[str, tuple[int, Route, bool]] = {
    "one sequencer, no bursts": (1, "random", False),
    "one sequencer": (1, "random", True),
    "eight sequencers": (8, "random", True),
    "eight sequencers, congestion-aware routing": (8, "congestion", True),
}


def cases_8(setup: Setup) -> list[Case]:
    """Bursts at the rack of one sequencer; without them, too, to see what they do."""
    return [
        Case(
            parameters={"sequencers": sequencers, "route": route, "bursts": bursts},
            seed=seed,
            function=f"{__name__}:latency",
            arguments={"measured_ms": 6.0 if setup.quick else 10.0},
        )
        for sequencers, route, bursts in _DEPLOYMENTS.values()
        for seed in _seeds(setup)
    ]


def evaluate_8(results: Results) -> Evaluation:
    """Medians against each other, seed by seed, and the distributions."""
    by = {
        name: results.where(sequencers=sequencers, route=route, bursts=bursts)
        for name, (sequencers, route, bursts) in _DEPLOYMENTS.items()
    }
    calm, single, eight, aware = (found.values(MEDIAN) for found in by.values())
    ratios = [one / other for one, other in zip(single, eight, strict=True)]
    worse = [one / other for one, other in zip(single, calm, strict=True)]
    tails = [median(by[name].values(_quantile(99))) / 1e3 for name in list(by)[2:]]
    shares = [median(found.values(DELIVERED)) for found in by.values()]
    figure = Figure(
        id="hydra-8",
        title="Latency of multicasts under bursts at one sequencer's rack",
        caption=f"After Figure 8 of {_PAPER}. {_NETWORK}; 16 groups of three receivers, each of which gets "
        f"{LIGHT_GBPS:.3g} Gb/s. Bursts congest the links into the rack of one sequencer. Median of seeds. "
        f"Messages lost in full queues do not count. Star: the median of one sequencer, divided by the "
        f"paper's {published(MEDIAN_CLAIM):.3g}.",
        x=Axis(label="latency (us)", scale="log"),
        y=Axis(label="share of deliveries", low=0.0, high=1.0),
        curves=tuple(Curve(label=name, points=_cdf(found), marks=False) for name, found in by.items()),
        references=(
            Reference(
                label="median of eight sequencers, by the paper",
                x=median(single) / published(MEDIAN_CLAIM) / 1e3,
                y=0.5,
            ),
        ),
    )
    note = (
        f"{min(ratios):.3g} to {max(ratios):.3g} over {len(ratios)} seeds; bursts make one sequencer "
        f"{median(worse):.3g} times slower; congestion-aware routing takes eight from {tails[0]:.3g} to "
        f"{tails[1]:.3g} us at the 99th percentile (median {median(eight) / 1e3:.3g} to "
        f"{median(aware) / 1e3:.3g}); one sequencer delivered {shares[1]:.0%} of all, eight {shares[2]:.0%}"
    )
    measured = Measurement(claim=MEDIAN_CLAIM, value=median(ratios), note=note)
    return Evaluation(measurements=(measured,), figures=(figure,))


def _cdf(results: Results) -> tuple[Point, ...]:
    return tuple(
        Point(median(results.values(_quantile(quantile))) / 1e3, quantile / 100) for quantile in QUANTILES
    )


EXPERIMENTS = (
    Experiment(
        name="hydra-7",
        title="Utilisation of links with one and eight sequencers",
        source=f"{_PAPER}, section 7.4, Figure 7",
        claims=(SINGLE_CLAIM, EIGHT_CLAIM),
        cases=cases_7,
        evaluate=evaluate_7,
    ),
    Experiment(
        name="hydra-8",
        title="Latency under congestion at one sequencer",
        source=f"{_PAPER}, section 7.4, Figure 8",
        claims=(MEDIAN_CLAIM,),
        cases=cases_8,
        evaluate=evaluate_8,
    ),
)

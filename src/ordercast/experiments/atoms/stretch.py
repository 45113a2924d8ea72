"""Latency stretch (section 4.2, Figure 2): the way through the sequencing nodes over the direct one.

128 hosts on a topology of 10,000 routers, of both kinds; each member of a group sends to it. The stretch of a
destination is the mean delay of what it gets from others, over the mean direct delay of the same messages. A
run has a topology, hosts and groups of its own. Measured is the largest stretch of a destination: the median
over runs, on the kind of topology with the higher one.

With the folder of data, GT-ITM's own graphs take the place of ours; the hosts and groups of each run differ.
"""

import numpy as np

from ordercast.experiments.atoms.results import PAPER, RUNS, seeds, spread, topology_files
from ordercast.experiments.atoms.runs import HOST, run_values
from ordercast.experiments.atoms.topology import KINDS
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference

GROUPS = (8, 16, 32, 64)
CLAIMS = {8: "atoms.stretch_8", 64: "atoms.stretch_64"}
LARGEST = "stretch_max"


def cases(setup: Setup) -> list[Case]:
    """Every number of groups on both kinds of topology."""
    files = topology_files(setup.data) or dict.fromkeys(KINDS, "")
    return [
        Case(
            parameters={"topology": topology, "groups": groups},
            seed=seed,
            function="ordercast.experiments.atoms.runs:stretch",
            arguments={"file": file, "runs": RUNS},
            weight=groups,
        )
        for topology, file in files.items()
        for groups in GROUPS
        for seed in seeds(setup)
    ]


def evaluate(results: Results) -> Evaluation:
    """The largest stretch with few and with many groups, and its distribution over destinations."""
    figures = tuple(_figure(str(topology), each) for topology, each in results.by("topology").items())
    return Evaluation(
        measurements=tuple(_measured(claim, results.where(groups=n)) for n, claim in CLAIMS.items()),
        figures=figures,
    )


def _measured(claim: str, results: Results) -> Measurement:
    medians = {
        str(topology): float(np.median(run_values(each, LARGEST)))
        for topology, each in results.by("topology").items()
    }
    worst = max(medians, key=medians.__getitem__)
    others = ", ".join(f"{topology} {value:.3g}" for topology, value in medians.items())
    runs = run_values(results.where(topology=worst), LARGEST)
    return Measurement(claim=claim, value=medians[worst], note=f"{worst}: {spread(runs)}; medians: {others}")


def _figure(topology: str, results: Results) -> Figure:
    return Figure(
        id=f"atoms-2-{topology}",
        title=f"Latency stretch, topology {topology}",
        caption=f"After Figure 2 of {PAPER}: 128 hosts in clusters of eight on 10,000 routers, groups whose"
        f" sizes follow Zipf's law. Destinations of {len(results.seeds) * RUNS} runs together.",
        x=Axis(label="latency stretch", low=0.0),
        y=Axis(label="share of destinations", low=0.0, high=1.0),
        curves=tuple(_curve(f"{groups} groups", each) for groups, each in results.by("groups").items()),
        references=tuple(
            Reference(label=f"largest with {groups} groups in the paper", x=published(claim))
            for groups, claim in CLAIMS.items()
        ),
        beside="atoms-2",
    )


def _curve(label: str, results: Results) -> Curve:
    records = (record for result in results.all for record in result.records)
    of_hosts = [float(value) for record in records for name, value in record.items() if name.startswith(HOST)]
    found = np.sort(of_hosts)
    ranks = np.unique(np.linspace(0, len(found) - 1, 200).astype(int))
    points = tuple(Point(float(found[rank]), (int(rank) + 1) / len(found)) for rank in ranks)
    numbers = {"median": float(np.median(found)), "95th percentile": float(np.percentile(found, 95))}
    return Curve(label=label, points=points, marks=False, steps=True, numbers=numbers)


EXPERIMENTS = (
    Experiment(
        "atoms-stretch",
        "Latency stretch of sequencing",
        f"{PAPER}, section 4.2, Figure 2",
        tuple(CLAIMS.values()),
        cases,
        evaluate,
    ),
)

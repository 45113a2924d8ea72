"""How many sequencing nodes there are: over the number of groups, and over their density (Figures 3 and 4).

Only nodes that order overlaps are counted; an ingress-only atom is on none, as in the paper.

The slopes of Figure 3 are those of straight lines from one group to 20, and from 20 to 64. The peak of Figure
4 is the occupancy with the highest mean. *Dense* is the largest number of nodes of all runs with an occupancy
above 0.9.
"""

from statistics import fmean

from ordercast.experiments.atoms.results import PAPER, RUNS, bars, captioned, seeds, spread
from ordercast.experiments.atoms.runs import NODES, OVERLAPS, run_values
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Curve, Figure, Reference

GROUPS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
BEND = 20
OCCUPIED_GROUPS = 32
OCCUPANCIES = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
DENSE = (0.92, 0.94, 0.96, 0.98, 1.0)
FLATTEN_CLAIM, PEAK_CLAIM, DENSE_CLAIM = (
    "atoms.nodes_flatten",
    "atoms.occupancy_peak",
    "atoms.occupancy_dense",
)


def cases_groups(setup: Setup) -> list[Case]:
    """Figure 3."""
    function = "ordercast.experiments.atoms.runs:count_nodes"
    return [
        Case(
            parameters={"groups": groups},
            seed=seed,
            function=function,
            arguments={"runs": RUNS},
            weight=groups,
        )
        for groups in GROUPS
        for seed in seeds(setup)
    ]


def cases_occupancy(setup: Setup) -> list[Case]:
    """Figure 4."""
    function = "ordercast.experiments.atoms.runs:count_dense_nodes"
    return [
        Case(
            parameters={"occupancy": occupancy},
            seed=seed,
            function=function,
            arguments={"groups": OCCUPIED_GROUPS, "runs": RUNS},
            weight=OCCUPIED_GROUPS,
        )
        for occupancy in (*OCCUPANCIES, 0.9, *DENSE)
        for seed in seeds(setup)
    ]


def evaluate_groups(results: Results) -> Evaluation:
    """How much slower the number of nodes grows with many groups."""
    means = {int(groups): fmean(run_values(each, NODES)) for groups, each in results.by("groups").items()}
    first, last = min(means), max(means)
    before = (means[BEND] - means[first]) / (BEND - first)
    after = (means[last] - means[BEND]) / (last - BEND)
    note = f"{before:.3g} nodes a group up to {BEND} groups, {after:.3g} from there on; at {last} groups:"
    largest = spread(run_values(results.where(groups=last), NODES))
    points = tuple(
        bars(float(groups), run_values(each, NODES)) for groups, each in results.by("groups").items()
    )
    figure = Figure(
        id="atoms-3",
        title="Sequencing nodes over the number of groups",
        caption=captioned(results, f"After Figure 3 of {PAPER}: 128 hosts, group sizes after Zipf."),
        x=Axis(label="groups", low=0.0),
        y=Axis(label="sequencing nodes", low=0.0),
        curves=(Curve(label="sequencing nodes", points=points),),
    )
    measured = Measurement(claim=FLATTEN_CLAIM, value=after / before, note=f"{note} {largest}")
    return Evaluation(measurements=(measured,), figures=(figure,))


def evaluate_occupancy(results: Results) -> Evaluation:
    """Where the number of nodes is highest, and how many are left at the dense end."""
    found = {float(occupancy): each for occupancy, each in results.by("occupancy").items()}
    means = {occupancy: fmean(run_values(each, NODES)) for occupancy, each in found.items()}
    peak = max(means, key=means.__getitem__)
    dense = [nodes for occupancy in DENSE for nodes in run_values(found[occupancy], NODES)]
    note = f"{means[peak]:.3g} nodes there; {spread(run_values(found[peak], NODES))}"
    return Evaluation(
        measurements=(
            Measurement(claim=PEAK_CLAIM, value=peak, note=note),
            Measurement(claim=DENSE_CLAIM, value=max(dense), note=f"the largest of {len(dense)} runs"),
        ),
        figures=(
            _occupancy_figure(results, found, NODES, "sequencing nodes"),
            _occupancy_figure(results, found, OVERLAPS, "different double overlaps"),
        ),
    )


def _occupancy_figure(results: Results, found: dict[float, Results], value: str, what: str) -> Figure:
    points = tuple(bars(occupancy, run_values(each, value)) for occupancy, each in sorted(found.items()))
    peak = Reference(label="peak of nodes in the paper", x=published(PEAK_CLAIM))
    return Figure(
        id=f"atoms-4-{value}",
        title=f"{what.capitalize()} over the expected occupancy",
        caption=captioned(results, f"After Figure 4 of {PAPER}: 128 hosts, {OCCUPIED_GROUPS} groups."),
        x=Axis(label="expected occupancy", low=0.0, high=1.0),
        y=Axis(label=what, low=0.0),
        curves=(Curve(label=what, points=points),),
        references=(peak,) if value == NODES else (),
        beside="atoms-4",
    )


EXPERIMENTS = (
    Experiment(
        "atoms-nodes",
        "Sequencing nodes over the number of groups",
        f"{PAPER}, section 4.3, Figure 3",
        (FLATTEN_CLAIM,),
        cases_groups,
        evaluate_groups,
    ),
    Experiment(
        "atoms-occupancy",
        "Sequencing nodes over the density of groups",
        f"{PAPER}, section 4.4, Figure 4",
        (PEAK_CLAIM, DENSE_CLAIM),
        cases_occupancy,
        evaluate_occupancy,
    ),
)

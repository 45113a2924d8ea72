"""A real workload: 10,883 multicasts of e-mail among 143 people, over a topology, ordered in three ways.

Every different set of people who got a message together is a group; it gets as many messages as were sent to
it. The sender is not in the data, so each member sends the same share. People are hosts, in clusters of
eight. There is no queue, so the order of the messages in time does not change what is measured.

- *atoms*: the sequencing graph, on nodes that order no more than the busiest receiver gets.
- *central*: one sequencer, at the host with the least sum of distances.
- *vectors*: no sequencer; each message goes straight to its receivers with a vector timestamp of all people.

Ordering state of a message: 4 bytes for a name (of a group, of an atom) and 8 for a number. The atoms'
message has its group and local number, and name and number of each of its atoms; the central one has one
number; the vector has a number for each person.
"""

import gzip
from pathlib import Path

import numpy as np

from ordercast.components.sequencing_graph import SequencingGraph, Siting
from ordercast.core import LocalError
from ordercast.experiments.atoms.results import bars, email_folder, seeds, topology_files
from ordercast.experiments.atoms.runs import arranged, bounds, each_run, run_values, stretches
from ordercast.experiments.atoms.topology import Lengths, read_topology
from ordercast.experiments.atoms.worlds import Memberships, host_distances
from ordercast.experiments.experiment import Case, CaseValues, Results, Setup
from ordercast.report.figures import Axis, Curve, Figure

FILES = "email-Enron"
NAME_BYTES, NUMBER_BYTES = 4, 8
WAYS = ("atoms", "central", "vectors")


def cases(setup: Setup) -> list[Case]:
    """Some placements of the people on each topology; none without the folder of data."""
    folder = email_folder(setup.data)
    return [
        Case(
            parameters={"topology": topology, "workload": "e-mail"},
            seed=seed,
            function="ordercast.experiments.atoms.email:replay",
            arguments={"file": file, "folder": folder, "runs": 1},
            weight=1_000,
        )
        for topology, file in topology_files(setup.data).items()
        for seed in seeds(setup)
    ]


def replay(*, topology: str, workload: str, seed: int, file: str, folder: str, runs: int) -> CaseValues:
    """All messages, by each of the three ways."""
    return each_run(lambda run: _replay(file, folder, run), seed, runs)


def _replay(file: str, folder: str, seed: int) -> dict[str, float]:
    members, rates = read_multicasts(Path(folder))
    hosts = 1 + max(max(those) for those in members.values())
    distances = host_distances(read_topology(Path(file)), hosts, seed)
    graph, layout = arranged(members, rates)
    sites = np.array(Siting(graph, layout, distances.tolist()).near_paths())
    received = sum(rates[group] for group in rates)
    values = bounds(graph, layout, rates)
    busiest = received * _busiest_share(members, rates)
    found = stretches(members, layout.paths, sites, distances, rates)
    values |= _state(graph, rates, hosts) | _summary("atoms", found)
    values["atoms_busiest"] = max(layout.handled(rates)) / busiest
    values["atoms_ordered"] = max(layout.ordered(rates)) / busiest
    values |= _summary("central", _central(members, rates, distances))
    values["central_busiest"] = received / busiest
    values |= _summary("vectors", dict.fromkeys(found, 1.0))
    values["vectors_busiest"] = 1.0
    return values


def read_multicasts(folder: Path) -> tuple[Memberships, dict[int, float]]:
    """The groups, and how many messages each got; groups of one are left out."""
    sizes = _read(folder / f"{FILES}-nverts.txt.gz")
    people = _read(folder / f"{FILES}-simplices.txt.gz")
    if int(sizes.sum()) != len(people):
        raise LocalError(f"{folder}: the messages have {sizes.sum()} members, but {len(people)} are named")
    names = np.unique(people)
    places = np.searchsorted(names, people)
    counts: dict[tuple[int, ...], int] = {}
    for those in np.split(places, np.cumsum(sizes)[:-1]):
        key = tuple(sorted({int(one) for one in those}))
        if len(key) > 1:
            counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts)
    members = dict(enumerate(ordered))
    return members, {group: float(counts[those]) for group, those in members.items()}


def email_figures(results: Results) -> tuple[Figure, ...]:
    """Three bars for each way: state, stretch, and the busiest machine; nothing without the workload."""
    replayed = Results(result for result in results.all if result.case.parameters.get("workload"))
    if not replayed.all:
        return ()
    wanted = {
        "bytes": "bytes of ordering state in a message",
        "stretch": "mean latency stretch of a destination",
        "busiest": "messages of the busiest machine over those of the busiest receiver",
    }
    return tuple(_figure(replayed, value, label) for value, label in wanted.items())


def _figure(results: Results, value: str, label: str) -> Figure:
    curves = []
    for place, way in enumerate(WAYS):
        point = bars(float(place), run_values(results, f"{way}_{value}"))
        curves.append(Curve(label=f"{way}: {point.y:.3g}", points=(point,)))
    return Figure(
        id=f"atoms-email-{value}",
        title=label.capitalize(),
        caption="E-mail among 143 people, replayed over GT-ITM's topologies; means, and bars from the 10th to"
        " the 90th percentile over placements of the people.",
        x=Axis(label="0 atoms, 1 one central sequencer, 2 vector timestamps", whole=True, low=-0.5, high=2.5),
        y=Axis(label=label, low=0.0),
        curves=tuple(curves),
        beside="atoms-email",
    )


def _read(path: Path) -> np.ndarray:
    try:
        with gzip.open(path, "rt", encoding="ascii") as content:
            return np.array([int(line) for line in content], dtype=np.int64)
    except (OSError, ValueError) as error:
        raise LocalError(f"{path} has no numbers: {error}") from error


def _busiest_share(members: Memberships, rates: dict[int, float]) -> float:
    received = np.zeros(1 + max(max(those) for those in members.values()))
    for group, those in members.items():
        received[list(those)] += rates[group]
    return float(received.max()) / sum(rates.values())


def _state(graph: SequencingGraph, rates: dict[int, float], hosts: int) -> dict[str, float]:
    each = NAME_BYTES + NUMBER_BYTES
    stamped = {group: sum(bool(graph.overlap(atom)) for atom in graph.own_atoms(group)) for group in rates}
    sizes = np.repeat(
        [each * (1 + stamped[group]) for group in rates], [int(rates[group]) for group in rates]
    )
    return {
        "atoms_bytes": float(sizes.mean()),
        "atoms_bytes_median": float(np.median(sizes)),
        "atoms_bytes_p99": float(np.percentile(sizes, 99)),
        "central_bytes": float(NUMBER_BYTES),
        "vectors_bytes": float(NUMBER_BYTES * hosts),
    }


def _central(members: Memberships, rates: dict[int, float], distances: Lengths) -> dict[int, float]:
    paths = dict.fromkeys(members, (0,))
    return stretches(members, paths, np.array([int(distances.sum(axis=0).argmin())]), distances, rates)


def _summary(way: str, found: dict[int, float]) -> dict[str, float]:
    values = list(found.values())
    return {f"{way}_stretch": float(np.mean(values)), f"{way}_stretch_max": max(values)}

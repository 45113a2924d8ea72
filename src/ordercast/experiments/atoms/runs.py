"""One run of an experiment: groups, their graph on sequencing nodes, and what messages meet there.

Delays are the lengths of ways; there is no loss and no queue, as in the paper's simulator (section 4.1).
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from ordercast.components.sequencing_graph import (
    NodeLayout,
    SequencingGraph,
    Siting,
    build,
    busiest_receiver,
    by_load,
    within_load,
)
from ordercast.experiments.atoms.topology import KINDS, Lengths, Topology, make_topology, read_topology
from ordercast.experiments.atoms.worlds import (
    HOSTS,
    Memberships,
    host_distances,
    message_rates,
    occupied_groups,
    zipf_groups,
)
from ordercast.pipeline.cases import CaseValues, Record, Results

LOAD, PATH = "load", "path"
"""Names of the two bounds, which every run measures."""
NODES, OVERLAPS = "nodes", "overlaps"
HOST = "host_"
"""Before the number of a host: the stretch of that destination."""


def stretch(*, topology: str, groups: int, seed: int, runs: int, file: str = "") -> CaseValues:
    """Figure 2: the latency stretch of each destination."""
    return each_run(lambda run: _stretch(topology, file, groups, run), seed, runs)


def count_nodes(*, groups: int, seed: int, runs: int) -> CaseValues:
    """Figure 3: how many sequencing nodes there are."""
    return each_run(lambda run: _bounds(zipf_groups(HOSTS, groups, run)), seed, runs)


def count_dense_nodes(*, occupancy: float, groups: int, seed: int, runs: int) -> CaseValues:
    """Figure 4: how many sequencing nodes and double overlaps there are."""
    return each_run(lambda run: _bounds(occupied_groups(HOSTS, groups, occupancy, run)), seed, runs)


def each_run(measure: Callable[[int], dict[str, float]], seed: int, runs: int) -> CaseValues:
    """Several runs in one case, each with a seed of its own: a record for each."""
    records: list[Record] = [dict(measure(seed * runs + run)) for run in range(runs)]
    return CaseValues(numbers={"runs": float(runs)}, records=records)


def run_values(results: Results, name: str) -> list[float]:
    """The value of this name in every run."""
    return [float(record[name]) for result in results.all for record in result.records]


def _stretch(topology: str, file: str, groups: int, run: int) -> dict[str, float]:
    distances = host_distances(_topology(topology, file, run), HOSTS, run)
    members = zipf_groups(HOSTS, groups, run)
    graph, layout = arranged(members, message_rates(members))
    sites = np.array(Siting(graph, layout, distances.tolist()).near_paths())
    found = stretches(members, layout.paths, sites, distances, message_rates(members))
    values = bounds(graph, layout, message_rates(members)) | {"stretch_max": max(found.values())}
    return values | {f"{HOST}{host}": value for host, value in found.items()}


def _bounds(members: Memberships) -> dict[str, float]:
    return bounds(*arranged(members, message_rates(members)), message_rates(members))


def arranged(
    members: Mapping[int, tuple[int, ...]], rates: Mapping[int, float]
) -> tuple[SequencingGraph, NodeLayout]:
    """The graph of these groups, and its atoms on nodes that order no more than the busiest receiver gets."""
    limit = busiest_receiver(members, rates)
    graph = build(members, by_load(rates, limit))
    return graph, NodeLayout(graph, within_load(rates, limit))


def bounds(graph: SequencingGraph, layout: NodeLayout, rates: Mapping[int, float]) -> dict[str, float]:
    """The figures of every run: nodes, atoms, and both bounds, each with what only passes too."""
    busiest = busiest_receiver(graph.subscriptions.groups, rates) or 1.0
    ordering = [atom for atom in graph.atoms if graph.overlap(atom)]
    ordered = (sum(rates[group] for group in graph.groups_of(atom)) for atom in ordering)
    nodes = layout.ordering_nodes()
    of_nodes, handled = layout.ordered(rates), layout.handled(rates)
    groups = max(1, len(graph.groups))
    return {
        NODES: float(len(nodes)),
        OVERLAPS: float(len(ordering)),
        LOAD: max(ordered, default=0.0) / busiest,
        "node_load": max((of_nodes[node] for node in nodes), default=0.0) / busiest,
        "handled_load": max((handled[node] for node in nodes), default=0.0) / busiest,
        PATH: max((len(graph.own_atoms(group)) for group in graph.groups), default=0) / groups,
        "passed_path": max((len(graph.path(group)) for group in graph.groups), default=0) / groups,
    }


def stretches(
    members: Mapping[int, tuple[int, ...]],
    paths: Mapping[int, tuple[int, ...]],
    sites: np.ndarray,
    distances: Lengths,
    rates: Mapping[int, float],
) -> dict[int, float]:
    """For each destination: the mean delay through the nodes over the mean direct delay.

    Of all messages that it gets from others. Each member of a group sends the same share of the group's
    messages.
    """
    through, direct = np.zeros(len(distances)), np.zeros(len(distances))
    for group, those in members.items():
        hosts = np.array(those)
        if len(hosts) < 2:
            continue
        share = rates[group] / len(hosts)
        at = sites[list(paths[group])]
        inner = sum(distances[one, other] for one, other in pairwise(at))
        up, down = distances[hosts, at[0]], distances[at[-1], hosts]
        through[hosts] += share * ((up.sum() - up) + (len(hosts) - 1) * (inner + down))
        direct[hosts] += share * distances[np.ix_(hosts, hosts)].sum(axis=0)
    return {int(host): float(through[host] / direct[host]) for host in np.flatnonzero(direct)}


def _topology(name: str, file: str, seed: int) -> Topology:
    return read_topology(Path(file)) if file else make_topology(KINDS[name], seed)

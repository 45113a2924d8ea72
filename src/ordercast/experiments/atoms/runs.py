"""One run of an experiment: groups, their graph on sequencing nodes, and what messages meet there.

Delays are the lengths of ways; there is no loss and no queue, as in the paper's simulator (section 4.1).
"""

from collections.abc import Mapping
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
    host_distances,
    message_rates,
    occupied_groups,
    zipf_groups,
)
from ordercast.pipeline.cases import CaseValues, Record

LOAD, PATH = "load", "path"
"""Names of the two bounds, which every run measures."""
NODES, OVERLAPS = "nodes", "overlaps"


def stretch(*, topology: str, groups: int, seed: int, file: str = "") -> CaseValues:
    """Figure 2: the latency stretch of each destination."""
    distances = host_distances(_topology(topology, file, seed), HOSTS, seed)
    members = zipf_groups(HOSTS, groups, seed)
    graph, layout = arranged(members, message_rates(members))
    sites = np.array(Siting(graph, layout, distances.tolist()).near_paths())
    found = stretches(members, layout.paths, sites, distances, message_rates(members))
    numbers = bounds(graph, layout, message_rates(members)) | {"stretch_max": max(found.values())}
    numbers |= {"nodes_on_path": max(map(len, layout.paths.values()))}
    records: list[Record] = [{"host": host, "stretch": value} for host, value in found.items()]
    return CaseValues(numbers=numbers, records=records)


def count_nodes(*, groups: int, seed: int) -> dict[str, float]:
    """Figure 3: how many sequencing nodes there are."""
    members = zipf_groups(HOSTS, groups, seed)
    return bounds(*arranged(members, message_rates(members)), message_rates(members))


def count_dense_nodes(*, occupancy: float, groups: int, seed: int) -> dict[str, float]:
    """Figure 4: how many sequencing nodes and double overlaps there are."""
    members = occupied_groups(HOSTS, groups, occupancy, seed)
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

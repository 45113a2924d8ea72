"""Random changes of a sequencing graph."""

from random import Random

from ordercast.components.sequencing_graph import (
    SequencingGraph,
    Step,
    add_group,
    change_group,
    remove_group,
    subscribe,
    unsubscribe,
)


def random_change(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    """One change that makes sense: its steps. Small worlds, so that overlaps are many and often equal."""
    kinds = (_add, _add, _remove, _subscribe, _subscribe, _unsubscribe, _unsubscribe, _change)
    while True:
        steps = rng.choice(kinds)(graph, rng, groups, members)
        if steps:
            return steps


def _add(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    those = rng.sample(range(members), rng.randint(1, members))
    name = rng.getrandbits(
        30
    )  # a name is not used twice: late messages are of the group that they were sent to
    return add_group(graph, name, those) if len(graph.groups) < groups else []


def _remove(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    return remove_group(graph, rng.choice(graph.groups)) if graph.groups else []


def _subscribe(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    pairs = [
        (one, group) for group in graph.groups for one in range(members) if one not in graph.members(group)
    ]
    return subscribe(graph, *rng.choice(pairs)) if pairs else []


def _unsubscribe(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    pairs = [(one, group) for group in graph.groups for one in sorted(graph.members(group))]
    return unsubscribe(graph, *rng.choice(pairs)) if pairs else []


def _change(graph: SequencingGraph, rng: Random, groups: int, members: int) -> list[Step]:
    if not graph.groups:
        return []
    those = rng.sample(range(members), rng.randint(1, members))
    return change_group(graph, rng.choice(graph.groups), those)

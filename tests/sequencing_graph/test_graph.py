"""The sequencing graph: Figure 1 of the paper, the conditions under any change, and wrong use."""

from copy import deepcopy
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.components.sequencing_graph import (
    GraphRecord,
    SequencingGraph,
    Step,
    add_group,
    apart,
    build,
    busiest_receiver,
    by_group,
    by_hub,
    by_load,
    change_group,
    load_graph,
    nested,
    remove_group,
    save_graph,
    shared_member,
    subscribe,
    unsubscribe,
    within_load,
)
from ordercast.components.sequencing_graph.forest import GAP, Forest
from ordercast.components.sequencing_graph.placement import Grouping, NodeLayout, Siting
from ordercast.core import LocalError
from tests.sequencing_graph.histories import random_change

A, B, C, D = range(4)
FIGURE_1 = {0: (A, B, C), 1: (B, C), 2: (A, B, D), 3: (B, C, D), 4: (B, D)}


def figure_1(upto: int) -> SequencingGraph:
    graph = SequencingGraph()
    for group in range(upto + 1):
        add_group(graph, group, FIGURE_1[group])
    return graph


def atoms(graph: SequencingGraph) -> dict[frozenset[int], tuple[int, ...]]:
    """Every atom by its overlap, with its groups."""
    return {graph.overlap(atom): graph.groups_of(atom) for atom in graph.atoms}


def path(graph: SequencingGraph, group: int) -> list[frozenset[int]]:
    return [graph.overlap(atom) for atom in graph.path(group)]


Q0, Q1, Q2 = frozenset({B, C}), frozenset({A, B}), frozenset({B, D})


def test_figure_1a_two_overlaps_have_an_atom_each() -> None:
    graph = figure_1(upto=2)
    assert atoms(graph) == {Q0: (0, 1), Q1: (0, 2)}
    assert sorted(path(graph, 0), key=sorted) == [Q1, Q0]
    assert path(graph, 1) == [Q0]
    assert path(graph, 2) == [Q1]


def test_figure_1b_a_new_group_is_redirected_through_an_atom_that_is_not_its_own() -> None:
    graph = figure_1(upto=3)
    assert atoms(graph) == {Q0: (0, 1, 3), Q1: (0, 2), Q2: (2, 3)}
    assert len(path(graph, 3)) == 3
    assert path(graph, 3)[1] == Q1
    assert 3 not in atoms(graph)[Q1]


def test_figure_1c_a_group_with_known_overlaps_only_makes_no_atom() -> None:
    graph = figure_1(upto=4)
    assert atoms(graph) == {Q0: (0, 1, 3), Q1: (0, 2), Q2: (2, 3, 4)}
    assert path(graph, 4) == [Q2]


def test_figure_1d_an_atom_retires_with_the_group_that_needed_it() -> None:
    graph = figure_1(upto=4)
    remove_group(graph, 0)
    assert atoms(graph) == {Q0: (1, 3), Q2: (2, 3, 4)}
    assert sorted(path(graph, 3), key=sorted) == [Q0, Q2]
    graph.check()


def test_a_group_without_double_overlap_has_an_ingress_only() -> None:
    graph = SequencingGraph()
    add_group(graph, 0, (A, B))
    add_group(graph, 1, (B, C))
    assert [graph.groups_of(atom) for atom in graph.atoms] == [(0,), (1,)]
    assert all(graph.overlap(atom) == frozenset() for atom in graph.atoms)
    assert graph.next_hop(graph.ingress(0), 0) is None


@given(seed=st.integers(0, 2**32), members=st.integers(2, 12))
@settings(max_examples=150, deadline=None)
def test_the_conditions_hold_after_every_step_of_every_change(seed: int, members: int) -> None:
    rng = Random(seed)
    planned, stepped = SequencingGraph(), SequencingGraph()
    for _ in range(20):
        for step in random_change(planned, rng, groups=9, members=members):
            stepped.apply(step)
            stepped.check()
        assert stepped.network() == planned.network()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_same_changes_give_the_same_graph(seed: int) -> None:
    graphs = [SequencingGraph(), SequencingGraph()]
    histories: list[list[Step]] = []
    for graph in graphs:
        rng = Random(seed)
        histories.append([step for _ in range(15) for step in random_change(graph, rng, 8, 8)])
    assert histories[0] == histories[1]
    assert graphs[0].network() == graphs[1].network()


def test_nothing_is_left_when_all_groups_are_gone() -> None:
    graph = figure_1(upto=4)
    for group in range(5):
        remove_group(graph, group)
        graph.check()
    assert graph.atoms == graph.groups == graph.children(None) == ()


def test_a_new_overlap_that_an_atom_grows_to_needs_no_new_atom() -> None:
    graph = build({0: (A, B, C, D), 1: (A, B)})
    before = graph.atoms
    steps = subscribe(graph, C, 1)
    assert len(steps) == 1
    assert graph.atoms == before
    assert graph.overlap(before[0]) == frozenset({A, B, C})
    assert len(unsubscribe(graph, C, 1)) == 1


def test_the_last_member_may_leave() -> None:
    graph = build({0: (A, B), 1: (A, B)})
    for member in (A, B):
        unsubscribe(graph, member, 0)
        graph.check()
    assert graph.members(0) == frozenset()
    assert graph.path(0)


WRONG = [
    (lambda graph: add_group(graph, 7, ()), "group 7 has no members"),
    (lambda graph: add_group(graph, 1, (A,)), "there is a group 1 already"),
    (lambda graph: remove_group(graph, 7), "there is no group 7"),
    (lambda graph: subscribe(graph, A, 7), "there is no group 7"),
    (lambda graph: subscribe(graph, A, 0), "node 0 is in group 0 already"),
    (lambda graph: unsubscribe(graph, A, 1), "node 0 is not in group 1"),
    (lambda graph: unsubscribe(graph, A, 7), "there is no group 7"),
    (lambda graph: change_group(graph, 0, ()), "group 0 has no members"),
    (lambda graph: build({0: (A,), 1: ()}), "group 1 has no members"),
    (lambda graph: graph.path(7), "there is no group 7"),
    (lambda graph: graph.overlap(99), "there is no atom 99"),
    (lambda graph: graph.next_hop(99, 0), "atom 99 is not on the path of group 0"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_wrong_use_is_told_in_one_line_and_changes_nothing(wrong: object, said: str) -> None:
    graph = figure_1(upto=4)
    before = deepcopy(graph.network())
    assert callable(wrong)
    with pytest.raises(LocalError) as error:
        wrong(graph)
    assert str(error.value) == said
    assert graph.network() == before


# Stored and loaded


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_loaded_graph_changes_like_the_one_that_was_saved(seed: int) -> None:
    rng = Random(seed)
    saved = SequencingGraph()
    for _ in range(10):
        random_change(saved, rng, groups=8, members=8)
    text = msgspec.json.encode(save_graph(saved))
    loaded = load_graph(msgspec.json.decode(text, type=GraphRecord))
    assert save_graph(loaded) == save_graph(saved)
    for number in range(6):
        steps = [random_change(graph, Random(f"{seed} {number}"), 8, 8) for graph in (saved, loaded)]
        assert steps[0] == steps[1]


def test_a_graph_is_saved_in_the_middle_of_a_change_too() -> None:
    graph, follower = figure_1(upto=4), figure_1(upto=4)
    for step in remove_group(graph, 0):
        follower.apply(step)
        assert save_graph(load_graph(save_graph(follower))) == save_graph(follower)


BAD_RECORDS = [
    (((0, (A, B), True), (0, (A,), True)), (), "group 0 is there twice"),
    (((0, (A, B), True),), ((0, (0,), 7),), "atom 0 is below atom 7, which is not there"),
    (((0, (A, B), True),), ((0, (3,), None),), "atom 0 numbers a group that is not there"),
    (((0, (A, B), True),), (), "group 0 has no atom yet"),
    (((0, (A, B), True), (1, (A, B), True)), ((0, (0,), None), (1, (1,), None)), "has no atom"),
]


@pytest.mark.parametrize(("groups", "atoms_of_it", "said"), BAD_RECORDS)
def test_a_record_that_is_no_graph_is_refused(groups: object, atoms_of_it: object, said: str) -> None:
    record = msgspec.convert((groups, atoms_of_it, 9), GraphRecord)
    with pytest.raises(LocalError, match=said):
        load_graph(record)


# Many groups at once


def zipf(hosts: int, groups: int, seed: int) -> dict[int, list[int]]:
    rng = Random(seed)
    return {group: rng.sample(range(hosts), max(2, hosts // (group + 1))) for group in range(groups)}


def crossings(graph: SequencingGraph) -> float:
    """Mean number of nodes on a path."""
    layout = NodeLayout(graph, shared_member)
    return sum(map(len, layout.paths.values())) / len(layout.paths)


@pytest.mark.parametrize("seed", range(5))
def test_a_graph_built_at_once_has_shorter_paths_than_one_by_one(seed: int) -> None:
    groups = zipf(64, 24, seed)
    arrived = SequencingGraph()
    for group, members in groups.items():
        add_group(arrived, group, members)
    built = build(groups, by_hub)
    built.check()
    assert frozenset(map(built.overlap, built.atoms)) == frozenset(map(arrived.overlap, arrived.atoms))
    assert crossings(built) < crossings(arrived) / 2
    few_atoms = build(groups, by_group)
    assert sum(len(few_atoms.path(group)) for group in groups) < sum(
        len(arrived.path(group)) for group in groups
    )


# Nodes


@given(seed=st.integers(0, 2**32), density=st.floats(0.05, 0.9))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("grouping", [nested, shared_member])
def test_no_node_orders_more_than_the_busiest_receiver_gets(
    grouping: Grouping, seed: int, density: float
) -> None:
    rng = Random(seed)
    groups = {group: [one for one in range(20) if rng.random() < density] or [0] for group in range(10)}
    graph = build(groups)
    rates = {group: rng.random() for group in groups}
    layout = NodeLayout(graph, grouping)
    busiest = max(sum(rates[group] for group in groups if one in groups[group]) for one in range(20))
    loads = layout.ordered(rates)
    assert max((loads[node] for node in layout.ordering_nodes()), default=0.0) <= busiest + 1e-9
    assert sorted(atom for node in layout.nodes for atom in node) == sorted(graph.atoms)


@given(seed=st.integers(0, 2**32), density=st.floats(0.05, 0.9))
@settings(max_examples=60, deadline=None)
def test_a_node_is_filled_up_to_what_the_busiest_receiver_gets(seed: int, density: float) -> None:
    rng = Random(seed)
    groups = {group: [one for one in range(20) if rng.random() < density] or [0] for group in range(10)}
    rates = {group: float(rng.randint(1, 9)) for group in groups}
    limit = busiest_receiver(groups, rates)
    graph = build(groups, by_load(rates, limit))
    graph.check()
    layout, alone = NodeLayout(graph, within_load(rates, limit)), NodeLayout(graph, shared_member)
    assert max(layout.ordered(rates)) <= limit
    assert len(layout.nodes) <= len(alone.nodes)
    assert sorted(atom for node in layout.nodes for atom in node) == sorted(graph.atoms)


def test_groupings_from_most_nodes_to_fewest() -> None:
    graph = build(zipf(64, 24, seed=3))
    counts = [len(grouping(graph)) for grouping in (apart, nested, shared_member)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[2]


def test_a_member_of_all_groups_makes_one_node() -> None:
    graph = build({group: (A, B, 10 + group, 20 + group) for group in range(6)})
    assert len(NodeLayout(graph, shared_member).ordering_nodes()) == 1


def line(machines: int) -> list[list[float]]:
    return [[float(abs(one - other)) for other in range(machines)] for one in range(machines)]


def test_nodes_are_sited_among_their_members() -> None:
    graph = build({0: (0, 1, 2), 1: (0, 1, 3), 2: (90, 91, 92), 3: (91, 92, 93)})
    layout = NodeLayout(graph)
    hosts = Siting(graph, layout, line(100)).near_members()
    for node, atoms_of_node in enumerate(layout.nodes):
        low = min(graph.overlap(atoms_of_node[0])) < 50
        assert (hosts[node] < 5) == low


def test_nodes_on_one_path_are_sited_near_each_other() -> None:
    graph = build(zipf(60, 12, seed=2))
    layout = NodeLayout(graph)
    siting = Siting(graph, layout, line(60))

    def way(hosts: list[int]) -> int:
        hops = ((hosts[one], hosts[two]) for path in layout.paths.values() for one, two in pairwise(path))
        return sum(abs(one - two) for one, two in hops)

    apart_from_each_other = way(list(siting.near_members()))
    near = list(siting.near_paths())
    assert way(near) < apart_from_each_other
    assert len(frozenset(near)) == len(near)


def test_there_must_be_a_machine() -> None:
    graph = build({0: (A, B)})
    with pytest.raises(LocalError, match="there is no machine"):
        Siting(graph, NodeLayout(graph), [])


# The forest


def test_levels_are_given_anew_when_there_is_no_room() -> None:
    forest = Forest()
    forest.insert(0, None, ())
    forest.insert(1, 0, ())
    for atom in range(2, 200):
        forest.insert(atom, 0, (atom - 1,))
    levels = [forest.level(atom) for atom in forest.upwards(1)]
    assert levels == sorted(levels, reverse=True)
    assert len(frozenset(levels)) == 200
    assert GAP < 2**60


def test_a_root_is_not_hung_below_itself() -> None:
    forest = Forest()
    forest.insert(0, None, ())
    forest.insert(1, 0, ())
    with pytest.raises(LocalError, match="no root of another tree"):
        forest.attach(0, 1)
    with pytest.raises(LocalError, match="cannot be put between"):
        forest.insert(2, None, (1,))

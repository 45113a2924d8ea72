"""One order everywhere: random groups, random changes, random interleavings; and what breaks it."""

from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.components.sequencing_graph import Network, SequencingGraph, build, by_group, by_hub
from ordercast.components.sequencing_graph.network import check_network
from ordercast.core import LocalError
from tests.sequencing_graph.flow import Flow
from tests.sequencing_graph.histories import random_change
from tests.sequencing_graph.still import StillFlow


def disagreements(orders: list[list[int]]) -> list[tuple[int, int]]:
    """Pairs of messages that two receivers delivered in different orders."""
    found: list[tuple[int, int]] = []
    for one, other in combinations(orders, 2):
        common = frozenset(one) & frozenset(other)
        ranks = {name: place for place, name in enumerate(name for name in other if name in common)}
        mine = [name for name in one if name in common]
        found += [pair for pair in pairwise(mine) if ranks[pair[0]] > ranks[pair[1]]]
    return found


def run(seed: int, changes: int, traffic: int) -> Flow:
    rng = Random(seed)
    flow, plan = Flow(rng), SequencingGraph()
    for _ in range(changes):
        flow.change(random_change(plan, rng, groups=8, members=8), traffic)
        flow.stir(traffic * 5)
    flow.settle()
    return flow


@given(seed=st.integers(0, 2**32), traffic=st.integers(0, 8))
@settings(max_examples=100, deadline=None)
def test_messages_have_one_order_everywhere_while_the_graph_changes(seed: int, traffic: int) -> None:
    flow = run(seed, changes=14, traffic=traffic)
    assert disagreements([receiver.delivered for receiver in flow.receivers.values()]) == []
    for receiver in flow.receivers.values():
        waiting = [packet for packet in receiver.held if packet.group in flow.graph.groups]
        assert [
            packet.name for packet in waiting if receiver.member in flow.graph.members(packet.group)
        ] == []


def test_much_is_delivered_while_the_graph_changes() -> None:
    flow = run(seed=1, changes=14, traffic=8)
    assert sum(len(receiver.delivered) for receiver in flow.receivers.values()) > 500


GROUPS = st.dictionaries(
    st.integers(0, 9), st.frozensets(st.integers(0, 8), min_size=1), min_size=1, max_size=10
)


@given(groups=GROUPS, seed=st.integers(0, 2**32), hubs=st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_graph_that_is_built_at_once_gives_one_order(
    groups: dict[int, frozenset[int]], seed: int, hubs: bool
) -> None:
    graph = build(groups, by_hub if hubs else by_group)
    graph.check()
    flow = StillFlow(graph.network(), Random(seed))
    flow.run(messages=40)
    assert flow.undelivered() == 0
    assert disagreements(list(flow.delivered.values())) == []


# Three groups, each two of which share two members, on the chain 0 - 1 - 2.
RING = {0: frozenset({0, 1, 2, 3}), 1: frozenset({2, 3, 4, 5}), 2: frozenset({4, 5, 0, 1})}
RING_ATOMS = {0: (0, 1), 1: (1, 2), 2: (0, 2)}
ROUND = Network(RING, RING_ATOMS, {0: (0, 1, 2), 1: (1, 0), 2: (2, 1)})
"""Each group meets the conditions C1 and C2, but the channel of atoms 0 and 1 is used in both directions."""


def stuck(network: Network, runs: int = 60) -> bool:
    """Whether some interleaving leaves messages undelivered, or gives two orders."""
    for seed in range(runs):
        flow = StillFlow(network, Random(seed))
        flow.run(messages=30)
        if flow.undelivered() or disagreements(list(flow.delivered.values())):
            return True
    return False


def with_a_witness(network: Network) -> Network:
    """The same with two members who are in all groups, and so take the numbers of all atoms."""
    return replace(network, members={group: those | {8, 9} for group, those in network.members.items()})


def test_without_c3_receivers_wait_for_each_other_in_a_circle() -> None:
    witnessed = with_a_witness(ROUND)
    with pytest.raises(LocalError, match=r"both directions \(C3\)"):
        check_network(witnessed)
    assert stuck(witnessed)


def test_with_c3_the_same_chain_is_in_order() -> None:
    downwards = replace(with_a_witness(ROUND), paths={0: (0, 1, 2), 1: (0, 1), 2: (1, 2)})
    check_network(downwards)
    assert not stuck(downwards)


GRAPH = build({0: range(6), 1: range(4), 2: range(2, 8), 3: (0, 1, 6, 7), 4: (4, 5, 6, 8)})
SOUND = GRAPH.network()


def test_the_graph_that_the_mutants_are_made_from_is_sound() -> None:
    check_network(SOUND)
    assert not stuck(SOUND)
    assert len(SOUND.paths[0]) > 3


def with_path(group: int, path: tuple[int, ...]) -> Network:
    return replace(SOUND, paths={**SOUND.paths, group: path})


def looping() -> Network:
    """Group 0 takes a short cut over atoms that others go through in order."""
    path = SOUND.paths[0]
    return with_path(0, (path[0], *path[2:], path[1]))


def broken() -> Network:
    """The path of group 0 ends before its last atom."""
    return with_path(0, SOUND.paths[0][:-1])


def missing() -> Network:
    """One double overlap has no atom."""
    atom = next(atom for atom, groups in SOUND.atoms.items() if len(groups) == 2)
    return replace(SOUND, atoms={**SOUND.atoms, atom: SOUND.atoms[atom][:1]})


def reversed_path() -> Network:
    """One group goes the other way."""
    return with_path(0, SOUND.paths[0][::-1])


MUTANTS = {
    looping: r"closes a loop \(C2\)|both directions \(C3\)",
    broken: r"misses its atom \d+ \(C1\)",
    missing: "has no atom",
    reversed_path: r"both directions \(C3\)",
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_check_names_what_is_broken(mutant: object) -> None:
    assert callable(mutant)
    with pytest.raises(LocalError, match=MUTANTS[mutant]):
        check_network(mutant())


@pytest.mark.parametrize("mutant", [looping, broken, missing, reversed_path])
def test_the_order_shows_what_is_broken(mutant: object) -> None:
    assert callable(mutant)
    assert stuck(mutant(), runs=200)

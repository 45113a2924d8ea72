"""Sequencing atoms, broken inside: in their graph, in what a restart or a change carries over."""

from functools import partial
from importlib import import_module
from typing import Any, TypeAlias
from unittest.mock import patch

from ordercast.components.sequencing_graph import AtomId, Network, SequencingGraph, build
from ordercast.core import GroupId
from ordercast.protocols.atoms import registry
from ordercast.protocols.atoms.ordering import Ordering
from ordercast.protocols.atoms.sealing import Reports
from ordercast.protocols.atoms.sequencing_node import SequencingNode
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.atoms import defects
from tests.sim.mutant import Mutant, calm

Defect: TypeAlias = tuple[Any, str, Any]
"""Whose attribute is replaced, and by what."""

CIRCLE = ((0, 1, 3), (0, 1, 2), (0, 2, 3))
"""Each two of three groups share node 0 and another one: three atoms."""
PAIR = ((0, 1), (0, 1))
"""One atom. The first sequencing node is on host 5, after two receivers and three senders."""
MERGING = ((0, 1), (1, 2))
"""Two trees; node 2 makes one of them when it comes to group 0, and two again when it goes."""
TIMES_MS = (20, 50, 80, 110)


def run_broken(defect: Defect, membership: tuple[tuple[int, ...], ...], seed: int, **changes: Any) -> Run:
    """Overlapping groups under load; all processes have the defect."""
    setting: dict[str, Any] = {
        "membership": membership,
        "network": NetworkSpec(latency=UniformSpec(50, 2000)),
        "workload": WorkloadSpec(messages=200, rate_per_s=1500),
        "liveness": True,
    }
    owner, attribute, value = defect
    with patch.object(owner, attribute, value):
        return simulate(calm("atoms", seed, **(setting | changes)))


# The graph


def looping_path(graph: SequencingGraph, group: GroupId) -> tuple[AtomId, ...]:
    """Group 0 goes from the first atom to the second, the next from the second to the third, and so on."""
    own = sorted(graph.own_atoms(group))
    turned = [atom for atom in sorted(graph.atoms) if atom in own]
    ends = {turned[0], turned[-1]} == {min(graph.atoms), max(graph.atoms)}
    return tuple(reversed(turned)) if ends else tuple(turned)


def broken_path(graph: SequencingGraph, group: GroupId) -> tuple[AtomId, ...]:
    """Ends before its last atom, if it has several."""
    path = tuple(sorted(graph.own_atoms(group)))
    return path[: max(1, len(path) - 1)]


def network_with(defect: Defect) -> Network:
    """The graph of the circle, with a defect."""
    with patch.object(*defect):
        return build(dict(enumerate(CIRCLE))).network()


MISSED_OVERLAP: Defect = (
    import_module("ordercast.components.sequencing_graph.build"),
    "wanted_atoms",
    lambda graph: [],
)
LOOP: Defect = (SequencingGraph, "path", looping_path)
BROKEN_PATH: Defect = (SequencingGraph, "path", broken_path)
LOOPING: Defect = (registry, "hops_of", defects.along(looping_path))
BREAKING_OFF: Defect = (registry, "hops_of", defects.along(broken_path))


def _mutant(
    name: str,
    breaks: set[str],
    defect: Defect,
    membership: tuple[tuple[int, ...], ...] = PAIR,
    also: frozenset[str] = frozenset(),
    **changes: Any,
) -> Mutant:
    run = partial(run_broken, defect, membership, **changes)
    return Mutant(name, frozenset(breaks), run, also=also)


STUCK = frozenset({"agreement", "validity", "probe", "joining", "progress"})
"""Who waits for a number that never comes owes all that follows."""

ATOMS_MUTANTS = [
    _mutant("the graph misses an overlap", {"pair-order"}, MISSED_OVERLAP),
    _mutant("the graph has a loop", {"agreement"}, LOOPING, CIRCLE, STUCK, options={"grouping": "apart"}),
    _mutant("a path is broken", {"pair-order"}, BREAKING_OFF, CIRCLE),
    _mutant(
        "a number is used again after a recovery",
        {"probe"},
        (SequencingNode, "on_start", defects.same_life),
        PAIR,
        STUCK,
        options={"copies": 1},
        fault=(Crash(at_ms=30, host=5), Restart(at_ms=32, host=5)),
    ),
    _mutant(
        "two trees merge without waiting for each other",
        {"pair-order"},
        (Ordering, "blockers", lambda ordering, stream, begin: []),
        MERGING,
        network=NetworkSpec(latency=UniformSpec(50, 2000), loss=0.1),
        join=tuple(Join(at_ms=at, node=2) for at in TIMES_MS[::2]),
        leave=tuple(Leave(at_ms=at, node=2) for at in TIMES_MS[1::2]),
    ),
    _mutant(
        "what is expected from senders is not carried over",
        {"integrity"},
        (Reports, "final", defects.altered_final(serials=())),
        MERGING,
        frozenset({"stamp", "total-order", "pair-order"}),
        network=NetworkSpec(latency=UniformSpec(50, 2000), loss=0.2),
        join=tuple(Join(at_ms=at, node=2) for at in TIMES_MS[::2]),
        leave=tuple(Leave(at_ms=at, node=2) for at in TIMES_MS[1::2]),
    ),
]

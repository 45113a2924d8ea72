"""LLFT, broken inside, in runs that the judges see: the network is cut and heals.

`tests/llft/mutants.py` breaks more of its rules, each in a play of its own.
"""

from collections.abc import Callable, Mapping, Sized
from dataclasses import replace
from functools import partial

import msgspec

from ordercast.core import Env, Node, Plan, Process
from ordercast.replication.llft.client import Client
from ordercast.replication.llft.lineage import Views
from ordercast.replication.llft.messages import NewPrimaryView
from ordercast.replication.llft.receiver import GroupReceiver
from ordercast.replication.llft.replica import Replica
from ordercast.scenario.faults import FaultSpec, Heal, Partition
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.mutant import Mutant

Alter = Callable[[Process], None]


class Careless(Replica):
    """Needs nobody for a view."""

    def majority_of(self, seats: Sized) -> int:
        """One, whatever was promised."""
        return 1


def quiet_replica(process: Process) -> None:
    """A replica does not say what of its work is undone."""

    def undo(lineage: Views) -> None:
        pass

    if isinstance(process, Replica):
        process.performer.notices.undo = undo  # type: ignore[method-assign]


def quiet_client(process: Process) -> None:
    """A client does not say which of its answers are undone."""

    def on_lineage(message: NewPrimaryView) -> None:
        pass

    if isinstance(process, Client):
        process.on_lineage = on_lineage  # type: ignore[method-assign]


def needs_nobody(process: Process) -> None:
    """A minority goes on."""
    if isinstance(process, Replica):
        process.__class__ = Careless


def hasty(process: Process) -> None:
    """A primary answers before a majority has what it did."""
    if isinstance(process, Replica):
        process.performer._gated = False


def _altered_at_start(alter: Alter, receiver: GroupReceiver) -> GroupReceiver:
    """A receiver whose replica is altered as soon as there is one."""
    start = receiver.on_start

    def on_start(saved: Mapping[str, bytes]) -> None:
        start(saved)
        if receiver.replica is not None:
            alter(receiver.replica)

    receiver.on_start = on_start  # type: ignore[method-assign]
    return receiver


def altered(alter: Alter, node: Node) -> Node:
    """A node whose process is altered."""

    def make(env: Env) -> Process:
        process = node.factory(env)
        alter(process)
        return _altered_at_start(alter, process) if isinstance(process, GroupReceiver) else process

    return replace(node, factory=make)


def run(alter: Alter, options: dict[str, object], faults: tuple[FaultSpec, ...], seed: int) -> Run:
    """Run three replicas of a counter, and three clients."""
    scenario = Scenario(
        protocol="llft",
        seed=seed,
        service="counter",
        senders=3,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        options={"checkpoint_every": 1, **options},
        workload=WorkloadSpec(messages=150, rate_per_s=500, reads=0.3),
        fault=faults,
        settle_ms=1500,
    )
    plan: Plan = scenario.plan()
    plan = replace(plan, nodes=tuple(altered(alter, node) for node in plan.nodes))
    return simulate(msgspec.structs.replace(scenario, liveness=False), plan)


CUT = (Partition(at_ms=40.0, sides=((0, 3), (1, 2, 4, 5))), Heal(at_ms=250.0))


def _mutant(
    name: str, breaks: set[str], alter: Alter, *, also: frozenset[str] = frozenset(), **options: object
) -> Mutant:
    return Mutant(f"llft: {name}", frozenset(breaks), partial(run, alter, options, CUT), also=also)


LLFT_MUTANTS = [
    _mutant("undone work that replicas do not report", {"branches"}, quiet_replica),
    _mutant("undone answers that clients do not report", {"branches"}, quiet_client),
    _mutant(
        "a minority that goes on",
        {"agreement", "answers"},
        needs_nobody,
        also=frozenset({"linearizable", "stamp"}),
        require_majority=True,
    ),
    _mutant(
        "answers before a majority",
        {"answers", "linearizable"},
        hasty,
        also=frozenset({"validity"}),
        require_majority=True,
    ),
]

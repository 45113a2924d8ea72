"""Services on the logs of Multi-Paxos and Fast Paxos, broken inside."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec

from ordercast.components.consensus import Barrier
from ordercast.components.execution.call import Call
from ordercast.components.execution.client_table import ClientRecord, ClientTable, Executed, PackedTable
from ordercast.components.logged_service import LoggedService
from ordercast.core import Env, Groups, MessageId, Node, NodeId, Plan, Process
from ordercast.scenario.faults import Crash, FaultSpec, Heal, Partition, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.mutant import Mutant

Alter = Callable[[LoggedService], None]


class UnpackedTable(ClientTable):
    """Is left out of snapshots."""

    __slots__ = ()

    def pack(self) -> PackedTable:
        """Nothing."""
        return {}


class HiddenResults(dict[MessageId, Executed]):
    """Results that are kept, and not found."""

    def get(self, first: MessageId, default: object = None) -> None:  # type: ignore[override]
        """Nothing."""


class ReceiptTable(ClientTable):
    """Finds what was executed when a call comes from its client, but not when it comes out of the log."""

    __slots__ = ()

    def admit(self, call: Call, groups: Groups = ()) -> ClientRecord | None:
        """A record in which nothing is found."""
        client = super().admit(call, groups)
        if client is not None:
            client.results = HiddenResults(client.results)
        return client

    def find(self, first: MessageId, client: NodeId) -> Executed | None:
        """The results of a call."""
        record = self._clients.get(client)
        return None if record is None else dict.get(record.results, first)


def without_table(service: LoggedService) -> None:
    """Snapshots lack the client table."""
    service.executor._table.__class__ = UnpackedTable


def found_at_receipt(service: LoggedService) -> None:
    """Duplicates are found at receipt only."""
    service.executor._table.__class__ = ReceiptTable


def sure_of_itself(service: LoggedService) -> None:
    """A leader does not ask whether it still leads."""

    def passes(barrier: Barrier) -> bool | None:
        return True if service.log.is_leader else None

    service.log.passes = passes  # type: ignore[method-assign]


def unsaved_place(service: LoggedService) -> None:
    """The place of the last delivery is not saved."""

    def forget(clock: int, *, owes_checkpoint: bool = False) -> None:
        service._delivered = clock

    service._note_delivered = forget  # type: ignore[method-assign]


def altered(alter: Alter, node: Node) -> Node:
    """A node whose replica is altered."""

    def make(env: Env) -> Process:
        process = node.factory(env)
        if isinstance(process, LoggedService):
            alter(process)
        return process

    return replace(node, factory=make)


def _run(protocol: str, alter: Alter, faults: tuple[FaultSpec, ...], network: NetworkSpec, seed: int) -> Run:
    scenario = Scenario(
        protocol=protocol,
        seed=seed,
        service="counter",
        senders=3,
        network=network,
        options={"checkpoint_every": 1, "consensus": {"checkpoint": 4, "log_limit": 64}},
        workload=WorkloadSpec(messages=150, rate_per_s=500, reads=0.5),
        fault=faults,
        settle_ms=1500,
    )
    plan: Plan = scenario.plan()
    plan = replace(plan, nodes=tuple(altered(alter, node) for node in plan.nodes))
    return simulate(msgspec.structs.replace(scenario, liveness=False), plan)


LOSSY = NetworkSpec(latency=UniformSpec(50, 500), loss=0.2)
STEADY = NetworkSpec(latency=UniformSpec(50, 500))
RESTARTS = tuple(
    fault
    for at_ms in (20.0, 50.0, 80.0)
    for fault in (Crash(at_ms=at_ms, host=1), Restart(at_ms=at_ms + 10, host=1))
)
LEADERS = tuple(
    fault
    for host in range(3)
    for fault in (Crash(at_ms=20.0 + 50 * host, host=host), Restart(at_ms=45.0 + 50 * host, host=host))
)
CUT_LEADER = (Partition(at_ms=20.0, sides=((0, 3), (1, 2, 4, 5))), Heal(at_ms=120.0))


def _mutant(
    name: str,
    breaks: set[str],
    alter: Alter,
    faults: tuple[FaultSpec, ...],
    network: NetworkSpec,
    also: frozenset[str] = frozenset(),
) -> list[Mutant]:
    return [
        Mutant(
            f"{protocol}: {name}",
            frozenset(breaks),
            partial(_run, protocol, alter, faults, network),
            also=also,
        )
        for protocol in ("multi_paxos", "fast_paxos")
    ]


LOG_MUTANTS = [
    *_mutant(
        "a snapshot without its client table",
        {"replica-state"},
        without_table,
        RESTARTS,
        LOSSY,
        frozenset({"integrity", "answers", "linearizable", "stamp"}),
    ),
    *_mutant(
        "duplicates are found at receipt only",
        {"integrity"},
        found_at_receipt,
        LEADERS,
        LOSSY,
        frozenset({"answers", "linearizable", "stamp", "replica-state", "total-order"}),
    ),
    *_mutant("a read of a deposed leader", {"linearizable"}, sure_of_itself, CUT_LEADER, STEADY),
    *_mutant(
        "the place of the last delivery is not saved",
        {"integrity"},
        unsaved_place,
        RESTARTS,
        STEADY,
    ),
]

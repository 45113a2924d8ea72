"""Broken variants of a service without replication, and the properties that must catch each."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ordercast.components.execution import Call, Executor, unpack_call
from ordercast.components.execution.client_table import ClientRecord, ClientTable
from ordercast.components.execution.messages import Answer, CallMessage, place_of_stamp
from ordercast.core import (
    MILLISECOND,
    Env,
    GroupId,
    Groups,
    Message,
    NodeId,
    Plan,
    Process,
    ServiceSpec,
    Stamp,
)
from ordercast.replication.unreplicated.protocol import Client, Server, UnreplicatedOptions
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run
from tests.sim.mutant import Mutant, run_calm

MakeServer = Callable[[Env, GroupId, ServiceSpec | None], Process]
OPTIONS = UnreplicatedOptions(checkpoint_every=4)


class NoTable(ClientTable):
    """Remembers nothing of any client."""

    def admit(self, call: Call, groups: Groups = ()) -> ClientRecord | None:
        """Every call is new."""
        return ClientRecord()


class Repeating(Server):
    """Executes a call as often as it comes."""

    def __init__(self, env: Env, group: GroupId, service: ServiceSpec | None) -> None:
        super().__init__(env, group, service, OPTIONS)
        self._executor._table = NoTable()


class Hasty(Server):
    """Answers a call with what its result would be now, and executes it a little later."""

    def __init__(self, env: Env, group: GroupId, service: ServiceSpec | None) -> None:
        super().__init__(env, group, service, OPTIONS)
        self._later: list[tuple[NodeId, Message]] = []

    def on_message(self, source: NodeId, message: Message) -> None:
        """Answer at once."""
        assert isinstance(message, CallMessage)
        call = unpack_call(message.call, source)
        before = self._executor.snapshot()
        done = self._executor.execute(call, Stamp(self._executor.executed + 1, self._group))
        self._executor.restore(before)
        if done is not None:
            place = place_of_stamp(self._executor.place if call.read else done.stamp)
            self.env.send(source, Answer(done.first, done.results, place))
        if not call.read:
            self._later.append((source, message))
            self.env.set_timer("later", 3 * MILLISECOND)

    def on_timer(self, name: str) -> None:
        """Execute what was answered."""
        for source, message in self._later:
            super().on_message(source, message)
        self._later.clear()


class Stale(Server):
    """Reads from a copy of the state that it makes now and then."""

    honest = True
    """It tells of which place the copy is."""

    def __init__(self, env: Env, group: GroupId, service: ServiceSpec | None) -> None:
        super().__init__(env, group, service, OPTIONS)
        self._copy = Executor(env, service)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Execute operations on the state, and reads on the copy."""
        assert isinstance(message, CallMessage)
        call = unpack_call(message.call, source)
        if not call.read:
            super().on_message(source, message)
            if self._executor.executed % 5 == 0:
                self._copy.restore(self._executor.snapshot())
            return
        place = (self._copy if self.honest else self._executor).place
        self.env.send(source, Answer(call.first, self._copy.read(call.bundle), place_of_stamp(place)))


class Lying(Stale):
    """It says that what it reads in the copy is the present state."""

    honest = False


class Forgetful(Server):
    """Loses every tenth operation after it was answered: the state is as before."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """Execute, and undo it in the service alone."""
        machine = self._executor._machine
        assert machine is not None
        before = machine.snapshot()
        super().on_message(source, message)
        if self._executor.executed % 10 == 9:
            machine.restore(before)


def forgetful(env: Env, group: GroupId, service: ServiceSpec | None) -> Process:
    """A server that forgets."""
    return Forgetful(env, group, service, OPTIONS)


def _made(make: MakeServer, group: GroupId, service: ServiceSpec | None, env: Env) -> Process:
    return make(env, group, service)


def served_by(make: MakeServer, plan: Plan) -> Plan:
    """The plan with other servers."""
    group_of = {members[0]: group for group, members in plan.groups.items()}
    nodes = [
        replace(node, factory=partial(_made, make, group_of[node.id], plan.service))
        if node.id in group_of
        else node
        for node in plan.nodes
    ]
    return replace(plan, nodes=tuple(nodes))


def silent_client(plan: Plan) -> Plan:
    """The plan with one client that keeps the answers to itself."""
    servers = {group: members[0] for group, members in plan.groups.items()}
    chosen = plan.senders[0]
    nodes = [
        replace(node, factory=lambda env: Client(env, servers, OPTIONS, answers=False))
        if node.id == chosen
        else node
        for node in plan.nodes
    ]
    return replace(plan, nodes=tuple(nodes))


def _mutant(
    name: str, breaks: set[str], change: Callable[[Plan], Plan], *also: str, **changes: Any
) -> Mutant:
    def run(seed: int) -> Run:
        service = ("kv", "register", "counter")[seed % 3]
        return run_calm("unreplicated", change, seed, service=service, **changes)

    return Mutant(name, frozenset(breaks), run, also=frozenset(also))


_LOSSY = NetworkSpec(latency=UniformSpec(50, 2000), loss=0.2)
_BUSY = WorkloadSpec(messages=120, rate_per_s=1000, reads=0.5)

SERVICE_MUTANTS = [
    _mutant(
        "a server of a service has no client table",
        {"integrity", "linearizable"},
        partial(served_by, Repeating),
        "answers",
        network=_LOSSY,
    ),
    _mutant(
        "a server answers before it executes",
        {"linearizable", "answers"},
        partial(served_by, Hasty),
        workload=_BUSY,
    ),
    _mutant(
        "a server reads from an old copy",
        {"linearizable"},
        partial(served_by, Stale),
        workload=_BUSY,
    ),
    _mutant(
        "a server calls an old copy the present state",
        {"answers"},
        partial(served_by, Lying),
        workload=_BUSY,
    ),
    _mutant(
        "a server loses what it has answered", {"answers"}, partial(served_by, forgetful), workload=_BUSY
    ),
    _mutant("a client of a service is never told", {"replies"}, silent_client),
]

"""A replica gets a state that cannot be read: it refuses it, changes nothing, and asks another replica."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pytest

from ordercast.catalogue import find_protocol
from ordercast.components.consensus.messages import Chunk
from ordercast.components.consensus.transfer import digest_of
from ordercast.components.network_ordered.messages import BaseChunk
from ordercast.core import Deployment, Env, Message, Node, NodeId, Process, RemoteError
from ordercast.replication.llft.performing import Performer
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.build import build_world
from ordercast.sim.run import Run, drive
from ordercast.trace import RESTORED, Kind

NEWCOMER = 2
"""It was away for long, and needs a state when it comes back."""
BAD = b"\xc1 is never used in MessagePack"
LOG = {"checkpoint_every": 8, "consensus": {"checkpoint": 8, "log_limit": 64}}
NETWORK = {"replicas": {"checkpoint_every": 8, "keep": 0}}
OPTIONS: dict[str, dict[str, Any]] = {
    "multi_paxos": LOG,
    "fast_paxos": LOG,
    "lock_store": LOG,
    "granola": LOG,
    "nopaxos": NETWORK,
    "hydra_paxos": NETWORK,
    "eris": NETWORK,
    "hydra_txn": NETWORK,
}
PIECES = (BaseChunk, Chunk)


def spoiled(message: Message) -> Message:
    """The whole of a bad state, in place of a part of a good one."""
    match message:
        case BaseChunk():
            return BaseChunk(message.base, len(BAD), 0, BAD)
        case Chunk():
            return Chunk(message.index, digest_of(BAD), len(BAD), 0, BAD)
    return message


class SpoiledRun:
    """A scenario in which the first replica that gives a state to the newcomer gives bad ones only."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.refusals: list[str] = []
        self.spoiler: NodeId | None = None
        self.others: set[NodeId] = set()
        """Who has given parts of good states."""
        plan = scenario.plan()
        nodes = tuple(replace(node, factory=partial(self._tapped, node)) for node in plan.nodes)
        self._world = build_world(scenario, replace(plan, nodes=nodes))

    def run(self) -> Run:
        return drive(self.scenario, self._world)

    def _tapped(self, node: Node, env: Env) -> Process:
        """A process that survives what it refuses, as a live host does."""
        process = node.factory(env)
        process.on_message = partial(self._on_message, env, process.on_message)  # type: ignore[method-assign]
        return process

    def _on_message(
        self, env: Env, handler: Callable[[NodeId, Message], None], source: NodeId, message: Message
    ) -> None:
        if env.me == NEWCOMER and isinstance(message, PIECES):
            message = self._given(source, message)
        try:
            handler(source, message)
        except RemoteError as error:
            self.refusals.append(str(error))

    def _given(self, source: NodeId, message: Message) -> Message:
        if self.spoiler is None:
            self.spoiler = source
        if source == self.spoiler:
            return spoiled(message)
        self.others.add(source)
        return message


def scenario_of(protocol: str, options: dict[str, Any], disk: Literal["saved", "lost"]) -> Scenario:
    """A replica is away while clients call, and comes back with its disk or with an empty one."""
    found = find_protocol(protocol)
    sharded = found.deploy(Deployment.disjoint(2, 3, 1), found.options()).shards > 0
    return Scenario(
        protocol=protocol,
        service="bank" if sharded else "kv",
        groups=2 if sharded else 1,
        receivers=3,
        senders=3,
        options=options,
        liveness=True,
        settle_ms=500,
        network=NetworkSpec(latency=UniformSpec(50, 300)),
        workload=WorkloadSpec(messages=600, rate_per_s=600),
        fault=(Crash(at_ms=200, host=NEWCOMER), Restart(at_ms=500, host=NEWCOMER, state=disk)),
    )


def restored(run: Run) -> set[NodeId]:
    """The replicas that have taken over states."""
    states = [event for event in run.events() if event.kind is Kind.CHECKPOINT and event.label == RESTORED]
    return {event.node for event in states}


@pytest.mark.parametrize("disk", ["saved", "lost"])
@pytest.mark.parametrize("protocol", OPTIONS)
def test_a_bad_state_is_refused_and_another_replica_is_asked(
    protocol: str, disk: Literal["saved", "lost"]
) -> None:
    options = OPTIONS[protocol] | {"durable": disk == "saved"}
    spoiled = SpoiledRun(scenario_of(protocol, options, disk))
    run = spoiled.run()
    assert run.violations == [] and run.hindrance == ""
    assert spoiled.refusals and all("cannot be read" in one for one in spoiled.refusals)
    assert len(spoiled.refusals) < 20, "it does not ask the same replica again and again"
    assert spoiled.others
    assert NEWCOMER in restored(run)


def test_a_newcomer_of_llft_refuses_bad_states_and_asks_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the primary has a state for it."""
    true, bad = Performer.state, [3]

    def state(performer: Performer) -> bytes:
        bad[0] -= 1
        with monkeypatch.context() as patch:
            if bad[0] >= 0:
                patch.setattr(performer.executor, "snapshot", lambda: BAD)
            return true(performer)

    monkeypatch.setattr(Performer, "state", state)
    spoiled = SpoiledRun(scenario_of("llft", {}, "lost"))
    run = spoiled.run()
    assert run.violations == [] and run.hindrance == ""
    assert spoiled.refusals and all("cannot be read" in one for one in spoiled.refusals)
    assert NEWCOMER in restored(run)

"""Messages that were truly sent, from nodes that may not send them: refused, without any effect."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from ordercast.core import Env, Message, Node, NodeId, Process, RemoteError
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.build import build_world
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.run import Run, drive
from tests.logged_shards.roles import OTHER, OWN, WAYS, Ways

EACH = 3
"""So many messages of each kind to each role are sent again by others."""
EFFECTS = ("send", "multicast", "save", "deliver", "set_timer", "cancel_timer", "originate")
OPTIONS: dict[str, dict[str, Any]] = {"hydra_txn": {"hydra": {"spares": 1}}, "eris": {"spares": 2}}
LEAST = {"granola": 10, "lock_store": 10, "hydra_txn": 30, "eris": 30}
"""So many kinds of messages are sent at least."""


def scenario_of(protocol: str) -> Scenario:
    """Transactions on a bad network; a leader fails, and then a sequencer, if there is one."""
    scenario = Scenario(
        protocol=protocol,
        service="bank",
        groups=2,
        receivers=3,
        senders=3,
        options=OPTIONS.get(protocol, {}),
        liveness=True,
        settle_ms=500,
        network=NetworkSpec(latency=UniformSpec(50, 300), loss=0.02),
        workload=WorkloadSpec(messages=300, rate_per_s=600),
    )
    faults: list[FaultSpec] = [Crash(at_ms=100, host=0), Restart(at_ms=250, host=0, state="lost")]
    faults += [
        Crash(at_ms=180, host=node.host) for node in scenario.plan().nodes if node.role == "sequencer"
    ][:1]
    return msgspec.structs.replace(scenario, fault=tuple(faults))


class WrongSenders:
    """A run in which each message comes from nodes of all wrong roles first."""

    def __init__(self, scenario: Scenario, ways: Ways) -> None:
        self._scenario = scenario
        self._ways = ways
        plan = scenario.plan()
        self._roles = {node.id: node.role for node in plan.nodes}
        self._shards = {node: shard for shard, nodes in plan.groups.items() for node in nodes}
        self._effects = 0
        self._sent: Counter[tuple[type[Message], str]] = Counter()
        self.refused: Counter[tuple[type[Message], str]] = Counter()
        nodes = tuple(replace(node, factory=partial(self._tapped, node)) for node in plan.nodes)
        self._world = build_world(scenario, replace(plan, nodes=nodes))

    def run(self) -> Run:
        return drive(self._scenario, self._world)

    @property
    def kinds(self) -> set[type[Message]]:
        return {kind for kind, _ in self._sent}

    def _tapped(self, node: Node, env: Env) -> Process:
        process = node.factory(env)
        process.on_message = partial(self._on_message, env.me, process.on_message)  # type: ignore[method-assign]
        return process

    def count_effects(self, patch: pytest.MonkeyPatch) -> None:
        """Count what processes do, from now on."""
        for name in EFFECTS:
            patch.setattr(NodeEnv, name, self._counted(getattr(NodeEnv, name)))

    def _counted(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._effects += 1
            return effect(*args, **kwargs)

        return counted

    def _on_message(
        self, me: NodeId, handler: Callable[[NodeId, Message], None], source: NodeId, message: Message
    ) -> None:
        way = (type(message), self._roles[me])
        allowed = self._ways.get(way, frozenset())
        if source != me:
            assert self._role(source, me) in allowed, f"{way} of {self._role(source, me)} is not in the table"
            self._sent[way] += 1
            if self._sent[way] <= EACH:
                self._try(me, handler, message, allowed)
        handler(source, message)

    def _role(self, source: NodeId, target: NodeId) -> str:
        """What a node is to another."""
        if source not in self._shards:
            return self._roles[source]
        return OWN if self._shards[source] == self._shards.get(target) else OTHER

    def _try(
        self,
        me: NodeId,
        handler: Callable[[NodeId, Message], None],
        message: Message,
        allowed: frozenset[str],
    ) -> None:
        """Let a message come from nodes that may not send it."""
        for node in self._roles:
            if node == me or self._role(node, me) in allowed:
                continue
            before = self._effects
            try:
                handler(node, message)
            except RemoteError:
                pass
            else:
                raise AssertionError(
                    f"node {me} takes {message} of node {node}, which is {self._role(node, me)}"
                )
            assert self._effects == before
            self.refused[type(message), self._role(node, me)] += 1


@pytest.mark.parametrize("protocol", WAYS)
def test_a_message_of_a_wrong_role_is_refused_and_changes_nothing(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = WrongSenders(scenario_of(protocol), WAYS[protocol])
    wrong.count_effects(monkeypatch)
    run = wrong.run()
    assert run.violations == [] and run.description.failure is None
    assert len(wrong.kinds) >= LEAST[protocol]
    assert len(wrong.refused) >= 2 * LEAST[protocol]

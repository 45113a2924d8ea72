"""Hydra whole, in the simulator: every arrival noted, any packet lost on demand, and what receivers got."""

from collections.abc import Callable
from dataclasses import replace

from ordercast.core import (
    MILLISECOND,
    Deployment,
    Env,
    Groups,
    Message,
    Node,
    NodeId,
    Process,
    message_name,
)
from ordercast.judge import Violation, judge
from ordercast.protocols.hydra.messages import Plans
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import deploy
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.protocols.hydra.service import ConfigurationReplica
from ordercast.sim.world import World
from ordercast.trace import Event, Kind, describe

Drop = Callable[[NodeId, NodeId, Message], bool]


class Cluster:
    """Groups of three receivers, one sender, and all that Hydra needs; `drop` says what does not arrive."""

    def __init__(self, options: HydraOptions | None = None, groups: int = 2, seed: int = 0) -> None:
        plan = deploy(Deployment.disjoint(groups, 3, 1), options or HydraOptions())
        plan = replace(plan, nodes=tuple(self._tap(node) for node in plan.nodes))
        self.arrivals: list[tuple[NodeId, NodeId, Message]] = []
        self.drop: Drop = lambda source, to, message: False
        self.world = World(plan, seed, through_codec=True)
        self.receivers = tuple(node.id for node in plan.nodes if node.role == "receiver")
        self.sequencers = tuple(node.id for node in plan.nodes if node.role == "sequencer")
        self.replicas = tuple(node.id for node in plan.nodes if node.role == "configuration")
        self.sender = plan.senders[0]
        self.crashed: set[NodeId] = set()
        self.run_ms(60)

    def _tap(self, node: Node) -> Node:
        def factory(env: Env) -> Process:
            process = node.factory(env)
            handler = process.on_message

            def on_message(source: NodeId, message: Message) -> None:
                if not self.drop(source, env.me, message):
                    self.arrivals.append((source, env.me, message))
                    handler(source, message)

            process.on_message = on_message  # type: ignore[method-assign]
            return process

        return replace(node, factory=factory)

    def run_ms(self, duration_ms: float) -> None:
        """Time passes."""
        self.world.run(self.world.now + round(duration_ms * MILLISECOND))

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 2000) -> None:
        """Time passes until something holds, which it must within the limit."""
        for _ in range(10 * limit_ms):
            if condition():
                return
            self.run_ms(0.1)
        raise AssertionError("it never came to hold")

    def submit(self, groups: Groups = (0, 1), count: int = 1) -> None:
        """The sender sends so many, a tenth of a millisecond apart."""
        for _ in range(count):
            assert self.world.submit(self.sender, groups, b"payload") is not None
            self.run_ms(0.1)

    def crash(self, node: NodeId) -> None:
        """A node, alone on its host, stops."""
        self.crashed.add(node)
        self.world.crash(node)

    def restart(self, node: NodeId) -> None:
        """It comes back, with an empty disk unless it saved something."""
        self.crashed.discard(node)
        self.world.restart(node)

    def leader(self) -> NodeId | None:
        """The replica that leads the service."""
        for node in self.replicas:
            process = self.world.envs[node].process
            assert isinstance(process, ConfigurationReplica)
            if node not in self.crashed and process._log.is_leader:
                return node
        return None

    def planned(self) -> Plans | None:
        """The step that the leader is about to take."""
        leader = self.leader()
        if leader is None:
            return None
        process = self.world.envs[leader].process
        assert isinstance(process, ConfigurationReplica)
        return process._registry.planned

    def number(self, node: NodeId) -> int:
        """The number of a sequencer."""
        process = self.world.envs[node].process
        assert isinstance(process, Sequencer)
        return process.number

    def configs(self) -> list[int]:
        """The configuration of every receiver."""
        found = []
        for node in self.receivers:
            process = self.world.envs[node].process
            assert isinstance(process, Receiver)
            found.append(process.config)
        return found

    def events(self, node: NodeId, kind: Kind) -> list[Event]:
        """The trace of one kind at a node."""
        return [Event._make(row) for row in self.world.rows if row[2] == node and row[3] == kind]

    def order(self, node: NodeId) -> list[str]:
        """The messages that a receiver delivered."""
        return [message_name(event.message or 0) for event in self.events(node, Kind.DELIVER)]

    def views(self, node: NodeId) -> list[tuple[str | None, int | None]]:
        """The changes that a receiver passed: what, and which sequencer."""
        return [(event.label, event.stamp_issuer) for event in self.events(node, Kind.VIEW)]

    def all_pass(self, *views: tuple[str, int]) -> bool:
        """Whether all receivers that are up have passed these changes, and no others."""
        up = [node for node in self.receivers if node not in self.crashed]
        return all(self.views(node) == list(views) for node in up)

    def violations(self) -> list[Violation]:
        """What the oracles say of the run so far."""
        description = describe(self.world.plan, run="cluster", source="simulator", seed=0, complete=True)
        return judge(description, [Event._make(row) for row in self.world.rows])

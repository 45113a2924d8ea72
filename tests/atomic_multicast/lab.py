"""Atomic multicast in the simulator, with every arrival noted and any packet lost on demand."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ordercast.core import (
    MILLISECOND,
    Deployment,
    Groups,
    Message,
    MessageId,
    Node,
    NodeId,
    Process,
    message_name,
)
from ordercast.core.process import Env
from ordercast.protocols.atomic_multicast import AtomicMulticastOptions, deploy
from ordercast.protocols.atomic_multicast.client import Client
from ordercast.protocols.atomic_multicast.receiver import Receiver
from ordercast.sim.world import World

Arrival = tuple[NodeId, NodeId, Message]
Drop = Callable[[NodeId, NodeId, Message], bool]


class Lab:
    """Groups of receivers and some clients; `drop` decides what does not arrive."""

    def __init__(
        self,
        groups: int = 1,
        receivers: int = 3,
        clients: int = 1,
        options: AtomicMulticastOptions | None = None,
        seed: int = 0,
    ) -> None:
        deployment = Deployment.disjoint(groups, receivers, clients)
        plan = deploy(deployment, options or AtomicMulticastOptions())
        plan = replace(plan, nodes=tuple(self._tap(node) for node in plan.nodes))
        self.arrivals: list[Arrival] = []
        self.drop: Drop = lambda source, target, message: False
        self.orders: dict[NodeId, list[str]] = {node: [] for node in range(deployment.receivers)}
        self.world = World(plan, seed, through_codec=True)
        self.world.observers.append(self._delivered)
        self.clients = plan.senders
        self.world.run(1)

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

    def _delivered(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        self.orders[node].append(message_name(message))

    def submit(self, groups: Groups, client: int = 0) -> None:
        assert self.world.submit(self.clients[client], groups, b"payload") is not None

    def run_ms(self, duration_ms: float) -> None:
        self.world.run(self.world.now + round(duration_ms * MILLISECOND))

    def receiver(self, node: NodeId) -> Receiver:
        process = self.world.envs[node].process
        assert isinstance(process, Receiver)
        return process

    def client(self, index: int = 0) -> Client:
        process = self.world.envs[self.clients[index]].process
        assert isinstance(process, Client)
        return process

    def counts(self, node: NodeId) -> Counter[str]:
        """What has arrived at a node, by type."""
        return Counter(type(message).__name__ for _, to, message in self.arrivals if to == node)

    def waits(self, node: NodeId) -> list[tuple[str, str]]:
        explanation = self.world.envs[node].process.explain()
        return [(wait.subject, wait.blocker) for wait in explanation.waits]

    def clocks_kept(self, node: NodeId) -> int:
        """Timestamps that a receiver remembers."""
        lives = self.receiver(node)._ledger.lives.values()
        return sum(len(life.clocks) for epochs in lives for life in epochs.values())

    def deliveries(self) -> list[tuple[NodeId, str, int, int]]:
        """Node, message and stamp of each delivery."""
        return [
            (row[2], message_name(row[4]), row[8], row[9])  # type: ignore[arg-type, misc]
            for row in self.world.rows
            if row[3] == "deliver"
        ]

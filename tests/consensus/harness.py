"""A bare log in the simulator: processes that embed a replica and remember what it applied."""

from random import Random

import msgspec

from ordercast.components.consensus import MESSAGES, Barrier, ConsensusOptions, Replica
from ordercast.core import (
    MILLISECOND,
    Codec,
    Crashes,
    Delivered,
    Delivery,
    Env,
    Explanation,
    Fault,
    Guarantees,
    Message,
    Nanos,
    Node,
    NodeId,
    Plan,
    Stack,
)
from ordercast.scenario.conditions import Conditions
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork, Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import World

Applied = list[tuple[int, bytes]]


class LogNode(Stack):
    """Owns a replica; its state is the list of what was applied."""

    def __init__(
        self,
        env: Env,
        peers: tuple[NodeId, ...],
        options: ConsensusOptions,
        arrived: list[Message],
        **kept: bool,
    ) -> None:
        super().__init__(env)
        self._arrived = arrived
        self.applied: Applied = []
        self.restored = 0
        """How often a snapshot was taken back."""
        self.replica = self.embed("log", lambda env: self.make_replica(env, peers, options, **kept), MESSAGES)

    def make_replica(
        self, env: Env, peers: tuple[NodeId, ...], options: ConsensusOptions, **kept: bool
    ) -> Replica:
        return Replica(env, peers, options, snapshot=self._snapshot, restore=self._restore, **kept)

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        assert isinstance(delivery, Delivered) and delivery.stamp is not None
        slot, value = delivery.stamp.clock, delivery.payload
        assert not self.applied or slot > self.applied[-1][0]
        self.applied.append((slot, value))

    def _snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.applied)

    def _restore(self, state: bytes) -> None:
        self.applied = msgspec.msgpack.decode(state, type=Applied)
        self.restored += 1

    def on_message(self, source: NodeId, message: Message) -> None:
        self._arrived.append(message)
        super().on_message(source, message)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError(message)

    def on_own_timer(self, name: str) -> None:
        raise AssertionError(name)

    def explain(self) -> Explanation:
        return self.replica.explain()


class LogWorld(World):
    """Replicas of one log, and what a test asks of them."""

    def __init__(
        self,
        replicas: int = 3,
        seed: int = 0,
        options: ConsensusOptions | None = None,
        conditions: Conditions | None = None,
        node_type: type[LogNode] = LogNode,
        messages: tuple[type[Message], ...] = MESSAGES,
        **kept: bool,
    ) -> None:
        peers = tuple(range(replicas))
        wanted = options or ConsensusOptions()
        weather = conditions or Conditions()

        def network(scheduler: Scheduler, rng: Random) -> Network:
            return LatencyNetwork(scheduler, rng, weather, Uniform(20_000, 200_000))

        self.arrived: list[Message] = []
        """Every message that a replica was given."""

        def node(env: Env) -> LogNode:
            return node_type(env, peers, wanted, self.arrived, **kept)

        nodes = tuple(Node(i, "replica", i, node) for i in peers)
        promised = Guarantees(crashes=Crashes.MINORITY, tolerates=(Fault.AMNESIA,))
        plan = Plan("log", promised, nodes, {0: peers}, (), Codec(messages))
        super().__init__(plan, seed, network, through_codec=True)
        self.run(0)

    def node(self, index: int) -> LogNode:
        process = self.envs[index].process
        assert isinstance(process, LogNode)
        return process

    def replica(self, index: int) -> Replica:
        return self.node(index).replica

    def up(self) -> list[int]:
        return [env.me for env in self.envs if env.host.up]

    def leader(self) -> int | None:
        """The living leader of the highest ballot, as the replicas see it."""
        leaders = [i for i in self.up() if self.replica(i).is_leader]
        return max(leaders, key=lambda i: self.replica(i).ballot, default=None)

    def propose(self, value: bytes) -> bool:
        """Propose at the leader, if there is one."""
        leader = self.leader()
        return leader is not None and self.act(leader, value)

    def act(self, index: int, value: bytes) -> bool:
        """Propose at one replica, as a handler would; False if its host is busy or paused."""
        env = self.envs[index]
        env.now = self.now
        return env.host.free_at <= self.now and self.replica(index).propose(value)

    def barrier(self, index: int) -> Barrier | None:
        """Ask for a barrier at one replica, as a handler would; None if it does not lead or cannot answer."""
        env = self.envs[index]
        env.now = self.now
        return self.replica(index).barrier() if env.host.free_at <= self.now else None

    def values(self, index: int) -> list[bytes]:
        return [value for _, value in self.node(index).applied]

    def run_ms(self, duration_ms: float) -> None:
        self.run(self.now + Nanos(round(duration_ms * MILLISECOND)))

    def saved_slots(self, index: int) -> list[int]:
        prefix = "log.slot."
        saved = self.envs[index].saved
        return sorted(int(name[len(prefix) :]) for name in saved if name.startswith(prefix))

"""A bare log in the simulator: processes that embed a replica and remember what it applied."""

from collections.abc import Mapping
from random import Random

import msgspec

from ordercast.components.consensus import MESSAGES, ConsensusOptions, Replica
from ordercast.core import (
    MILLISECOND,
    Codec,
    Env,
    Explanation,
    Guarantees,
    Message,
    Nanos,
    Node,
    NodeId,
    Plan,
    Process,
)
from ordercast.scenario.conditions import Conditions
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork, Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import World

Applied = list[tuple[int, bytes]]


class LogNode(Process):
    """Owns a replica; its state is the list of what was applied."""

    def __init__(
        self,
        env: Env,
        peers: tuple[NodeId, ...],
        options: ConsensusOptions,
        arrived: list[Message],
    ) -> None:
        super().__init__(env)
        self._arrived = arrived
        self.applied: Applied = []
        self.replica = Replica(
            env, peers, self._apply, options, snapshot=self._snapshot, restore=self._restore
        )

    def _apply(self, slot: int, value: bytes) -> None:
        assert not self.applied or slot > self.applied[-1][0]
        self.applied.append((slot, value))

    def _snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.applied)

    def _restore(self, state: bytes) -> None:
        self.applied = msgspec.msgpack.decode(state, type=Applied)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        self.replica.on_start(saved)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert self.replica.handles(message)
        self._arrived.append(message)
        self.replica.on_message(source, message)

    def on_timer(self, name: str) -> None:
        assert self.replica.owns(name)
        self.replica.on_timer(name)

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
    ) -> None:
        peers = tuple(range(replicas))
        wanted = options or ConsensusOptions()
        weather = conditions or Conditions()

        def network(scheduler: Scheduler, rng: Random) -> Network:
            return LatencyNetwork(scheduler, rng, weather, Uniform(20_000, 200_000))

        self.arrived: list[Message] = []
        """Every message that a replica was given."""

        def node(env: Env) -> LogNode:
            return LogNode(env, peers, wanted, self.arrived)

        nodes = tuple(Node(i, "replica", i, node) for i in peers)
        plan = Plan("log", Guarantees(), nodes, {0: peers}, (), Codec(MESSAGES))
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

    def values(self, index: int) -> list[bytes]:
        return [value for _, value in self.node(index).applied]

    def run_ms(self, duration_ms: float) -> None:
        self.run(self.now + Nanos(round(duration_ms * MILLISECOND)))

    def saved_slots(self, index: int) -> list[int]:
        prefix = "consensus.slot."
        saved = self.envs[index].saved
        return sorted(int(name[len(prefix) :]) for name in saved if name.startswith(prefix))

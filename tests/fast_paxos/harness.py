"""A bare log of Fast Paxos in the simulator: values go to replicas one by one, as packets of clients do."""

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import ConsensusOptions
from ordercast.core import Env, Message, NodeId
from ordercast.replication.fast_paxos.fast_replica import FastReplica
from ordercast.replication.fast_paxos.messages import MESSAGES
from ordercast.scenario.conditions import Conditions
from tests.consensus.harness import LogNode, LogWorld


class FastNode(LogNode):
    """Owns a replica of Fast Paxos, and remembers what lost its slot."""

    def __init__(
        self,
        env: Env,
        peers: tuple[NodeId, ...],
        options: ConsensusOptions,
        arrived: list[Message],
        **kept: bool,
    ) -> None:
        self.displaced: list[bytes] = []
        super().__init__(env, peers, options, arrived, **kept)
        self._takers.update(dict.fromkeys(MESSAGES, self.replica))

    def make_replica(
        self, env: Env, peers: tuple[NodeId, ...], options: ConsensusOptions, **kept: bool
    ) -> FastReplica:
        return FastReplica(
            env,
            peers,
            options,
            lambda value: None,
            self.displaced.append,
            snapshot=self._snapshot,
            restore=self._restore,
            transfers=kept.get("transfers", True),
            durable=kept.get("durable", True),
        )


class FastWorld(LogWorld):
    """Replicas of one log, and what a test asks of them."""

    def __init__(
        self,
        replicas: int = 3,
        seed: int = 0,
        options: ConsensusOptions | None = None,
        conditions: Conditions | None = None,
        *,
        durable: bool = True,
    ) -> None:
        messages = (*MESSAGES, *CONSENSUS_MESSAGES)
        super().__init__(
            replicas, seed, options, conditions, FastNode, messages, transfers=True, durable=durable
        )

    def fast(self, index: int) -> FastReplica:
        replica = self.replica(index)
        assert isinstance(replica, FastReplica)
        return replica

    def give(self, index: int, value: bytes) -> bool:
        """A value comes to one replica from its client: the leader places it, any other votes for it."""
        env = self.envs[index]
        env.now = self.now
        if not env.host.up or env.host.free_at > self.now:
            return False
        replica = self.fast(index)
        return replica.place(value) if replica.is_leader else replica.vote(value)

    def give_all(self, value: bytes) -> None:
        """A value comes to all replicas at once."""
        for index in self.up():
            self.give(index, value)

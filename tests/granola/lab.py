"""Granola in the simulator: two shards, and what must be true of them at the end of a play."""

from collections.abc import Iterable, Mapping

from ordercast.core import MILLISECOND, Message, MessageId, Nanos, NodeId
from ordercast.core.general import pack_prepare
from ordercast.scenario.clock import Clock
from ordercast.trace import Event, Kind
from ordercast.transactions.granola.client import GranolaClient
from ordercast.transactions.granola.schedule import Record
from ordercast.transactions.granola.server import GranolaServer
from tests.hand_driven import require
from tests.logged_shards.lab import FAR, ShardsWorld

LOCK_MS = 100
VOTE_MS = 10


class GranolaWorld(ShardsWorld):
    """Two shards of three replicas, nodes 0 to 5, and clients behind them."""

    def __init__(
        self,
        clients: int = 3,
        options: Mapping[str, object] | None = None,
        seed: int = 0,
        ahead_ms: int = 0,
    ) -> None:
        """`ahead_ms`: how far the clocks of shard 0 are ahead of those of shard 1."""
        clocks = {node: Clock(ahead_ms * MILLISECOND) for node in range(3)}
        options = {"checkpoint_every": 1, "conflicts_max": 1000, **(options or {})}
        super().__init__("granola", clients, options, seed, clocks=clocks)

    def server(self, node: NodeId) -> GranolaServer:
        process = self.envs[node].process
        assert isinstance(process, GranolaServer)
        return process

    def client(self, index: int) -> GranolaClient:
        process = self.envs[self.CLIENT + index].process
        assert isinstance(process, GranolaClient)
        return process

    def leader(self, shard: int) -> NodeId:
        """Who leads a shard."""
        for node in range(3 * shard, 3 * shard + 3):
            if self.envs[node].host.up and self.server(node).log.is_leader:
                return node
        raise AssertionError(f"shard {shard} has no leader")

    def lose(self, *kinds: type[Message], to: Iterable[int] = (), source: Iterable[int] = ()) -> None:
        """Lose all messages of some kinds, or those to, or of, some nodes; without kinds, nothing."""
        targets, sources = set(to), set(source)
        self.lost = lambda sender, target, message: (
            isinstance(message, kinds)
            and (not targets or target in targets)
            and (not sources or sender in sources)
        )

    def kinds(self, kind: type[Message]) -> int:
        """How many messages of a kind were sent."""
        return sum(isinstance(message, kind) for _, _, message in self.sent)

    def records(self, node: NodeId) -> list[Record]:
        """What a replica has on record."""
        return list(self.server(node).schedule.records.values())

    def deliveries(self, message: MessageId) -> list[Event]:
        """The rows about the execution of a call."""
        return [event for event in self.events(Kind.DELIVER) if event.message == message]

    def times(self, message: MessageId) -> set[Nanos | None]:
        """The timestamps at which replicas have run a call."""
        return {event.stamp_clock for event in self.deliveries(message)}

    def order(self, node: NodeId) -> list[MessageId | None]:
        """What a replica has run, in its order."""
        return [event.message for event in self.events(Kind.DELIVER) if event.node == node]

    def ends(self, transaction: MessageId) -> set[Nanos | None]:
        """The timestamps at which shards ended a general transaction."""
        rows = self.events(Kind.RELEASED)
        return {event.stamp_clock for event in rows if event.message == transaction}

    def inject(self, source: NodeId, to: NodeId, message: Message) -> None:
        """Let a copy of a message come once more."""
        self.transmit(self.envs[source], self.now, to, message)

    def is_locking(self, shard: int) -> bool:
        """Whether a shard is in locking mode."""
        return self.server(self.leader(shard)).schedule.is_locking

    def finish(self, *answered: MessageId, within_ms: int = 12 * LOCK_MS) -> None:
        """Let everything settle, and look at all that was promised: these calls are answered, all shards have
        executed the same, and nothing is locked or on record any more."""
        self.lost = lambda source, to, message: False
        self.block()
        for node in self.REPLICAS:
            self.restart(node)
        self.run_ms(within_ms)
        for message in answered:
            require(self.answered(message), f"call {message} has no answer")
        for node in self.REPLICAS:
            schedule = self.server(node).schedule
            require(not schedule.is_locking, f"node {node} holds locks")
            require(not schedule.records, f"node {node} keeps {schedule.records}")
        found = self.violations()
        require(not found, "; ".join(f"{one.property}: {one.detail}" for one in found[:3]))


def until_answered(world: GranolaWorld, message: MessageId) -> None:
    """Let the world go on until a call is answered."""
    world.run_until(lambda: world.answered(message))


def prepared(world: GranolaWorld, client: int = 0) -> MessageId:
    """A general transaction that has its locks."""
    message = world.call(pack_prepare(FAR), client)
    until_answered(world, message)
    return message

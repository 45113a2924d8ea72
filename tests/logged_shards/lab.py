"""Two shards that are logs, in the simulator, and a network that loses what a test says."""

from collections.abc import Callable, Mapping

from ordercast.components.execution import pack_call
from ordercast.core import MILLISECOND, Message, MessageId, Nanos, NodeId, message_id, shard_of
from ordercast.core.bundle import pack_bundle
from ordercast.judge import verdict
from ordercast.judge.finding import Replay, Violation
from ordercast.scenario.clock import Clock
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.spec import Scenario
from ordercast.services.sharded import ALL_ACCOUNTS, Bank
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.world import World
from ordercast.trace import Event, Kind, describe
from tests.core.shards import shard_type

BANK = shard_type(Bank)
CLIENT = 9
SHARDS = 2
HERE, THERE = (next(key for key in ALL_ACCOUNTS if shard_of(key, SHARDS) == shard) for shard in range(SHARDS))
FAR = (HERE, THERE)
"""Two accounts in two shards."""
ALSO_HERE, ALSO_THERE = (
    next(key for key in ALL_ACCOUNTS if key not in FAR and shard_of(key, SHARDS) == shard)
    for shard in range(SHARDS)
)


def transfer(source: str, target: str, amount: int) -> bytes:
    return BANK.find("transfer").pack((source, target, amount), {})


def call_of(number: int, *operations: bytes, floor: int | None = None) -> bytes:
    """A call of a client, as bytes."""
    bundle = pack_bundle(message_id(CLIENT, number), [1] * len(operations), operations)
    return pack_call(message_id(CLIENT, number if floor is None else floor), bundle)


class ShardsWorld(World):
    """Two shards of three replicas, nodes 0 to 5, and clients behind them."""

    CLIENT = 6
    REPLICAS = range(6)

    def __init__(
        self,
        protocol: str,
        clients: int = 2,
        options: Mapping[str, object] | None = None,
        seed: int = 0,
        loss: float = 0.0,
        clocks: Mapping[NodeId, Clock] | None = None,
    ) -> None:
        self.lost: Callable[[NodeId, NodeId, Message], bool] = lambda source, to, message: False
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        """The messages of the protocol itself, without those of its logs."""
        scenario = Scenario(
            protocol=protocol,
            groups=SHARDS,
            receivers=3,
            senders=clients,
            service="bank",
            options=dict(options or {}),
        )
        super().__init__(
            scenario.plan(),
            seed,
            lambda scheduler, rng: LatencyNetwork(
                scheduler, rng, Conditions(loss=loss), Uniform(20_000, 200_000)
            ),
            through_codec=True,
            clocks=clocks,
        )
        self.run(0)
        self.run_ms(1)

    def run_ms(self, duration_ms: float) -> None:
        self.run(self.now + Nanos(round(duration_ms * MILLISECOND)))

    def run_until(self, done: Callable[[], object], within_ms: int = 1000) -> None:
        """Let the world go on until something is true; it must become so."""
        for _ in range(100 * within_ms):
            if done():
                return
            self.run_ms(0.01)
        raise AssertionError("it never became true")

    def transmit(self, env: NodeEnv, departure: Nanos, to: NodeId, message: Message) -> None:
        """Carry a message, unless the test loses it."""
        if "consensus" not in type(message).__module__:
            self.sent.append((env.me, to, message))
        if not self.lost(env.me, to, message):
            super().transmit(env, departure, to, message)

    def call(self, operation: bytes, client: int = 0) -> MessageId:
        message = self.submit(self.CLIENT + client, BANK.groups(operation, SHARDS), operation)
        assert message is not None
        return message

    def block(self, *ways: tuple[int, int]) -> None:
        """Let nothing pass on these ways, and everything on all others."""
        self.network.blocked = set(ways)

    def cut_client(self, client: int, shard: int) -> None:
        """A client cannot reach a shard."""
        self.block(*((self.CLIENT + client, 3 * shard + replica) for replica in range(3)))

    def events(self, kind: Kind) -> list[Event]:
        return [event for event in map(Event._make, self.rows) if event.kind == kind]

    def deliverers(self, message: MessageId) -> set[int]:
        """The replicas that have delivered a message."""
        return {event.node for event in self.events(Kind.DELIVER) if event.message == message}

    def answered(self, message: MessageId) -> bool:
        return message in self.calls.results

    def violations(self, *, complete: bool = True) -> list[Violation]:
        """What the oracles say of the run so far."""
        run = describe(self.plan, run="lab", source="simulator", seed=self.seed, complete=complete)
        assert self.plan.service is not None
        replay = Replay(self.plan.service, self.calls.operations)
        return verdict(run, [Event._make(row) for row in self.rows], replay=replay).violations

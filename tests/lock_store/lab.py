"""Lock-Store without a network, as ledgers and commands for them; and in the simulator, for scenes."""

from collections.abc import Mapping

from ordercast.components.execution import Executor, pack_call
from ordercast.core import MILLISECOND, Groups, MessageId, Nanos, Stamp, message_id, shard_of
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.spec import Scenario
from ordercast.services.sharded import ALL_ACCOUNTS, Bank
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork
from ordercast.sim.world import World
from ordercast.testing import RecordingEnv
from ordercast.trace import Event, Kind
from ordercast.transactions.lock_store.client import TransactionClient
from ordercast.transactions.lock_store.commands import Command, State, Verb
from ordercast.transactions.lock_store.ledger import Finding, Ledger
from ordercast.transactions.lock_store.server import ShardServer
from tests.core.shards import shard_type

BANK = shard_type(Bank)
CLIENT = 9
SHARDS = 2
HERE, THERE = (next(key for key in ALL_ACCOUNTS if shard_of(key, SHARDS) == shard) for shard in range(SHARDS))
FAR = (HERE, THERE)
"""Two accounts in two shards."""
ALSO_HERE = next(key for key in ALL_ACCOUNTS if key != HERE and shard_of(key, SHARDS) == 0)


def transfer(source: str, target: str, amount: int) -> bytes:
    return BANK.find("transfer").pack((source, target, amount), {})


def call_of(number: int, *operations: bytes, floor: int | None = None) -> bytes:
    """A call of the client, as bytes."""
    bundle = pack_bundle(message_id(CLIENT, number), [1] * len(operations), operations)
    return pack_call(message_id(CLIENT, number if floor is None else floor), bundle)


class ShardLab:
    """The ledger of one shard, with places that count up."""

    def __init__(self, shard: int = 0) -> None:
        self.executor = Executor(RecordingEnv(), BANK.spec().for_group(shard, SHARDS))
        self.ledger = Ledger(self.executor)
        self.shard = shard
        self.clock = 0

    def run(self, command: Command) -> Finding | None:
        self.clock += 1
        return self.ledger.run(command, Stamp(self.clock, self.shard))

    def do(
        self,
        verb: Verb,
        number: int,
        attempt: int = 0,
        *,
        call: bytes = b"",
        groups: Groups = (0, 1),
        done: tuple[MessageId, ...] = (),
    ) -> State | None:
        """Run a command; the state that it tells."""
        found = self.run(Command(verb, message_id(CLIENT, number), attempt, groups, call, done))
        return None if found is None else found.state

    def lock(
        self, number: int, *operations: bytes, attempt: int = 0, groups: Groups = (0, 1)
    ) -> State | None:
        call = call_of(number, *(operations or (transfer(*FAR, 5),)), floor=1)
        return self.do(Verb.LOCK, number, attempt, call=call, groups=groups)

    def value(self, account: str) -> object:
        """The money on an account of this shard."""
        number = 1000 + self.clock
        total = BANK.find("total")
        assert self.lock(number, total.pack(([account],), {}), groups=(self.shard,)) is State.LOCKED
        self.do(Verb.COMMIT, number, groups=(self.shard,))
        known = self.ledger.known(message_id(CLIENT, number))
        assert known is not None
        return total.unpack_result(unpack(known.results)[0].payload)


class StoreWorld(World):
    """Two shards of three replicas, nodes 0 to 5, and clients behind them."""

    CLIENT = 6

    def __init__(
        self, clients: int = 2, options: Mapping[str, object] | None = None, seed: int = 0, loss: float = 0.0
    ) -> None:
        scenario = Scenario(
            protocol="lock_store",
            groups=SHARDS,
            receivers=3,
            senders=clients,
            service="bank",
            options={"checkpoint_every": 1, **(options or {})},
        )
        super().__init__(
            scenario.plan(),
            seed,
            lambda scheduler, rng: LatencyNetwork(
                scheduler, rng, Conditions(loss=loss), Uniform(20_000, 200_000)
            ),
            through_codec=True,
        )
        self.run(0)
        self.run_ms(1)

    def run_ms(self, duration_ms: float) -> None:
        self.run(self.now + Nanos(round(duration_ms * MILLISECOND)))

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

    def server(self, node: int) -> ShardServer:
        process = self.envs[node].process
        assert isinstance(process, ShardServer)
        return process

    def client(self, index: int) -> TransactionClient:
        process = self.envs[self.CLIENT + index].process
        assert isinstance(process, TransactionClient)
        return process

    def events(self, kind: Kind) -> list[Event]:
        return [event for event in map(Event._make, self.rows) if event.kind == kind]

    def deliverers(self, message: MessageId) -> set[int]:
        """The replicas that have delivered a message."""
        return {event.node for event in self.events(Kind.DELIVER) if event.message == message}

    def answered(self, message: MessageId) -> bool:
        return message in self.calls.results

    def locks(self) -> int:
        """How many calls and transactions hold locks at the replicas."""
        return sum(len(list(self.server(node)._ending.under_way())) for node in range(6))

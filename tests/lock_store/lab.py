"""Lock-Store without a network, as ledgers and commands for them; and in the simulator, for scenes."""

from collections.abc import Mapping

from ordercast.components.execution import Executor
from ordercast.core import Groups, MessageId, Stamp, message_id
from ordercast.core.bundle import unpack
from ordercast.testing import RecordingEnv
from ordercast.transactions.lock_store.client import TransactionClient
from ordercast.transactions.lock_store.commands import Command, State, Verb
from ordercast.transactions.lock_store.ledger import Finding, Ledger
from ordercast.transactions.lock_store.server import ShardServer
from tests.logged_shards.lab import BANK, CLIENT, FAR, SHARDS, ShardsWorld, call_of, transfer


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


class StoreWorld(ShardsWorld):
    """Two shards of three replicas, nodes 0 to 5, and clients behind them."""

    def __init__(
        self, clients: int = 2, options: Mapping[str, object] | None = None, seed: int = 0, loss: float = 0.0
    ) -> None:
        super().__init__("lock_store", clients, {"checkpoint_every": 1, **(options or {})}, seed, loss)

    def server(self, node: int) -> ShardServer:
        process = self.envs[node].process
        assert isinstance(process, ShardServer)
        return process

    def client(self, index: int) -> TransactionClient:
        process = self.envs[self.CLIENT + index].process
        assert isinstance(process, TransactionClient)
        return process

    def locks(self) -> int:
        """How many calls and transactions hold locks at the replicas."""
        return sum(len(list(self.server(node)._ending.under_way())) for node in range(6))

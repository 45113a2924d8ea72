"""A bank over shards, and ways to call it without a protocol."""

from ordercast.core import (
    Context,
    GroupId,
    Refused,
    Service,
    ServiceType,
    Shard,
    ShardType,
    StateMachine,
    message_id,
    transaction,
)

SHARDS = 3


class Bank(Shard):
    """Accounts, and the money on them."""

    @transaction(keys="account")
    def deposit(self, account: str, amount: int) -> int:
        """Add to an account."""
        self[account] = self.get(account, 0) + amount
        return int(self[account])

    @transaction(keys=("source", "target"))
    def transfer(self, source: str, target: str, amount: int) -> None:
        """Move money from one account to another."""
        if amount <= 0:
            raise Refused("nothing to move")
        for key, change in ((source, -amount), (target, amount)):
            if self.holds(key):
                self[key] = self.get(key, 0) + change

    @transaction(reads="accounts", combine=sum)
    def total(self, accounts: list[str]) -> int:
        """The money on some accounts."""
        return sum(self.get(key, 0) for key in self.held)

    @transaction(reads="accounts")
    def show(self, accounts: list[str]) -> dict[str, int]:
        """The money on each of some accounts."""
        return {key: self[key] for key in self.held if key in self}

    @transaction(keys="account")
    def close(self, account: str) -> int:
        """Remove an account."""
        money = int(self[account])
        del self[account]
        return money


def shard_type(service: type[Service]) -> ShardType:
    """What a class of shards is."""
    found = ServiceType.of(service)
    assert isinstance(found, ShardType)
    return found


BANK = shard_type(Bank)
AT = Context(message_id(8, 1), 0)
"""For operations that do not look at it."""


class Shards:
    """All shards of a service, which run what they are called with one after the other."""

    def __init__(self, kind: ShardType, shards: int = SHARDS) -> None:
        self.kind = kind
        self.machines: list[StateMachine] = [kind.make(shard, shards) for shard in range(shards)]
        self.calls = 0

    def results(self, payload: bytes) -> dict[GroupId, bytes]:
        """What each shard answers that a transaction goes to."""
        self.calls += 1
        context = Context(message_id(9, self.calls), self.calls)
        groups = self.kind.groups(payload, len(self.machines))
        return {group: self.machines[group].apply(payload, context) for group in groups}

    def call(self, name: str, *args: object) -> object:
        """The value of a transaction, or what it raises."""
        kind = self.kind.find(name)
        payload = kind.pack(args, {})
        return kind.unpack_result(self.kind.combine(payload, list(self.results(payload).values())))

    def states(self) -> list[bytes]:
        """What all shards hold."""
        return [machine.snapshot() for machine in self.machines]

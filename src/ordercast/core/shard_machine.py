"""A shard as the state machine that the replicas of its group run.

A transaction changes all of its keys here or, if it raises an exception, none. Every shard that runs it
decides that by itself: what a transaction refuses should depend on its arguments alone, or on the keys of one
shard.

Locks are part of the state. A general transaction asks for locks on all of its keys when it is prepared, in
the order of the shard, and has them until it is concluded: by its client, or by the shards themselves if the
client died (`end`). The first conclusion counts. Other transactions run at once, unless a general one has
asked for a key of theirs before; then they ask for locks too, and wait. So the order of the shard is an order
in which all of them could have run, with a general one where it was prepared.
"""

from collections.abc import KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ordercast.core.errors import MALFORMED, LocalError
from ordercast.core.general import (
    DONE,
    Conclude,
    Prepare,
    general_groups,
    pack_values,
    read_general,
)
from ordercast.core.ids import GroupId, Groups, MessageId, message_sender
from ordercast.core.locks import Locks
from ordercast.core.operation_type import Refused
from ordercast.core.service import HELD, Context, Outcome, StateMachine
from ordercast.core.service_class import Service, failed, fresh
from ordercast.core.shard import Keys, Scope, Shard

if TYPE_CHECKING:
    from ordercast.core.shard_type import TransactionType

ENDED_MAX = 4096
"""How many conclusions a shard remembers that came before what they conclude."""
WAITING_MAX = 65_536
"""How many transactions may wait for locks in a shard."""


class _State(msgspec.Struct, frozen=True, array_like=True):
    data: dict[str, bytes]
    owners: list[tuple[MessageId, tuple[str, ...], tuple[str, ...]]] = []
    pending: dict[MessageId, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    waiting: dict[MessageId, bytes] = {}
    ended: list[MessageId] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


class LockChange(NamedTuple):
    """A transaction got its locks in a shard, or was ended there."""

    transaction: MessageId
    committed: bool | None
    """None: it got its locks."""


class ShardMachine(StateMachine):
    """One of so many shards."""

    __slots__ = (
        "_data",
        "_ended",
        "_kinds",
        "_locks",
        "_pending",
        "_service",
        "_shard",
        "_shards",
        "_waiting",
        "changes",
        "released",
    )

    def __init__(
        self,
        service: type[Service],
        kinds: Mapping[bytes, "TransactionType"],
        shard: GroupId,
        shards: int,
    ) -> None:
        made = fresh(service)
        assert isinstance(made, Shard)
        self._service = made
        self._kinds = kinds
        self._shard = shard
        self._shards = shards
        self._data: dict[str, bytes] = {}
        """The value of each key, as bytes: a value that was read can be changed by nobody."""
        self._locks = Locks()
        self._pending: dict[MessageId, Keys] = {}
        """The general transactions without a conclusion, with all of their keys, also those of other shards.
        """
        self._waiting: dict[MessageId, bytes] = {}
        """The operations that wait for locks."""
        self._ended: dict[MessageId, None] = {}
        """General transactions that were concluded before they were prepared."""
        self.released: list[tuple[MessageId, bytes]] = []
        """The results of operations that waited, since its owner has last taken them away."""
        self.changes: list[LockChange] = []
        """What became of locks, since its owner has last taken that away."""

    def apply(self, operation: bytes, context: Context) -> bytes:
        """Run a transaction on the keys of this shard, or have it wait."""
        start = 1 + operation[0] if operation else 0
        kind = self._kinds.get(operation[:start])
        try:
            if kind is None:
                return self._general(operation, context)
            arguments = kind.unpack(operation[start:])
        except (LocalError, *MALFORMED) as error:
            return failed(str(error))
        named = kind.keys_of(arguments)
        here = named.within(self._shard, self._shards)
        if not here.all:
            return failed(f"{kind.name} names no key that this shard holds")
        if self._locks.owners and not self._locks.free(here):
            return self._wait(operation, here, context.message)
        return self._run(kind, arguments, Scope(self._data, named, here), context)

    def _wait(self, operation: bytes, here: Keys, message: MessageId) -> bytes:
        if len(self._waiting) >= WAITING_MAX:
            return _refused("too many transactions wait for locks in a shard")
        self._locks.ask(message, here)
        self._waiting[message] = operation
        return HELD

    def _run(
        self, kind: "TransactionType", arguments: tuple[object, ...], scope: Scope, context: Context
    ) -> bytes:
        service = self._service
        service.context, service._scope = context, scope
        try:
            result = kind.pack_result(getattr(service, kind.name)(*arguments))
        except Refused as refusal:
            result = _refused(str(refusal))
        except Exception as error:
            result = failed(f"{type(error).__name__}: {error}")
        if scope.fault:
            return failed(f"WrongKey: {scope.fault}")
        if result[0] == Outcome.ANSWERED:
            self._write(scope.written)
        return result

    def _write(self, written: Mapping[str, bytes | None]) -> None:
        for key, value in written.items():
            if value is None:
                self._data.pop(key, None)
            else:
                self._data[key] = value

    # General transactions

    def _general(self, operation: bytes, context: Context) -> bytes:
        general = read_general(operation)
        if general is None:
            raise LocalError(f"{type(self._service).__name__} has no such transaction")
        if self._shard not in general_groups(general, self._shards):
            raise LocalError("a general transaction has no key that this shard holds")
        if isinstance(general, Prepare):
            return self._prepare(operation, general.keys, context.message)
        return self._conclude(general, context)

    def _prepare(self, operation: bytes, keys: Keys, message: MessageId) -> bytes:
        if message in self._ended:
            del self._ended[message]
            return _refused("the transaction was ended before it was prepared")
        here = keys.within(self._shard, self._shards)
        if not self._locks.free(here):
            result = self._wait(operation, here, message)
        else:
            self._locks.ask(message, here)
            result = self._lock(message, here)
        if result[:1] != _REFUSED:
            self._pending[message] = keys
        return result

    def _lock(self, message: MessageId, here: Keys) -> bytes:
        """A general transaction has all of its locks here: read what it asked for."""
        self.changes.append(LockChange(message, None))
        return pack_values({key: self._data[key] for key in here.all if key in self._data})

    def _conclude(self, end: Conclude, context: Context) -> bytes:
        if message_sender(end.transaction) != context.caller:
            raise LocalError("only the client of a transaction may conclude it")
        keys = self._pending.get(end.transaction)
        if keys is None:
            self._note_ended(end.transaction, context.message)
            return _refused("the transaction had ended before")
        sound = end.transaction not in self._waiting and end.values.keys() <= set(keys.writes)
        if end.commits and sound:
            here = keys.within(self._shard, self._shards).writes
            self._write({key: end.values[key] for key in here if key in end.values})
        self._end(end.transaction, end.commits and sound, context)
        return DONE if sound or not end.commits else failed("a transaction wrote what it had not locked")

    def _note_ended(self, transaction: MessageId, conclusion: MessageId) -> None:
        """What is concluded takes no lock afterwards. One that is as new as its conclusion cannot exist."""
        if transaction < conclusion:
            self._ended[transaction] = None
            if len(self._ended) > ENDED_MAX:
                del self._ended[next(iter(self._ended))]

    def end(self, transaction: MessageId, context: Context) -> bool:
        """The shards end a general transaction whose client seems to have died; False if it has ended."""
        if transaction not in self._pending:
            return False
        self._end(transaction, False, context)
        return True

    def _end(self, transaction: MessageId, committed: bool, context: Context) -> None:
        del self._pending[transaction]
        self.changes.append(LockChange(transaction, committed))
        if self._waiting.pop(transaction, None) is not None:
            self.released.append((transaction, _refused("the transaction was ended while it waited")))
        self._leave(transaction, context)

    def _leave(self, owner: MessageId, context: Context) -> None:
        """Give up locks, and run what waited for them."""
        ready = self._locks.leave(owner)
        while ready:
            message = ready.pop(0)
            if message in self._pending:
                del self._waiting[message]
                self.released.append((message, self._lock(message, self._locks.owners[message])))
            else:
                self.released.append((message, self._run_late(message, context)))
                ready += self._locks.leave(message)

    def _run_late(self, message: MessageId, context: Context) -> bytes:
        """Run an operation that has waited, at the time of the one that it waited for."""
        operation = self._waiting.pop(message)
        start = 1 + operation[0]
        kind = self._kinds[operation[:start]]
        arguments = kind.unpack(operation[start:])
        scope = Scope(self._data, kind.keys_of(arguments), self._locks.owners[message])
        return self._run(kind, arguments, scope, Context(message, context.now_ns))

    # Locks that a protocol takes by itself

    def lock(self, owner: MessageId, operations: Sequence[bytes]) -> bool:
        """Lock all keys here of some operations at once; False, and no lock, if one of them is taken."""
        here = self.keys(operations)
        return self._locks.free(here) and self._locks.ask(owner, here)

    @property
    def is_locking(self) -> bool:
        """Whether anybody holds locks here."""
        return bool(self._locks.owners)

    def is_free(self, operations: Sequence[bytes]) -> bool:
        """Whether nobody has locked a key here that some operations need."""
        return self._locks.free(self.keys(operations))

    def keys(self, operations: Sequence[bytes]) -> Keys:
        """The keys here of some operations."""
        keys = [self._keys_of(operation) for operation in operations]
        writes = [key for one in keys for key in one.writes]
        return Keys.of(writes, [key for one in keys for key in one.reads])

    def _keys_of(self, operation: bytes) -> Keys:
        """The keys here of an operation; none if it is malformed, or ends a general transaction."""
        try:
            kind = self._kinds.get(operation[: 1 + operation[0]] if operation else b"")
            general = read_general(operation) if kind is None else None
            named = general.keys if isinstance(general, Prepare) else None
            if kind is not None:
                named = kind.keys_in(operation)
        except LocalError:
            named = None
        return Keys((), ()) if named is None else named.within(self._shard, self._shards)

    def unlock(self, owner: MessageId, context: Context) -> None:
        """Give up such locks."""
        self._leave(owner, context)

    @property
    def waiting(self) -> KeysView[MessageId]:
        """The operations that wait for locks."""
        return self._waiting.keys()

    @property
    def pending(self) -> dict[MessageId, Groups]:
        """The general transactions without a conclusion, oldest first, with their shards."""
        return {
            message: general_groups(Prepare(*keys), self._shards) for message, keys in self._pending.items()
        }

    # State

    def read(self, operation: bytes, context: Context) -> bytes:
        """A shard has no reads that pass the order."""
        return failed("a transaction is not a read")

    def snapshot(self) -> bytes:
        """All keys with their values, all locks, and what waits for them."""
        owners = [(owner, *keys) for owner, keys in self._locks.owners.items()]
        pending = {message: tuple(keys) for message, keys in self._pending.items()}
        return _encoder.encode((self._data, owners, pending, self._waiting, list(self._ended)))

    def restore(self, state: bytes) -> None:
        """Take over a snapshot; `LocalError`, and nothing changes, if it is none."""
        try:
            found = _decoder.decode(state)
        except MALFORMED as error:
            raise LocalError(f"the state of a shard cannot be read: {error}") from error
        self._locks = self._restored_locks(found)
        self._data = found.data
        self._pending = {message: Keys(*keys) for message, keys in found.pending.items()}
        self._waiting = found.waiting
        self._ended = dict.fromkeys(found.ended)
        self.released, self.changes = [], []

    def _restored_locks(self, found: _State) -> Locks:
        """The locks in a snapshot. Who does not hold them waits, with something that can be run then."""
        locks = Locks()
        waits = {owner for owner, *keys in found.owners if not locks.ask(owner, Keys.of(*keys))}
        owners = locks.owners.keys()
        fits = len(owners) == len(found.owners) and owners >= found.pending.keys()
        late = (operation for one, operation in found.waiting.items() if one not in found.pending)
        if not fits or waits != found.waiting.keys() or not all(map(self._is_runnable, late)):
            raise LocalError(
                "the state of a shard has locks that do not fit what holds them or waits for them"
            )
        return locks

    def _is_runnable(self, operation: bytes) -> bool:
        """Whether a transaction can be run that is not general."""
        named = self._keys_of(operation).all
        return bool(named) and operation[: 1 + operation[0]] in self._kinds


_REFUSED = bytes((Outcome.REFUSED,))


def _refused(text: str) -> bytes:
    return _REFUSED + text.encode(errors="replace")

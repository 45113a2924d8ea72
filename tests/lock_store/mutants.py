"""Lock-Store with one defect each, and what shows it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ordercast.components.execution import Call, unpack_call
from ordercast.core import Context, MessageId, ShardMachine, Stamp
from ordercast.core.general import DONE, Conclude
from ordercast.core.shard import Keys
from ordercast.transactions.lock_store.commands import Command, State
from ordercast.transactions.lock_store.ledger import CallLocks, Finding, Ledger

Defect = Callable[[], Any]
_unlock = ShardMachine.unlock
_lock_anew, _lock, _conclude = Ledger._lock_anew, ShardMachine.lock, ShardMachine._conclude
_lock_in_ledger = Ledger._lock


def unlock(self: ShardMachine, owner: MessageId, context: Context) -> None:
    """Give up locks, if there are any."""
    if owner in self._locks.owners:
        _unlock(self, owner, context)


def released_early() -> Any:
    """A shard gives up its locks as soon as it has told that it has them."""

    def lock_anew(self: Ledger, command: Command, call: Call) -> Finding | None:
        found = _lock_anew(self, command, call)
        if found is not None and found.state is State.LOCKED:
            self._executor.unlock(command.first)
            self.changes.append(CallLocks(call, True))
        return found

    return patch.object(Ledger, "_lock_anew", lock_anew)


def read_unlocked() -> Any:
    """A call that only reads does not wait for its locks."""

    def lock(self: ShardMachine, owner: MessageId, operations: Sequence[bytes]) -> bool:
        writes = any(self._keys_of(operation).writes for operation in operations)
        return _lock(self, owner, operations) or not writes

    return patch.object(ShardMachine, "lock", lock)


def concluded_twice() -> Any:
    """What a client concludes is written although the shards had ended the transaction."""

    def conclude(self: ShardMachine, end: Conclude, context: Context) -> bytes:
        if end.transaction not in self._pending and end.commits:
            keys = Keys.of(tuple(end.values), ()).within(self._shard, self._shards)
            self._write({key: end.values[key] for key in keys.writes})
            return DONE
        return _conclude(self, end, context)

    return patch.object(ShardMachine, "_conclude", conclude)


def locked_again() -> Any:
    """A LOCK that comes again is taken like the first one, whatever has become of its call."""

    def lock(self: Ledger, command: Command, place: Stamp) -> Finding | None:
        call = unpack_call(command.call)
        return _lock_in_ledger(self, command, place) if call.read else self._lock_anew(command, call)

    return patch.object(Ledger, "_lock", lock)


DEFECTS: dict[str, Defect] = {
    one.__name__: one for one in (released_early, read_unlocked, concluded_twice, locked_again)
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Lock-Store has this defect for a while; without a name, none."""
    if not name:
        yield
        return
    with DEFECTS[name](), patch.object(ShardMachine, "unlock", unlock):
        yield

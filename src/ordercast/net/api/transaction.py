"""General transactions of a program: lock and read some keys, then write, or abort.

Its two halves are operations that go to the shards of all its keys (`core/general.py`). If the program dies
in between, the shards end the transaction.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import msgspec

from ordercast.core import LocalError, OrdercastError, Refused, ServiceFailed
from ordercast.core.general import check_done, pack_abort, pack_commit, pack_prepare, unpack_values
from ordercast.core.shard import Keys
from ordercast.net.api.open_calls import OpenCalls, Unknown

_decode = msgspec.msgpack.Decoder().decode


class Abort(OrdercastError):
    """Raised by a program in the block of a general transaction, to abort it and go on after the block."""


class Transaction:
    """A general transaction that has locked its keys. Use it as a map of them."""

    def __init__(self, keys: Keys, values: dict[str, bytes]) -> None:
        self._keys = keys
        self._values: dict[str, Any] = {key: _decode(value) for key, value in values.items()}
        self._open = True
        self.written: dict[str, Any] = {}
        """What it has written so far; None for a key that is removed."""

    def __contains__(self, key: str) -> bool:
        """Whether a key has a value."""
        self._named(key)
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        """The value of a key; KeyError if it has none."""
        self._named(key)
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        self._named(key)
        return self._values.get(key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        """Set the value of a key, when the transaction commits. What was read is a copy: assign it."""
        self._may_write(key)
        if value is None:
            raise LocalError(f"None cannot be the value of {key!r}; remove the key with del")
        self._values[key] = self.written[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key, when the transaction commits."""
        self._may_write(key)
        del self._values[key]
        self.written[key] = None

    def _named(self, key: str) -> None:
        if not self._open:
            raise LocalError("the transaction has ended")
        if key not in self._keys.writes and key not in self._keys.reads:
            raise LocalError(f"the transaction has not locked the key {key!r}")

    def _may_write(self, key: str) -> None:
        self._named(key)
        if key not in self._keys.writes:
            raise LocalError(
                f"the transaction has locked the key {key!r} for reading only; name it in writes"
            )

    def end(self) -> None:
        """Do nothing more."""
        self._open = False


class Transacting:
    """What `Client.transaction` returns; entering it locks the keys, and gives the transaction."""

    def __init__(self, calls: OpenCalls, writes: Sequence[str], reads: Sequence[str]) -> None:
        self._calls = calls
        self._prepare = pack_prepare(writes, reads)
        self._groups = calls.shards_of(self._prepare)
        self._keys = Keys.of(writes, reads)
        self._message = 0
        self._transaction: Transaction | None = None

    async def __aenter__(self) -> Transaction:
        """Lock and read all keys. If a shard refuses, what the others locked is given up."""
        if self._transaction is not None:
            raise LocalError("a general transaction can be entered once")
        self._message, result = await self._calls.prepare(self._prepare)
        try:
            self._transaction = Transaction(self._keys, unpack_values(result))
        except (Refused, ServiceFailed):
            await self._abort()
            raise
        return self._transaction

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Commit, or abort if there was an exception. `Refused` if the shards had ended it before."""
        transaction = self._transaction
        assert transaction is not None
        transaction.end()
        if error is not None:
            await self._abort()
            return isinstance(error, Abort)
        try:
            commit = pack_commit(self._message, self._groups, transaction.written)
        except LocalError:
            await self._abort()
            raise
        check_done(await self._calls.conclude(commit))
        return False

    async def _abort(self) -> None:
        """Give up all locks. If nobody answers, the shards do that by themselves."""
        with suppress(Unknown, LocalError):
            await self._calls.conclude(pack_abort(self._message, self._groups))

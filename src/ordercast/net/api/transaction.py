"""General transactions of a program: lock and read some keys, then write, or abort.

Its two halves are operations that go to the shards of all its keys (`core/general.py`). If the program dies
in between, the shards end the transaction.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from ordercast.core import LocalError, OrdercastError, Refused, ServiceFailed
from ordercast.core.general import check_done, pack_abort, pack_commit, pack_prepare, unpack_values
from ordercast.core.open_transaction import Transaction
from ordercast.core.shard import Keys
from ordercast.net.api.loop_thread import LoopThread
from ordercast.net.api.open_calls import OpenCalls, Unknown


class Abort(OrdercastError):
    """Raised by a program in the block of a general transaction, to abort it and go on after the block."""


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


class SyncTransacting:
    """The same for programs without asyncio: its two halves run in the thread of the client."""

    def __init__(self, thread: LoopThread, transacting: Transacting) -> None:
        self._thread = thread
        self._transacting = transacting

    def __enter__(self) -> Transaction:
        """Lock and read all keys."""
        return self._thread.do(self._transacting.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Commit, or abort if there was an exception."""
        return self._thread.do(self._transacting.__aexit__(kind, error, traceback))

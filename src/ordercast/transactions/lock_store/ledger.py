"""What a shard knows of the calls under way: the part of the state machine above its executor.

The rules. A call is *locked* in a shard by one attempt of its client, all keys at once or not at all. It is
committed by the client when all shards have locked the same attempt. A shard that waits too long *freezes*
the attempt in every shard: from then on the client can neither commit nor lock it. When all have frozen it,
its outcome is fixed: committed, if one shard had committed it before, and otherwise aborted. A timeout alone
ends nothing: a client whose commit is under way to one shard may have committed in another.

A general transaction is two calls. Between them, its locks belong to nobody's call. If they are held for too
long, the shards *halt* it: the call that concludes it cannot be locked from then on. When no shard has such a
call under way any more, it is ended in all of them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ordercast.components.execution import Call, Execution, Executor, read_state, unpack_call
from ordercast.components.execution.client_table import Executed
from ordercast.components.logged_shards import generals_of
from ordercast.core import Groups, MessageId, RemoteError, Stamp, message_sender
from ordercast.transactions.lock_store.commands import Command, State, Verb

ABORTED_MAX = 4096
"""How many aborted calls a shard remembers. One that is forgotten could lock again, and would be ended."""


class Record(msgspec.Struct, array_like=True):
    """A call that is under way, or is not known to have ended in all of its shards."""

    attempt: int
    state: State
    """Locked, frozen or committed."""
    groups: Groups
    call: bytes = b""
    """The call, while it holds locks here."""
    about: list[MessageId] = []
    """The general transactions that its operations prepare or conclude."""


class CallLocks(NamedTuple):
    """A call got its locks, or gave them up."""

    call: Call
    committed: bool | None
    """None: it got them."""


class Finding(NamedTuple):
    """What a command has found or done."""

    state: State
    attempt: int
    executed: Call | None = None
    """The call that it has executed."""
    answer: Execution | None = None
    """The results of reads."""


class Ledger:
    """The records of one shard."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.records: dict[MessageId, Record] = {}
        self._aborted: dict[MessageId, int] = {}
        """By call the last attempt that has no effect, for calls without a record."""
        self.changes: list[CallLocks] = []
        """What became of locks of calls, since its owner has last taken that away."""
        self.halted: dict[MessageId, None] = {}
        """General transactions that are not to be concluded by their clients."""

    def run(self, command: Command, place: Stamp) -> Finding | None:
        """Run a command; None if there is nothing to say."""
        match command.verb:
            case Verb.LOCK:
                return self._lock(command, place)
            case Verb.COMMIT:
                return self._commit(command, place)
            case Verb.ABORT:
                return self._abort(command)
            case Verb.FREEZE:
                return self._freeze(command)
            case Verb.APPLY:
                return self._apply(command, place)
            case Verb.CANCEL:
                return self._cancel(command)
            case Verb.FORGET:
                self._forget((command.first,))
                return None
            case Verb.HALT:
                return self._halt(command)
            case Verb.END:
                return self._end(command, place)

    def known(self, first: MessageId) -> Executed | None:
        """The results of a call, if they are kept."""
        return self._executor.find(first, message_sender(first))

    # Commands of clients

    def _lock(self, command: Command, place: Stamp) -> Finding | None:
        first, attempt = command.first, command.attempt
        call = unpack_call(command.call, message_sender(first))
        if call.first != first:
            raise RemoteError(f"the call {first} has another name")
        if call.read:
            answer = self._executor.execute(call, place)
            return Finding(State.COMMITTED, attempt, answer=answer)
        self._forget(one for one in command.done if message_sender(one) == call.client)
        if self._committed(first):
            return Finding(State.COMMITTED, attempt)
        record = self.records.get(first)
        if record is not None:
            if record.state is State.LOCKED:
                record.attempt = max(record.attempt, attempt)
            return Finding(record.state, record.attempt)
        if self._aborted.get(first, -1) >= attempt:
            return Finding(State.ABORTED, self._aborted[first])
        return self._lock_anew(command, call)

    def _lock_anew(self, command: Command, call: Call) -> Finding | None:
        first, about = command.first, generals_of(call)
        if first < self._executor.floor(call.client):
            return None
        if not self.halted.keys().isdisjoint(about) or not self._executor.lock(call):
            return Finding(State.BUSY, command.attempt)
        self._aborted.pop(first, None)
        self.changes.append(CallLocks(call, None))
        self.records[first] = Record(command.attempt, State.LOCKED, command.groups, command.call, about)
        return Finding(State.LOCKED, command.attempt)

    def _commit(self, command: Command, place: Stamp) -> Finding | None:
        record = self.records.get(command.first)
        if self._committed(command.first):
            return Finding(State.COMMITTED, command.attempt)
        if record is None:
            return Finding(State.ABORTED, max(command.attempt, self._aborted.get(command.first, 0)))
        if record.state is State.LOCKED and record.attempt == command.attempt:
            return self._execute(command.first, record, place)
        return None if record.state is State.LOCKED else Finding(record.state, record.attempt)

    def _abort(self, command: Command) -> Finding | None:
        """The client will never commit this attempt."""
        record = self.records.get(command.first)
        if self._committed(command.first) or (record is not None and record.attempt > command.attempt):
            return None
        self._note_aborted(command, record)
        return Finding(State.ABORTED, command.attempt)

    # Commands of shards

    def _freeze(self, command: Command) -> Finding:
        first, attempt = command.first, command.attempt
        record = self.records.get(first)
        if self._committed(first):
            return Finding(State.COMMITTED, attempt)
        if self._aborted.get(first, -1) >= attempt or (record is not None and record.attempt > attempt):
            return Finding(State.ABORTED, attempt)
        if record is None:
            record = self.records[first] = Record(attempt, State.FROZEN, command.groups)
            self._aborted.pop(first, None)
        elif record.attempt < attempt:
            self._unlock(first, record)
        record.attempt, record.state = attempt, State.FROZEN
        return Finding(State.FROZEN if record.call else State.ABSENT, attempt)

    def _apply(self, command: Command, place: Stamp) -> Finding | None:
        record = self.records.get(command.first)
        if record is None or record.state is State.COMMITTED:
            return Finding(State.COMMITTED, command.attempt)
        if record.state is not State.FROZEN or record.attempt != command.attempt or not record.call:
            return None
        return self._execute(command.first, record, place)

    def _cancel(self, command: Command) -> Finding | None:
        record = self.records.get(command.first)
        if record is None or record.state is not State.FROZEN or record.attempt != command.attempt:
            return None
        self._note_aborted(command, record)
        return Finding(State.ABORTED, command.attempt)

    def _forget(self, calls: Iterable[MessageId]) -> None:
        """All shards have committed these; one that holds nothing had forgotten it before."""
        for first in calls:
            record = self.records.get(first)
            if record is not None and not record.call:
                del self.records[first]

    # General transactions

    def _halt(self, command: Command) -> Finding:
        if any(command.first in one.about for one in self._under_way()):
            return Finding(State.UNSETTLED, 0)
        shard = self._executor.shard
        if shard is None or command.first not in shard.pending:
            return Finding(State.ABORTED, 0)
        self.halted[command.first] = None
        return Finding(State.FROZEN, 0)

    def _end(self, command: Command, place: Stamp) -> Finding:
        self.halted.pop(command.first, None)
        self._executor.end(command.first, place)
        return Finding(State.ABORTED, 0)

    def _under_way(self) -> Iterable[Record]:
        return (one for one in self.records.values() if one.state in (State.LOCKED, State.FROZEN))

    # What they do

    def _committed(self, first: MessageId) -> bool:
        record = self.records.get(first)
        if record is not None:
            return record.state is State.COMMITTED
        return self._executor.knows(first, message_sender(first))

    def _execute(self, first: MessageId, record: Record, place: Stamp) -> Finding:
        """Execute a call that is locked. The shard has promised that, whatever its client waits for."""
        call = unpack_call(record.call)
        self._executor.unlock(first)
        self.changes.append(CallLocks(call, True))
        done = self._executor.execute(call, place, promised=True)
        executed = call if done is not None and done.fresh else None
        if len(record.groups) == 1:
            del self.records[first]
        else:
            record.state, record.call, record.about = State.COMMITTED, b"", []
        return Finding(State.COMMITTED, record.attempt, executed)

    def _unlock(self, first: MessageId, record: Record) -> None:
        if record.call:
            self._executor.unlock(first)
            self.changes.append(CallLocks(unpack_call(record.call), False))
            record.call, record.about = b"", []

    def _note_aborted(self, command: Command, record: Record | None) -> None:
        """What is aborted becomes the last of them, so that the oldest are forgotten first."""
        first = command.first
        if record is not None:
            self._unlock(first, record)
            del self.records[first]
        attempt = max(command.attempt, self._aborted.pop(first, 0))
        self._aborted[first] = attempt
        if len(self._aborted) > ABORTED_MAX:
            del self._aborted[next(iter(self._aborted))]

    # State

    def snapshot(self) -> bytes:
        """The records, and the state of the executor."""
        return _encoder.encode((self.records, self._aborted, list(self.halted), self._executor.snapshot()))

    def restore(self, state: bytes) -> None:
        """Take over such a state."""
        records, aborted, halted, below = read_state(_decoder, state)
        self._executor.restore(below)
        self.records, self._aborted, self.halted = records, aborted, dict.fromkeys(halted)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    tuple[dict[MessageId, Record], dict[MessageId, int], list[MessageId], bytes]
)

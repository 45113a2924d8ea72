"""What a shard has proposed, and when it runs it: the part of the state machine above its executor.

The rules. Each transaction gets a *timestamp*, the highest of those that its shards propose, and each shard
runs transactions in the order of timestamps. A shard proposes only timestamps that are above all that it has
proposed or learned, and runs nothing while something with a lower one is *pending*: its own proposal is a
lower bound, for the votes of other shards can only raise it. Timestamps of shard s of n leave the remainder s
when they are divided by n, so no two transactions have the same one.

In *timestamp mode* nobody looks at keys, and all vote to commit. A shard is in *locking mode* while a general
transaction is pending or open there. Then a transaction that needs a key of it votes CONFLICT; and so does a
general one that needs a key of anything that is pending, because that may come to run behind it. What is in
conflict in one shard runs in none, and its client tries again: so what runs finds its locks free. Who has
been in conflict too often votes to commit in any case, and waits for locks when it is its turn. All shards
give locks in the order of timestamps, so nobody waits in a circle.

A transaction of several shards stays on record until all of them have settled it, so that each can tell the
others what became of it, whoever leads. An attempt in conflict is remembered until its client waits for it no
more.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

import msgspec

from ordercast.components.execution import Call, Execution, Executor, read_state, unpack_call
from ordercast.components.logged_shards import halves_of
from ordercast.core import GroupId, Groups, Keys, MessageId, Notice, RemoteError, Stamp
from ordercast.core import message_sender as client_of
from ordercast.core.general import Prepare
from ordercast.transactions.granola.entries import Entry, Forget, Propose, Settle, Subject, Verdict

REFUSED_MAX = 1 << 16
"""How many attempts in conflict a shard remembers. One that is forgotten could be proposed again."""


class Stage(IntEnum):
    """How far a transaction is in a shard."""

    PENDING = 0
    """Votes of other shards are missing."""
    SETTLED = 1
    """Its timestamp is final, and it waits for its turn."""
    RAN = 2


class Record(msgspec.Struct, array_like=True):
    """A transaction that this shard votes to commit."""

    attempt: int
    groups: Groups
    timestamp: int
    """What this shard proposed; later the final one."""
    call: bytes
    """The call, until it has run."""
    prepares: bool
    """Whether it prepares a general transaction, so that its keys are locked from now on."""
    stage: Stage = Stage.PENDING


class Standing(NamedTuple):
    """What a shard says of an attempt to others, for good."""

    verdict: Verdict
    timestamp: int
    settled: bool


class Ran(NamedTuple):
    """What a shard has run in its turn."""

    groups: Groups
    stamp: Stamp
    call: Call | None
    """None if the shards ended a general transaction."""
    done: Execution | None
    notices: list[Notice]
    """What became of locks."""


class Schedule:
    """The transactions of one shard."""

    def __init__(
        self,
        executor: Executor,
        group: GroupId,
        groups: int,
        conflicts_max: int,
        on_ran: Callable[[Ran], None],
    ) -> None:
        """`groups`: how many shards there are. An attempt with the number `conflicts_max` waits for locks.
        `on_ran` is told of what has run, while the state of the shard is that of its place."""
        self._executor = executor
        self._group = group
        self._groups = groups
        self._conflicts_max = conflicts_max
        self._on_ran = on_ran
        self.records: dict[Subject, Record] = {}
        self._refused: dict[Subject, int] = {}
        """The last attempt in conflict of calls without a record."""
        self.high = 0
        """The highest timestamp that was proposed here or became final."""
        self.last = 0
        """The timestamp of what ran last."""
        self._queue: list[tuple[int, Subject]] = []
        """What has not run, the lowest timestamp first; and what is out of date."""
        self._keys: dict[Subject, Keys] = {}
        """The keys of what has not run, as far as somebody asked for them."""
        self._preparing: set[Subject] = set()
        """What prepares general transactions, and has not run."""

    def run(self, entry: Entry) -> None:
        """Do what an entry of the log says."""
        match entry:
            case Propose():
                self._propose(entry)
            case Settle():
                self._settle(entry)
            case Forget():
                self._forget(entry.subject)
        self._advance()

    # Questions

    def standing(self, subject: Subject, attempt: int) -> Standing | None:
        """What this shard has to say of an attempt; None if it has not voted on it yet."""
        record = self.records.get(subject)
        if record is not None and record.attempt == attempt:
            return Standing(Verdict.COMMIT, record.timestamp, record.stage is not Stage.PENDING)
        if record is not None and record.attempt > attempt:
            return Standing(Verdict.CONFLICT, 0, True)
        if self._refused.get(subject, -1) >= attempt:
            return Standing(Verdict.CONFLICT, 0, True)
        if record is not None or subject.ends:
            return None
        known = self._executor.find(subject.first, client_of(subject.first))
        if known is not None:
            return Standing(Verdict.COMMIT, known.stamp.clock, True)
        return Standing(Verdict.ABORT, 0, True) if self._is_past(subject.first) else None

    def waits_for(self) -> Subject | None:
        """The pending transaction that holds up all those above it."""
        return self._queue[0][1] if self._queue else None

    @property
    def is_locking(self) -> bool:
        """Whether a general transaction is pending or open."""
        shard = self._executor.shard
        return bool(self._preparing) or (shard is not None and shard.is_locking)

    # Entries

    def _propose(self, entry: Propose) -> None:
        subject, groups = entry.subject, entry.groups
        for first in entry.done:
            if client_of(first) == client_of(subject.first):
                self._forget(Subject(first))
        if not self._may_vote(subject, entry.attempt):
            return
        call = None if subject.ends else unpack_call(entry.call, client_of(subject.first))
        if call is not None and call.first != subject.first:
            raise RemoteError(f"the call {call.first} is proposed under another name")
        prepares = call is not None and _prepares(call)
        self._drop(subject)
        waits = entry.attempt >= self._conflicts_max
        if call is not None and not waits and not self._admits(call, prepares):
            self._refuse(subject, entry.attempt)
            return
        self._refused.pop(subject, None)
        earliest = max(entry.time, self.high + 1)
        timestamp = earliest + (self._group - earliest) % self._groups
        self.high = timestamp
        stage = Stage.SETTLED if len(groups) == 1 else Stage.PENDING
        self.records[subject] = Record(entry.attempt, groups, timestamp, entry.call, prepares, stage)
        heappush(self._queue, (timestamp, subject))
        if prepares:
            self._preparing.add(subject)

    def _may_vote(self, subject: Subject, attempt: int) -> bool:
        """Whether this shard has nothing to say of an attempt yet, and not of an earlier one that counts."""
        record = self.records.get(subject)
        if record is not None and record.stage is not Stage.PENDING:
            return False
        known = not subject.ends and self._executor.knows(subject.first, client_of(subject.first))
        return not known and self.standing(subject, attempt) is None

    def _settle(self, entry: Settle) -> None:
        subject = entry.subject
        record = self.records.get(subject)
        if record is None or record.attempt != entry.attempt or record.stage is not Stage.PENDING:
            return
        if entry.verdict is not Verdict.COMMIT:
            self._drop(subject)
            self._refuse(subject, entry.attempt)
            return
        record.stage = Stage.SETTLED
        if entry.timestamp > record.timestamp:
            record.timestamp = entry.timestamp
            heappush(self._queue, (entry.timestamp, subject))
        self.high = max(self.high, entry.timestamp)

    def _forget(self, subject: Subject) -> None:
        record = self.records.get(subject)
        if record is not None and record.stage is Stage.RAN:
            del self.records[subject]

    # Calls that are not taken

    def _is_past(self, first: MessageId) -> bool:
        """Whether the client of a call waits for it no more: it is not taken from now on."""
        return first < self._executor.floor(client_of(first))

    def _refuse(self, subject: Subject, attempt: int) -> None:
        """Remember that an attempt has no effect; the oldest are forgotten first."""
        self._refused.pop(subject, None)
        self._refused[subject] = attempt
        if len(self._refused) > REFUSED_MAX:
            past = [one for one in self._refused if self._is_past(one.first)]
            for one in past or islice(list(self._refused), 1):
                del self._refused[one]

    def _drop(self, subject: Subject) -> None:
        """An attempt has no effect: a later one has come, or another shard had a conflict."""
        self.records.pop(subject, None)
        self._leave(subject)

    def _leave(self, subject: Subject) -> None:
        """Something is not to be run any more: nothing is in conflict with it."""
        self._keys.pop(subject, None)
        self._preparing.discard(subject)

    # Locking mode

    def _admits(self, call: Call, prepares: bool) -> bool:
        """Whether a call can run in its turn, wherever that is: no general transaction has its keys, and if
        it prepares one itself, nothing that has not run needs them."""
        if not prepares and not self.is_locking:
            return True
        own = self._executor.keys(call)
        others = self._not_run() if prepares else self._preparing
        if any(own.excludes(self._keys_of(subject)) for subject in others):
            return False
        return self._executor.is_free(call)

    def _not_run(self) -> Iterable[Subject]:
        for subject, record in self.records.items():
            if record.stage is not Stage.RAN and not subject.ends:
                yield subject

    def _keys_of(self, subject: Subject) -> Keys:
        keys = self._keys.get(subject)
        if keys is None:
            keys = self._keys[subject] = self._executor.keys(unpack_call(self.records[subject].call))
        return keys

    # Turns

    def _advance(self) -> None:
        """Run what is settled, up to the first that is pending."""
        while self._queue:
            timestamp, subject = self._queue[0]
            record = self.records.get(subject)
            if record is None or record.timestamp != timestamp or record.stage is Stage.RAN:
                heappop(self._queue)
            elif record.stage is Stage.PENDING:
                return
            else:
                heappop(self._queue)
                self._run(subject, record)

    def _run(self, subject: Subject, record: Record) -> None:
        executor, first = self._executor, subject.first
        stamp = Stamp(record.timestamp, record.timestamp % self._groups)
        call, done = None, None
        if subject.ends:
            executor.end(first, stamp)
        else:
            call = unpack_call(record.call)
            done = executor.execute(call, stamp, promised=True)
        self.last = record.timestamp
        self._leave(subject)
        record.stage, record.call = Stage.RAN, b""
        if len(record.groups) == 1:
            del self.records[subject]
        notices = executor.take_lock_notices(self._group, stamp)
        self._on_ran(Ran(record.groups, stamp, call, done, notices))

    # State

    def snapshot(self) -> bytes:
        """The records, and the state of the executor."""
        return _encoder.encode(
            (
                list(self.records.items()),
                list(self._refused.items()),
                self.high,
                self.last,
                self._executor.snapshot(),
            )
        )

    def restore(self, state: bytes) -> None:
        """Take over such a state."""
        records, refused, high, last, below = read_state(_decoder, state)
        self._executor.restore(below)
        self.records, self._refused, self.high, self.last = dict(records), dict(refused), high, last
        waiting = [(subject, record) for subject, record in records if record.stage is not Stage.RAN]
        self._queue = [(record.timestamp, subject) for subject, record in waiting]
        heapify(self._queue)
        self._keys = {}
        self._preparing = {subject for subject, record in waiting if record.prepares}


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    tuple[list[tuple[Subject, Record]], list[tuple[Subject, int]], int, int, bytes]
)


def _prepares(call: Call) -> bool:
    """Whether a call prepares general transactions."""
    return any(isinstance(half, Prepare) for _, half in halves_of(call))

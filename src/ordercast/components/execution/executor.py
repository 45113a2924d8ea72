"""Executes the calls of clients at a replica, each once, in the order that the protocol gives.

The protocol says at which place a call is; the executor runs its operations on the service, unless it has run
them before, and keeps the results for clients that ask again. Its snapshot has the service, the client table
and the place, so a replica that restores it goes on exactly like the one that took it. To roll back, a
protocol restores an earlier snapshot and executes the calls after it again.
"""

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from ordercast.components.execution.asks import Ask, Asks
from ordercast.components.execution.blocked import Blocked, lock_notices, packed_results
from ordercast.components.execution.call import Call, pack_call
from ordercast.components.execution.client_table import ClientTable, Executed
from ordercast.components.execution.packed import pack, unpack_asking, unpack_shard, unpack_snapshot
from ordercast.components.execution.results import pack_results
from ordercast.core import (
    HELD,
    Asking,
    CheckpointPace,
    Context,
    Env,
    GroupId,
    Groups,
    Keys,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Outcome,
    RemoteError,
    ServiceSpec,
    ShardMachine,
    Stamp,
    StateMachine,
)
from ordercast.core.bundle import Bundle, pack_bundle, unpack_bundle


class Execution(NamedTuple):
    """What became of a call."""

    first: MessageId
    results: bytes
    """A bundle with the results as payloads."""
    stamp: Stamp
    """Where it was executed first."""
    fresh: bool
    """Whether it was executed now, and changed the state."""
    finished: bool = True
    """Whether it has results; if not, it waits for locks, or for the answers of other
    services."""
    via: tuple[int, ...] = ()
    """Which way the answer to it goes, as was said when it was executed."""


RARE = 64
"""After so many times the calls between two checkpoints there is one, however large the state is."""


class Executor:
    """One replica of a service, with its client table."""

    def __init__(
        self, env: Env, spec: ServiceSpec | None, others: Mapping[GroupId, str] | None = None
    ) -> None:
        """Without a service, calls are only remembered, and their results are empty. `others` has the
        fingerprints of the services of other groups, which a service may ask."""
        self._env = env
        self._spec = spec
        self._machine = spec.make() if spec is not None else None
        self._table = ClientTable()
        self.asks = Asks(others or {}) if spec is not None and spec.asks else None
        """What was asked and has no answer; None if the service asks nobody."""
        self._blocked = Blocked()
        self._released: list[Execution] = []
        self._now_ns: Nanos = 0
        self._pace = CheckpointPace()
        self.place: Stamp | None = None
        """The place of the last call that was executed."""
        self.executed = 0
        """How many calls were executed; the same at all replicas at the same place."""

    def execute(
        self,
        call: Call,
        stamp: Stamp,
        via: tuple[int, ...] = (),
        *,
        promised: bool = False,
        groups: Groups = (),
    ) -> Execution | None:
        """Run a call at its place; None if its client does not wait for it, so that it is never run, or if it
        runs already and waits for locks or other services. `via` is the way of its answer, if it does.
        `promised`: it is run in any case, because other shards run it. `groups` are those that run it, if
        these are several and all see the same calls to them in the same order."""
        if call.read:
            return self._read_in_place(call, stamp)
        client = self._table.admit(call, groups)
        if client is None and not promised:
            return None
        known = None if client is None else client.results.get(call.first)
        if known is not None:
            return Execution(call.first, known.results, known.stamp, fresh=False)
        if self._runs_already(call.first, via):
            return None
        try:
            bundle = unpack_bundle(call.bundle)
        except RemoteError:  # all replicas find it alike, and no correct client waits for an answer
            return None
        self.place = stamp
        self.executed += 1
        self._pace.count(len(call.bundle))
        begin = self._run if self.asks is None else self._begin
        results = begin(bundle, stamp, via)
        if results is None:
            if groups:
                self._blocked.calls[call.first].groups = groups
            self._settle_released()
            return Execution(call.first, b"", stamp, fresh=True, finished=False)
        if client is not None:
            self._table.note(client, call.first, Executed(stamp, results))
        self._settle_released()
        return Execution(call.first, results, stamp, fresh=True)

    def _runs_already(self, first: MessageId, via: tuple[int, ...]) -> bool:
        """Whether a call waits for locks or other services; its answer goes the way on which it came last."""
        calls = self._blocked.calls if self.asks is None else self.asks.calls
        unfinished = calls.get(first)
        if unfinished is not None:
            unfinished.via = via
        return unfinished is not None

    def _read_in_place(self, call: Call, stamp: Stamp) -> Execution | None:
        try:
            return Execution(call.first, self.read(call.bundle), self.place or stamp, fresh=False)
        except RemoteError:
            return None

    def find(self, first: MessageId, client: NodeId) -> Executed | None:
        """The results of a call that was executed, if its client may still wait for them."""
        return self._table.find(first, client)

    def knows(self, first: MessageId, client: NodeId) -> bool:
        """Whether a call was executed, or has begun, and its client may still wait for it."""
        calls = self._blocked.calls if self.asks is None else self.asks.calls
        return first in calls or self._table.find(first, client) is not None

    def floor(self, client: NodeId) -> MessageId:
        """Calls of a client with lower names are never executed again."""
        return self._table.floor(client)

    def read(self, bundle: bytes) -> bytes:
        """The results of reads at the present place; `RemoteError` if they are malformed."""
        found = unpack_bundle(bundle)
        if self._machine is None:
            return pack_bundle(found.first, list(found.times), [b""] * len(found.payloads))
        numbered = enumerate(found.payloads, found.first)
        results = [self._machine.read(payload, Context(m, self._now_ns)) for m, payload in numbered]
        self._env.executed(len(results))
        return pack_results(found, results)

    def _run(self, bundle: Bundle, stamp: Stamp, via: tuple[int, ...]) -> bytes | None:
        """Run the operations of a call; None if some of them wait for locks."""
        machine, count = self._machine, len(bundle.payloads)
        if machine is None:
            return pack_bundle(bundle.first, list(bundle.times), [b""] * count)
        results: list[bytes] = []
        now, message, apply = self._now_ns, bundle.first, machine.apply
        for submitted, payload in zip(bundle.times, bundle.payloads, strict=True):
            if submitted > now:
                now = submitted
            results.append(apply(payload, Context(message, now)))
            message += 1
        self._now_ns = now
        self._env.executed(count)
        if HELD in results:
            self._blocked.add(bundle, stamp, results, via)
            return None
        return pack_results(bundle, results)

    # Shards

    def end(self, transaction: MessageId, stamp: Stamp) -> bool:
        """The shards end a general transaction at this place, and no client called it; False if it had ended
        before."""
        shard = self.shard
        if shard is None or not shard.end(transaction, Context(transaction, self._now_ns)):
            return False
        self.place = stamp
        self._settle_released()
        return True

    def lock(self, call: Call) -> bool:
        """Lock the keys here of a call; False if one is taken. What is no shard has no locks."""
        return self.shard is None or self.shard.lock(call.first, unpack_bundle(call.bundle).payloads)

    def is_free(self, call: Call) -> bool:
        """Whether nobody has locked a key here that a call needs."""
        return self.shard is None or self.shard.is_free(unpack_bundle(call.bundle).payloads)

    def keys(self, call: Call) -> Keys:
        """The keys here that a call needs."""
        return Keys((), ()) if self.shard is None else self.shard.keys(unpack_bundle(call.bundle).payloads)

    def unlock(self, first: MessageId) -> None:
        """Give up the locks of a call."""
        if self.shard is not None:
            self.shard.unlock(first, Context(first, self._now_ns))
            self._settle_released()

    @property
    def shard(self) -> ShardMachine | None:
        """The service, if it is a shard."""
        return self._machine if isinstance(self._machine, ShardMachine) else None

    def take_released(self) -> list[Execution]:
        """The calls that were blocked, and have got their results since this was last asked."""
        released, self._released = self._released, []
        return released

    def take_lock_notices(self, group: GroupId, stamp: Stamp) -> list[Notice]:
        """What became of locks since this was last asked, for the trace; the stamp is the last place."""
        return lock_notices(self.shard, group, stamp) if self.shard is not None else []

    def _settle_released(self) -> None:
        """Operations that waited for locks have run; perhaps their calls have all results now."""
        shard = self.shard
        if shard is None or not shard.released:
            return
        released, shard.released = shard.released, []
        for message, result in released:
            found = self._blocked.fill(message, result)
            if found is not None:
                first, call = found
                results = packed_results(first, call)
                self._table.keep(first, Executed(call.place(), results), call.groups)
                self._released.append(Execution(first, results, call.place(), fresh=False, via=call.via))

    # Operations that ask other services

    def _begin(self, bundle: Bundle, stamp: Stamp, via: tuple[int, ...]) -> bytes | None:
        """Run the operations of a call; None if some of them have no results yet."""
        asks = self.asks
        assert self._machine is not None and asks is not None
        results: list[bytes | None] = []
        for turn, (submitted, payload) in enumerate(zip(bundle.times, bundle.payloads, strict=True)):
            self._now_ns = max(self._now_ns, submitted)
            context = Context(bundle.first + turn, self._now_ns)
            found = self._machine.begin(payload, context)
            results.append(self._note(asks, bundle.first, turn, 0, found))
        self._env.executed(len(results))
        done = [result for result in results if result is not None]
        if len(done) == len(results):
            return pack_results(bundle, done)
        asks.begin(bundle, stamp, results, via)
        return None

    def _note(
        self, asks: Asks, call: MessageId, turn: int, answers: int, found: bytes | Asking
    ) -> bytes | None:
        """The result of an operation; None if it asks. One that asks what nobody can answer fails."""
        if isinstance(found, bytes):
            return found
        try:
            asks.add(call, turn, answers, found)
        except LocalError as error:
            return bytes((Outcome.FAILED,)) + str(error).encode()
        return None

    def send(
        self, number: int, message: MessageId, time_ns: Nanos, via: tuple[int, ...] = ()
    ) -> bytes | None:
        """An ask leaves some way, for the first time under this identity or again under its old one: the call
        for the other service. None if it does not wait any more."""
        ask = self.asks.waiting.get(number) if self.asks is not None else None
        if ask is None or self.asks is None:
            return None
        if ask.message is None:
            ask.message, ask.time_ns = message, time_ns
        ask.via = via
        self.asks.unsent.pop(number, None)
        known = ask.message
        bundle = pack_bundle(known, [ask.time_ns], [ask.operation])
        return pack_call(self.asks.floor(known), bundle, read=ask.read)

    def resume(self, message: MessageId, results: bytes) -> tuple[Ask, Execution | None] | None:
        """The answer to an ask has come: the ask, and the execution of the call that waited for it, if it is
        finished now. None if nothing waits for this answer."""
        asks, machine = self.asks, self._machine
        ask = asks.find(message) if asks is not None else None
        if asks is None or ask is None or machine is None:
            return None
        try:
            answer = unpack_bundle(results).payloads
        except RemoteError:  # all replicas find it alike; the operation would wait for ever
            answer = []
        result = answer[0] if len(answer) == 1 else bytes((Outcome.FAILED,)) + b"malformed answer"
        del asks.waiting[ask.number]
        context = Context(ask.call + ask.turn, self._now_ns, ask.answers + 1)
        found = machine.resume(ask.token, result, context)
        self._env.executed(1)
        call = asks.calls[ask.call]
        call.results[ask.turn] = self._note(asks, ask.call, ask.turn, ask.answers + 1, found)
        return ask, self._finish(asks, ask.call)

    def _finish(self, asks: Asks, first: MessageId) -> Execution | None:
        """Keep the results of a call, if it has all of them."""
        call = asks.calls[first]
        if None in call.results:
            return None
        del asks.calls[first]
        results = packed_results(first, call)
        self._table.keep(first, Executed(call.place(), results))
        return Execution(first, results, call.place(), fresh=False, via=call.via)

    def forgotten(self, call: Call) -> bytes | None:
        """The answer to a call whose results are forgotten; None if they are not."""
        if call.first >= self._table.floor(call.client):
            return None
        bundle = unpack_bundle(call.bundle)
        result = bytes((Outcome.FAILED,)) + b"it was executed or not; its result is forgotten"
        return pack_bundle(bundle.first, list(bundle.times), [result] * len(bundle.payloads))

    # States

    def is_checkpoint(self, every: int) -> bool:
        """Whether a checkpoint follows the last call, if there may be one after every so many calls."""
        if self.executed % every:
            return False
        return self._pace.is_worthwhile or self.executed % (RARE * every) == 0

    def checkpoint(self) -> tuple[bytes, tuple[int, int]]:
        """The state at a checkpoint, and its digest."""
        state = self.snapshot()
        self._pace.taken(len(state))
        return state, (len(state), crc32(state))

    def snapshot(self) -> bytes:
        """Everything that a replica needs to go on from here."""
        place = self.place
        fields = (
            self._spec.fingerprint if self._spec is not None else "",
            self._service_state(),
            self._table.pack(),
            None if place is None else (place.clock, place.issuer, place.numbers),
            self.executed,
            self._now_ns,
        )
        shared = self._table.pack_shared()
        return pack((*fields, shared) if shared else fields)

    def _service_state(self) -> bytes:
        """The state of the service, with what a shard blocks, or with the asks of one that asks others."""
        state = self._machine.snapshot() if self._machine is not None else b""
        if self.shard is not None:
            return pack((state, self._blocked.calls))
        return state if self.asks is None else pack((state, self.asks.pack()))

    def restore(self, snapshot: bytes, place: tuple[int, int] | None = None) -> None:
        """Take over a snapshot; `LocalError` if it is of another service, or taken at another place (clock
        and issuer) than is said. Then nothing changes."""
        found = unpack_snapshot(snapshot)
        if place is not None and place != ((0, 0) if found.place is None else found.place[:2]):
            raise LocalError(f"the snapshot of a replica was taken at {found.place}, not at {place}")
        if self._spec is not None:
            self._spec.check(found.fingerprint)
            self._restore_service(self._spec.make(), found.service)
        self._table = ClientTable.unpack(found.table, found.shared)
        self.place = None if found.place is None else Stamp(*found.place)
        self.executed = found.executed
        self._now_ns = found.now_ns
        self._pace.taken(len(snapshot))

    def _restore_service(self, machine: StateMachine, packed: bytes) -> None:
        """Make a fresh machine the service, with what is blocked or asked; all of it, or nothing."""
        if isinstance(machine, ShardMachine):
            state, calls = unpack_shard(packed)
            machine.restore(state)
            self._blocked = Blocked.of(calls, machine.waiting)
            self._released = []
        elif self.asks is not None:
            state, asks = unpack_asking(packed)
            machine.restore(state)
            self.asks.unpack(asks)
        else:
            machine.restore(packed)
        self._machine = machine

    def digest(self) -> tuple[int, int]:
        """The size and a check sum of the state: of the service and the client table."""
        snapshot = self.snapshot()
        return len(snapshot), crc32(snapshot)

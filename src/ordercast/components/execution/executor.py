"""Executes the calls of clients at a replica, each once, in the order that the protocol gives.

The protocol says at which place a call is; the executor runs its operations on the service, unless it has run
them before, and keeps the results for clients that ask again. Its snapshot has the service, the client table
and the place, so a replica that restores it goes on exactly like the one that took it. To roll back, a
protocol restores an earlier snapshot and executes the calls after it again.
"""

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

import msgspec

from ordercast.components.execution.call import Call
from ordercast.components.execution.client_table import ClientTable, Executed, PackedTable
from ordercast.components.execution.results import pack_results
from ordercast.core import (
    HELD,
    CheckpointPace,
    Context,
    Env,
    GroupId,
    Groups,
    LocalError,
    Locked,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Released,
    RemoteError,
    ServiceSpec,
    ShardMachine,
    Stamp,
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
    blocked: bool = False
    """Some of its operations wait for locks: it is not answered now, and has no results."""


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    fingerprint: str
    service: bytes
    table: PackedTable
    place: tuple[int, int, tuple[int, ...]] | None
    executed: int
    now_ns: Nanos


class _Blocked(msgspec.Struct, array_like=True):
    """A call whose results are not complete."""

    first: MessageId
    place: tuple[int, int, tuple[int, ...]]
    times: list[Nanos]
    results: list[bytes]
    """`HELD` for operations that wait."""


class _ShardSnapshot(_Snapshot, frozen=True, array_like=True):
    """Without blocked calls, it is that of any other service."""

    blocked: list[_Blocked] = []


_decoder = msgspec.msgpack.Decoder(_ShardSnapshot)
_encoder = msgspec.msgpack.Encoder()


RARE = 64
"""After so many times the calls between two checkpoints there is one, however large the state is."""


class Executor:
    """One replica of a service, with its client table."""

    def __init__(self, env: Env, spec: ServiceSpec | None) -> None:
        """Without a service, calls are only remembered, and their results are empty."""
        self._env = env
        self._spec = spec
        self._machine = spec.make() if spec is not None else None
        self._table = ClientTable()
        self._now_ns: Nanos = 0
        self._pace = CheckpointPace()
        self._blocked: dict[MessageId, _Blocked] = {}
        """Calls that wait for locks, by their names, in their order."""
        self._released: list[Execution] = []
        self.place: Stamp | None = None
        """The place of the last call that was executed."""
        self.executed = 0
        """How many calls were executed; the same at all replicas at the same place."""

    def execute(self, call: Call, stamp: Stamp) -> Execution | None:
        """Run a call at its place; None if its client does not wait for it, so that it is never run."""
        if call.read:
            return self._read_in_place(call, stamp)
        client = self._table.admit(call)
        if client is None:
            return None
        known = client.results.get(call.first)
        if known is not None:
            return Execution(call.first, known.results, known.stamp, fresh=False, blocked=known.blocked)
        try:
            bundle = unpack_bundle(call.bundle)
        except RemoteError:  # all replicas find it alike, and no correct client waits for an answer
            return None
        results = self._run(bundle, stamp)
        self._table.note(client, call.first, Executed(stamp, results))
        self.place = stamp
        self.executed += 1
        self._pace.count(len(call.bundle))
        self._settle_released()
        return Execution(call.first, results, stamp, fresh=True, blocked=not results)

    def _read_in_place(self, call: Call, stamp: Stamp) -> Execution | None:
        try:
            return Execution(call.first, self.read(call.bundle), self.place or stamp, fresh=False)
        except RemoteError:
            return None

    def find(self, first: MessageId, client: NodeId) -> Executed | None:
        """The results of a call that was executed, if its client may still wait for them."""
        return self._table.find(first, client)

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

    def _run(self, bundle: Bundle, stamp: Stamp) -> bytes:
        """The results of a call; none yet if some of its operations wait."""
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
        waiting = results.count(HELD)
        self._env.executed(count - waiting)
        if waiting:
            place = (stamp.clock, stamp.issuer, stamp.numbers)
            self._blocked[bundle.first] = _Blocked(bundle.first, place, list(bundle.times), results)
            return b""
        return pack_results(bundle, results)

    # Shards

    def end(self, transaction: MessageId, stamp: Stamp) -> bool:
        """The shards end a general transaction, at this place; False if it had ended. No client called it."""
        assert isinstance(self._machine, ShardMachine)
        ended = self._machine.end(transaction, Context(transaction, self._now_ns))
        if ended:
            self.place = stamp
            self._settle_released()
        return ended

    @property
    def pending(self) -> Mapping[MessageId, Groups]:
        """The general transactions that hold locks or wait for them, with their shards, oldest first."""
        return self._machine.pending if isinstance(self._machine, ShardMachine) else {}

    def take_released(self) -> list[Execution]:
        """The calls that were blocked, and have results since this was last asked."""
        released, self._released = self._released, []
        return released

    def take_lock_notices(self, group: GroupId, stamp: Stamp) -> list[Notice]:
        """What became of locks since this was last asked, for the trace. The stamp is the last place."""
        if not isinstance(self._machine, ShardMachine) or not self._machine.changes:
            return []
        changes, self._machine.changes = self._machine.changes, []
        return [
            Locked(group, transaction, stamp)
            if committed is None
            else Released(group, transaction, stamp, committed)
            for transaction, committed in changes
        ]

    def _settle_released(self) -> None:
        """Results that waited for locks may complete their calls."""
        machine = self._machine
        if not isinstance(machine, ShardMachine) or not machine.released:
            return
        released, machine.released = machine.released, []
        self._env.executed(len(released))
        for message, result in released:
            first = next(one for one, call in self._blocked.items() if 0 <= message - one < len(call.results))
            call = self._blocked[first]
            call.results[message - first] = result
            if HELD not in call.results:
                del self._blocked[first]
                self._complete(call)

    def _complete(self, call: _Blocked) -> None:
        results = pack_results(Bundle(call.first, call.times, []), call.results)
        stamp = Stamp(*call.place)
        self._table.complete(call.first, Executed(stamp, results))
        self._released.append(Execution(call.first, results, stamp, fresh=False))

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
        parts = (
            self._spec.fingerprint if self._spec is not None else "",
            self._machine.snapshot() if self._machine is not None else b"",
            self._table.pack(),
            None if place is None else (place.clock, place.issuer, place.numbers),
            self.executed,
            self._now_ns,
        )
        if self._blocked:
            return _encoder.encode(_ShardSnapshot(*parts, list(self._blocked.values())))
        return _encoder.encode(_Snapshot(*parts))

    def restore(self, snapshot: bytes, place: tuple[int, int] | None = None) -> None:
        """Take over a snapshot; `LocalError` if it is of another service, or taken at another place (clock
        and issuer) than is said. Then nothing changes."""
        try:
            found = _decoder.decode(snapshot)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LocalError(f"the snapshot of a replica cannot be read: {error}") from error
        if place is not None and place != ((0, 0) if found.place is None else found.place[:2]):
            raise LocalError(f"the snapshot of a replica was taken at {found.place}, not at {place}")
        if self._spec is not None:
            self._spec.check(found.fingerprint)
            machine = self._spec.make()
            machine.restore(found.service)
            self._machine = machine
        self._table = ClientTable.unpack(found.table)
        self.place = None if found.place is None else Stamp(*found.place)
        self.executed = found.executed
        self._now_ns = found.now_ns
        self._blocked = {call.first: call for call in found.blocked}
        self._released = []
        self._pace.taken(len(snapshot))

    def digest(self) -> tuple[int, int]:
        """The size and a check sum of the state: of the service and the client table."""
        snapshot = self.snapshot()
        return len(snapshot), crc32(snapshot)

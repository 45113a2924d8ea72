"""The ledger of a replica whose messages go to several groups: it keeps those for longer than its log.

Another group that lost such a message learns it from here. So it is kept until all of its groups are certain
beyond it, and goes along when a replica takes over a state.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import msgspec

from ordercast.components.execution import Call, Execution, Executor, read_state
from ordercast.components.network_ordered import LogEntry, LogPlace
from ordercast.components.network_ordered.ledger import Ledger, call_of
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.place import Slot
from ordercast.core import GroupId, MessageId, NodeId, Notice


class Effects(NamedTuple):
    """What an entry did beside giving results."""

    released: list[Execution]
    """Calls that had waited for locks, with their results."""
    notices: list[Notice]


_END = Struct("<3sQ")
_END_MARK = b"end"
NOTHING = b"nothing"
"""The payload of a message that only has a place in the order."""


def end_payload(transaction: MessageId) -> bytes:
    """The payload of a message that ends a general transaction in all of its shards."""
    return _END.pack(_END_MARK, transaction)


def end_of(payload: bytes) -> MessageId | None:
    """The transaction that a payload ends; None if it is something else."""
    if len(payload) != _END.size:
        return None
    mark, transaction = _END.unpack(payload)
    return transaction if mark == _END_MARK else None


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    state: bytes
    kept: list[LogEntry]


_packed = msgspec.msgpack.Decoder(_Packed)


class ShardLedger(Ledger):
    """The executor of a replica, beside its log and the messages that other groups may lack."""

    def __init__(
        self, log: SlotLog, executor: Executor, every: int, group: GroupId, enders: tuple[NodeId, ...]
    ) -> None:
        """`enders` may end transactions of others."""
        self._group = group
        self._enders = enders
        self.effects: dict[Slot, Effects] = {}
        """What entries did beside giving results, until they are certain."""
        self.kept: list[LogEntry] = []
        """Messages to several groups before the base of the log."""
        self._floors: Sequence[int] = ()
        super().__init__(log, executor, every)

    def _run(self, entry: LogEntry) -> tuple[Call | None, Execution | None]:
        """Execute an entry: a call, or the end of a transaction whose client seems to have died."""
        executor, call = self.executor, call_of(entry)
        done = None
        if call is not None:
            done = executor.execute(call, entry.stamp, groups=entry.groups)
        elif entry.client in self._enders:
            ended = end_of(entry.payload)
            if ended is not None:
                executor.end(ended, entry.stamp)
        if executor.shard is not None:
            released, notices = executor.take_released(), executor.take_lock_notices(self._group, entry.stamp)
            if released or notices:
                self.effects[entry.slot] = Effects(released, notices)
        return call, done

    def roll_back(self, stop: int) -> None:
        """Undo what was executed beyond this many entries, with what it would have told."""
        if self.executed > stop:
            self.effects.clear()
        super().roll_back(stop)

    def pack(self, state: bytes) -> bytes:
        """The state, and all messages before it that are kept."""
        recent = [entry for entry in self._log.entries[: self.executed] if entry.groups]
        return msgspec.msgpack.encode(_Packed(state, [*self.kept, *filter(self._is_needed, recent)]))

    def unpack(self, packed: bytes) -> bytes:
        """The state in that."""
        return read_state(_packed, packed).state

    def rebase(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Let the log begin at a checkpoint, and keep messages that others may lack."""
        gone = super().rebase(place, state)
        for entry in gone:
            self.effects.pop(entry.slot, None)
        self.kept += [entry for entry in gone if entry.groups and self._is_needed(entry)]
        return gone

    def restore(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Take over a state, with what was kept there."""
        gone = super().restore(place, state)
        self.effects.clear()
        self.kept = [entry for entry in read_state(_packed, state).kept if self._is_needed(entry)]
        return gone

    def prune(self, floors: Sequence[int]) -> None:
        """Forget messages beyond which all of their groups are certain."""
        self._floors = floors
        self.kept = [entry for entry in self.kept if self._is_needed(entry)]

    def _is_needed(self, entry: LogEntry) -> bool:
        floors = self._floors
        return any(group >= len(floors) or floors[group] < entry.clock for group in entry.groups)

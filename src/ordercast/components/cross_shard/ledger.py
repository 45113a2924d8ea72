"""The ledger of a replica whose messages go to several groups: it keeps those for longer than its log.

Another group that lost such a message learns it from here. So it is kept until all of its groups are certain
beyond it, and goes along when a replica takes over a state.
"""

from collections.abc import Sequence

import msgspec

from ordercast.components.execution import Executor
from ordercast.components.network_ordered import LogEntry, LogPlace
from ordercast.components.network_ordered.ledger import Ledger
from ordercast.components.network_ordered.log import SlotLog
from ordercast.core import LocalError


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    state: bytes
    kept: list[LogEntry]


_packed = msgspec.msgpack.Decoder(_Packed)


class ShardLedger(Ledger):
    """The executor of a replica, beside its log and the messages that other groups may lack."""

    def __init__(self, log: SlotLog, executor: Executor, every: int) -> None:
        self.kept: list[LogEntry] = []
        """Messages to several groups before the base of the log."""
        self._floors: Sequence[int] = ()
        super().__init__(log, executor, every)

    def pack(self, state: bytes) -> bytes:
        """The state, and all messages before it that are kept."""
        recent = [entry for entry in self._log.entries[: self.executed] if entry.groups]
        return msgspec.msgpack.encode(_Packed(state, [*self.kept, *filter(self._is_needed, recent)]))

    def unpack(self, packed: bytes) -> bytes:
        """The state in that."""
        return self._decode(packed).state

    def _decode(self, packed: bytes) -> _Packed:
        try:
            return _packed.decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LocalError(f"the state of a replica cannot be read: {error}") from error

    def rebase(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Let the log begin at a checkpoint, and keep messages that others may lack."""
        gone = super().rebase(place, state)
        self.kept += [entry for entry in gone if entry.groups and self._is_needed(entry)]
        return gone

    def restore(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Take over a state, with what was kept there."""
        gone = super().restore(place, state)
        self.kept = [entry for entry in self._decode(state).kept if self._is_needed(entry)]
        return gone

    def prune(self, floors: Sequence[int]) -> None:
        """Forget messages beyond which all of their groups are certain."""
        self._floors = floors
        self.kept = [entry for entry in self.kept if self._is_needed(entry)]

    def _is_needed(self, entry: LogEntry) -> bool:
        floors = self._floors
        return any(group >= len(floors) or floors[group] < entry.clock for group in entry.groups)

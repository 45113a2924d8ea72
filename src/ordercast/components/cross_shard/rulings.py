"""What the failure coordinator has decided: the state of its log, the same at all of its replicas.

A message is *found* or *gone*, never both: the log puts the decisions one after the other. A mark that is
gone makes all marks of its message gone, as soon as anybody shows which these are. So all groups of a message
decide alike, whichever of them lost it.

A ruling is forgotten when all groups are certain beyond its message: then nobody asks, and nobody can come
with the message any more.
"""

from typing import TypeAlias

import msgspec

from ordercast.components.cross_shard.marks import Lost, Mark
from ordercast.components.network_ordered import LogEntry
from ordercast.components.network_ordered.place import Natural
from ordercast.core import MALFORMED, RemoteError


class Show(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Somebody has this message."""

    entry: LogEntry


class Drop(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Majorities of all groups have promised not to take the message with this mark."""

    loss: Lost


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """All groups are certain up to this clock."""

    clock: Natural


Command: TypeAlias = Show | Drop | Forget
_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Show | Drop | Forget)
encode = msgspec.msgpack.encode


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    found: list[LogEntry]
    gone: list[Lost]
    forgotten: Natural


_kept = msgspec.msgpack.Decoder(_Kept)


def decode(data: bytes) -> Command:
    """A command from the log."""
    try:
        command = _commands.decode(data)
    except MALFORMED as error:
        raise RemoteError(f"there is no such command for the coordinator: {error}") from error
    if isinstance(command, Show):
        entry = command.entry
        if not entry.groups or len(entry.groups) != len(entry.numbers):
            raise RemoteError(f"a command shows a message with numbers {entry.numbers} in {entry.groups}")
    return command


def marks(entry: LogEntry) -> list[Mark]:
    """The marks of an entry with all of its groups."""
    return [
        (entry.sequencer, group, number) for group, number in zip(entry.groups, entry.numbers, strict=True)
    ]


class Rulings:
    """All decisions that anybody may still ask for."""

    def __init__(self) -> None:
        self._found: dict[Mark, LogEntry] = {}
        self._gone: dict[Mark, int] = {}
        """The bounds of messages that are gone."""
        self.forgotten = 0
        """The rulings on messages with lower clocks are forgotten."""

    def __len__(self) -> int:
        return len(self._found) + len(self._gone)

    def find(self, mark: Mark) -> LogEntry | Lost | None:
        """What was decided about a mark, if anything was."""
        if mark in self._gone:
            return Lost(mark, self._gone[mark])
        return self._found.get(mark)

    def gone(self, entry: LogEntry) -> list[Lost]:
        """The marks of a message that are gone."""
        return [Lost(mark, self._gone[mark]) for mark in marks(entry) if mark in self._gone]

    def is_settled(self, entry: LogEntry) -> bool:
        """Whether a message needs no command any more."""
        own = marks(entry)
        return own[0] in self._found or all(mark in self._gone for mark in own)

    def apply(self, command: Command) -> None:
        """Take the next command of the log."""
        match command:
            case Show(entry) if not self.is_settled(entry) and entry.clock > self.forgotten:
                own = marks(entry)
                if any(mark in self._gone for mark in own):
                    self._gone |= dict.fromkeys(own, entry.clock)
                else:
                    self._found |= dict.fromkeys(own, entry)
            case Drop(loss) if self.find(loss.mark) is None and loss.bound > self.forgotten:
                self._gone[loss.mark] = loss.bound
            case Forget(clock) if clock > self.forgotten:
                self.forgotten = clock
                self._found = {mark: entry for mark, entry in self._found.items() if entry.clock > clock}
                self._gone = {mark: bound for mark, bound in self._gone.items() if bound > clock}

    def snapshot(self) -> bytes:
        """The state as bytes."""
        found = sorted({entry.rank: entry for entry in self._found.values()}.items())
        gone = [Lost(mark, bound) for mark, bound in sorted(self._gone.items())]
        return encode(_Kept([entry for _, entry in found], gone, self.forgotten))

    def restore(self, state: bytes) -> None:
        """Take it back."""
        kept = _kept.decode(state)
        self._found = {mark: entry for entry in kept.found for mark in marks(entry)}
        self._gone = {loss.mark: loss.bound for loss in kept.gone}
        self.forgotten = kept.forgotten

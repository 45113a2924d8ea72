"""What a durable replica keeps: its view, its log, its last state, and what it told the ordering.

A replica that is not durable keeps only that it has begun; its next life knows that it has lost its memory.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ordercast.components.network_ordered.place import LogEntry, LogPlace, Rank, Slot
from ordercast.core import Env

BEGUN, VIEW, NOOPS, BASE, SYNCED, ORDERING, ENTRY = (
    "begun", "view", "noops", "base", "synced", "ordering", "entry.",
)  # fmt: skip


class Found(msgspec.Struct):
    """What an earlier life kept."""

    view: int
    normal: int
    base: LogPlace
    state: bytes | None
    entries: list[LogEntry]
    noops: list[Slot]
    synced: Rank
    muted: Rank
    ordering: bytes


_encode = msgspec.msgpack.encode
_entries = msgspec.msgpack.Decoder(LogEntry)
_bases = msgspec.msgpack.Decoder(tuple[LogPlace, bytes])
_ranks = msgspec.msgpack.Decoder(tuple[Rank, Rank])
_slots = msgspec.msgpack.Decoder(list[Slot])
_views = msgspec.msgpack.Decoder(tuple[int, int])


def has_state(saved: Mapping[str, bytes]) -> bool:
    """Whether an earlier life was durable, and has begun or come back."""
    return VIEW in saved and ORDERING in saved


class Store:
    """Saves, if the replica is durable."""

    def __init__(self, env: Env, *, durable: bool) -> None:
        self._env = env
        self.is_durable = durable

    def begin(self) -> None:
        """Note that this replica has begun."""
        self._env.save(BEGUN, b"")

    def clear(self, saved: Mapping[str, bytes]) -> None:
        """Forget what an earlier life has left, but that it was there."""
        for name in saved:
            if name != BEGUN:
                self._env.save(name, None)
        self.begin()

    def save_view(self, view: int, normal: int) -> None:
        """Its view, and the last one in which it worked normally."""
        self._save(VIEW, (view, normal))

    def save_entry(self, entry: LogEntry) -> None:
        """An entry of the log."""
        self._save(_name(entry), entry)

    def drop_entry(self, entry: LogEntry) -> None:
        """An entry is not in the log any more."""
        if self.is_durable:
            self._env.save(_name(entry), None)

    def save_noops(self, noops: Iterable[Slot]) -> None:
        """The slots that were given up."""
        if self.is_durable:
            self._save(NOOPS, sorted(noops))

    def save_base(self, base: LogPlace, state: bytes) -> None:
        """The state at the base of the log."""
        self._save(BASE, (base, state))

    def save_synced(self, synced: Rank, muted: Rank) -> None:
        """Up to where the log is certain and delivered; what was before `muted`, an earlier life had."""
        self._save(SYNCED, (synced, muted))

    def save_ordering(self, state: Callable[[], bytes]) -> None:
        """What the ordering keeps."""
        if self.is_durable:
            self._env.save(ORDERING, state())

    def _save(self, name: str, value: object) -> None:
        if self.is_durable:
            self._env.save(name, _encode(value))

    def restore(self, saved: Mapping[str, bytes]) -> Found:
        """All that an earlier life kept."""
        view, normal = _views.decode(saved[VIEW])
        base, state = _bases.decode(saved[BASE]) if BASE in saved else (LogPlace(), None)
        synced, muted = _ranks.decode(saved[SYNCED]) if SYNCED in saved else ((0, 0), (0, 0))
        entries = [_entries.decode(value) for name, value in saved.items() if name.startswith(ENTRY)]
        entries = [entry for entry in entries if entry.rank > base.rank]
        return Found(
            view, normal, base, state, sorted(entries, key=lambda entry: entry.rank),
            _slots.decode(saved[NOOPS]) if NOOPS in saved else [], synced, muted, saved[ORDERING],
        )  # fmt: skip


def _name(entry: LogEntry) -> str:
    return f"{ENTRY}{entry.sequencer}.{entry.number}"

"""What a replica remembers over a restart: its promise, its accepted slots, the owner's snapshot.

The acceptor of Paxos, without the messages. Each accepted slot is saved under its own key, so that
accepting costs one small write, and truncation removes keys.

Why a learned value may be stored under any ballot: a chosen value is the only one that ballots from
the choosing one on can carry, so recording it again never outvotes it. The one thing that must not
happen is that a truly accepted record goes down to a lower ballot, so a record of the same value is
left as it is.
"""

from collections.abc import Mapping
from struct import Struct

from ordercast.core import Env

NOOP = b""
"""Value of a slot that a new leader had to fill and had nothing for."""

_HEAD = Struct("<Q")
SLOT = "slot."
_ENTRY_BYTES = 24
"""What an entry counts in a chunk besides its value."""


class Journal:
    """Promise, accepted slots and snapshot of one replica."""

    __slots__ = ("_env", "base", "entries", "promised", "stable")

    def __init__(self, env: Env) -> None:
        self._env = env
        self.promised = 0
        self.entries: dict[int, tuple[int, bytes]] = {}
        """Slot to (ballot, value), for all kept slots."""
        self.base = 0
        """Slots below are forgotten: every replica has a snapshot of them."""
        self.stable = 0
        """Slots below are in the snapshot of this replica."""

    def restore(self, saved: Mapping[str, bytes]) -> tuple[bool, bytes | None]:
        """Read an earlier life: whether there was one, and the owner's snapshot if it made one."""
        ballot = saved.get("ballot")
        if ballot is None:
            self._save_ballot()
            return False, None
        (self.promised,) = _HEAD.unpack(ballot)
        slots = sorted(int(key.removeprefix(SLOT)) for key in saved if key.startswith(SLOT))
        for slot in slots:
            record = saved[f"{SLOT}{slot}"]
            self.entries[slot] = (_HEAD.unpack_from(record)[0], record[_HEAD.size :])
        snapshot = saved.get("snapshot")
        if snapshot is not None:
            (self.stable,) = _HEAD.unpack_from(snapshot)
        self.base = min(slots[0], self.stable) if slots else self.stable
        return True, None if snapshot is None else snapshot[_HEAD.size :]

    def promise(self, ballot: int) -> None:
        """Remember not to accept in ballots below this one."""
        if ballot > self.promised:
            self.promised = ballot
            self._save_ballot()

    def accept(self, slot: int, ballot: int, value: bytes) -> None:
        """Remember a value accepted in a ballot; the caller has checked the promise."""
        if self.entries.get(slot) != (ballot, value):
            self.entries[slot] = (ballot, value)
            self._env.save(f"{SLOT}{slot}", _HEAD.pack(ballot) + value)

    def learn(self, slot: int, value: bytes) -> None:
        """Remember a value that is known to be chosen."""
        known = self.entries.get(slot)
        if known is None or known[1] != value:
            self.accept(slot, self.promised, value)

    def checkpoint(self, index: int, state: bytes) -> None:
        """Keep a snapshot of the owner's state after all slots below `index`."""
        self._env.save("snapshot", _HEAD.pack(index) + state)
        self.stable = index

    def truncate(self, floor: int) -> None:
        """Forget the slots below `floor`, as far as the own snapshot goes."""
        floor = min(floor, self.stable)
        for slot in range(self.base, floor):
            if self.entries.pop(slot, None) is not None:
                self._env.save(f"{SLOT}{slot}", None)
        self.base = max(self.base, floor)

    def accepted_from(self, start: int, bytes_max: int) -> tuple[tuple[tuple[int, int, bytes], ...], int]:
        """A chunk of the accepted slots from `start` on, and where the next starts (0: nowhere)."""
        size = 0
        chunk: list[tuple[int, int, bytes]] = []
        for slot in sorted(slot for slot in self.entries if slot >= start):
            ballot, value = self.entries[slot]
            size += len(value) + _ENTRY_BYTES
            if chunk and size > bytes_max:
                return tuple(chunk), slot
            chunk.append((slot, ballot, value))
        return tuple(chunk), 0

    def values_from(self, start: int, end: int, bytes_max: int) -> tuple[bytes, ...]:
        """A chunk of the values of consecutive slots."""
        size = 0
        chunk: list[bytes] = []
        for slot in range(start, end):
            value = self.entries[slot][1]
            size += len(value) + _ENTRY_BYTES
            if chunk and size > bytes_max:
                break
            chunk.append(value)
        return tuple(chunk)

    def _save_ballot(self) -> None:
        self._env.save("ballot", _HEAD.pack(self.promised))

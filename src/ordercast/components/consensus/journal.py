"""What a replica remembers over a restart: its promise, its accepted slots, the owner's snapshot.

The acceptor of Paxos, without the messages. Each accepted slot is saved under its own key, so that
accepting costs one small write, and truncation removes keys.

Why a learned value may be stored under any ballot: a chosen value is the only one that ballots from
the choosing one on can carry, so recording it again never outvotes it. The one thing that must not
happen is that a truly accepted record goes down to a lower ballot, so a record of the same value is
left as it is.

A replica that keeps nothing on a disk saves only a mark, once: a later life that finds it knows that its
memory is lost. The mark also stands while a replica is on its way back (see `recovery`).
"""

from collections.abc import Mapping, Sequence
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

    __slots__ = (
        "_durable",
        "_env",
        "_keeps_state",
        "base",
        "entries",
        "lives",
        "promised",
        "stable",
        "state",
    )

    def __init__(self, env: Env, peers: int, *, durable: bool, keeps_state: bool) -> None:
        self._env = env
        self._durable = durable
        self._keeps_state = keeps_state
        self.promised = 0
        self.lives = [0] * peers
        """The latest life of each replica, as far as known; 0 if it never lost its memory."""
        self.entries: dict[int, tuple[int, bytes]] = {}
        """Slot to (ballot, value), for all kept slots."""
        self.base = 0
        """Slots below are forgotten: they are in snapshots."""
        self.stable = 0
        """Slots below are in the snapshot of this replica."""
        self.state: bytes | None = None
        """That snapshot, if others may ask for it."""

    def restore(self, saved: Mapping[str, bytes]) -> tuple[bool, bytes | None]:
        """Read an earlier life: whether there was one, and the owner's snapshot if it made one."""
        ballot = saved.get("ballot")
        if ballot is None:
            self._save("ballot", _HEAD.pack(self.promised))
            return False, None
        (self.promised,) = _HEAD.unpack(ballot)
        lives = saved.get("lives", b"")
        self.lives[: len(lives) // _HEAD.size] = [life for (life,) in _HEAD.iter_unpack(lives)]
        snapshot = saved.get("snapshot")
        if snapshot is not None:
            (self.stable,) = _HEAD.unpack_from(snapshot)
            self._keep(snapshot[_HEAD.size :])
        # A snapshot that came from another replica stands in for slots of which other values may be on
        # record here. They are removed with it, but perhaps not all of them before a crash.
        installed = _HEAD.unpack(saved["base"])[0] if "base" in saved else 0
        floor = min(installed, self.stable)
        slots = sorted(int(key.removeprefix(SLOT)) for key in saved if key.startswith(SLOT))
        for slot in slots:
            if slot < floor:
                self._save(f"{SLOT}{slot}", None)
                continue
            record = saved[f"{SLOT}{slot}"]
            self.entries[slot] = (_HEAD.unpack_from(record)[0], record[_HEAD.size :])
        self.base = min(min(self.entries), self.stable) if self.entries else self.stable
        return True, None if snapshot is None else snapshot[_HEAD.size :]

    def is_lost(self, saved: Mapping[str, bytes]) -> bool:
        """Whether an earlier life may have voted, and what it remembered is gone."""
        return "lost" in saved or (self._env.forgot and "ballot" not in saved)

    def mark(self, *, lost: bool) -> None:
        """Note that a life which begins now remembers nothing, or that this one is back.

        Who keeps nothing on a disk is never back: the next life will have to recover as well.
        """
        self._env.save("lost", b"1" if lost or not self._durable else None)

    def promise(self, ballot: int) -> None:
        """Remember not to accept in ballots below this one."""
        if ballot > self.promised:
            self.promised = ballot
            self._save("ballot", _HEAD.pack(ballot))

    def return_with(self, ballot: int, entries: Mapping[int, bytes]) -> None:
        """Take over what a leader knew, in place of a lost memory."""
        for slot, value in entries.items():
            self.accept(slot, ballot, value)
        self._save_lives()
        self.promised = ballot
        self._save("ballot", _HEAD.pack(ballot))
        self.mark(lost=False)

    def know_lives(self, lives: Sequence[int]) -> None:
        """Others know of these lives."""
        if any(new > old for new, old in zip(lives, self.lives, strict=False)):
            self.lives = [max(pair) for pair in zip(lives, self.lives, strict=True)]
            self._save_lives()

    def know_life(self, index: int, life: int) -> None:
        """A replica is in this life now, or was later than the ones that are known."""
        if life > self.lives[index]:
            self.lives[index] = life
            self._save_lives()

    def lives_told(self) -> tuple[int, ...]:
        """The known lives, as messages carry them."""
        return tuple(self.lives) if any(self.lives) else ()

    def accept(self, slot: int, ballot: int, value: bytes) -> None:
        """Remember a value accepted in a ballot; the caller has checked the promise."""
        if self.entries.get(slot) != (ballot, value):
            self.entries[slot] = (ballot, value)
            self._save(f"{SLOT}{slot}", _HEAD.pack(ballot) + value)

    def learn(self, slot: int, value: bytes) -> None:
        """Remember a value that is known to be chosen."""
        known = self.entries.get(slot)
        if known is None or known[1] != value:
            self.accept(slot, self.promised, value)

    def is_certain(self, slot: int, ballot: int) -> bool:
        """Whether the record of a slot is what the leader of a ballot proposed in it."""
        known = self.entries.get(slot)
        return known is not None and known[0] == ballot

    def checkpoint(self, index: int, state: bytes) -> None:
        """Keep a snapshot of the owner's state after all slots below `index`."""
        self._save("snapshot", _HEAD.pack(index) + state)
        self.stable = index
        self._keep(state)

    def install(self, index: int, state: bytes) -> None:
        """Keep a snapshot that another replica made, in place of all slots below `index`."""
        self._save("base", _HEAD.pack(index))
        self.checkpoint(index, state)
        for slot in sorted(slot for slot in self.entries if slot < index):
            self._forget(slot)
        self.base = index

    def truncate(self, floor: int) -> None:
        """Forget the slots below `floor`, as far as the own snapshot goes."""
        floor = min(floor, self.stable)
        for slot in range(self.base, floor):
            if slot in self.entries:
                self._forget(slot)
        self.base = max(self.base, floor)

    def accepted_from(
        self, start: int, bytes_max: int, end: int | None = None
    ) -> tuple[tuple[tuple[int, int, bytes], ...], int]:
        """A chunk of the accepted slots from `start` on, and where the next starts (0: nowhere)."""
        size = 0
        chunk: list[tuple[int, int, bytes]] = []
        for slot in sorted(slot for slot in self.entries if slot >= start and (end is None or slot < end)):
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

    def _keep(self, state: bytes) -> None:
        if self._keeps_state:
            self.state = state

    def _forget(self, slot: int) -> None:
        del self.entries[slot]
        self._save(f"{SLOT}{slot}", None)

    def _save(self, name: str, state: bytes | None) -> None:
        if self._durable:
            self._env.save(name, state)

    def _save_lives(self) -> None:
        self._save("lives", b"".join(map(_HEAD.pack, self.lives)))

"""The log of a replica: the calls from its base on, in their order, and the slots that were given up.

All replicas with the same tag have the same order, so a log is known by its end and its NO-OPs: it has every
message up to the end but those.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from operator import attrgetter

from ordercast.components.network_ordered.place import LogEntry, LogPlace, Rank, Slot

_rank = attrgetter("rank")


class SlotLog:
    """Entries in ascending order of their ranks."""

    def __init__(self, keep: int) -> None:
        self.base = LogPlace()
        """The log begins here."""
        self.entries: list[LogEntry] = []
        self.slots: dict[Slot, LogEntry] = {}
        self.noops: set[Slot] = set()
        self.synced = 0
        """So many entries are certain."""
        self._kept: deque[LogEntry] = deque(maxlen=keep)
        self._old: dict[Slot, LogEntry] = {}

    @property
    def end(self) -> LogPlace:
        """The place of the last entry."""
        return self.place_at(len(self.entries))

    @property
    def rank(self) -> Rank:
        """The rank of the last entry."""
        return self.entries[-1].rank if self.entries else self.base.rank

    @property
    def synced_rank(self) -> Rank:
        """The rank of the last certain entry."""
        return self.entries[self.synced - 1].rank if self.synced else self.base.rank

    def place_at(self, index: int) -> LogPlace:
        """The place after so many entries."""
        numbers = dict(self.base.numbers)
        for entry in self.entries[:index]:
            if entry.number > numbers.get(entry.sequencer, 0):
                numbers[entry.sequencer] = entry.number
        rank = self.entries[index - 1].rank if index else self.base.rank
        return LogPlace(*rank, tuple(sorted(numbers.items())))

    def index_of(self, rank: Rank) -> int:
        """How many entries are up to a rank."""
        return bisect_right(self.entries, rank, key=_rank)

    def find(self, slot: Slot) -> LogEntry | None:
        """The entry in a slot, also if it is a little before the base."""
        return self.slots.get(slot) or self._old.get(slot)

    def is_behind(self, slot: Slot) -> bool:
        """Whether a slot is before the base."""
        return slot[1] <= dict(self.base.numbers).get(slot[0], 0)

    def is_certain(self, slot: Slot) -> bool:
        """Whether the entry in a slot is here and certain."""
        entry = self.slots.get(slot)
        return entry is not None and entry.rank <= self.synced_rank

    def give_up(self, slot: Slot) -> None:
        """Note that a slot is given up."""
        if not self.is_behind(slot):
            self.noops.add(slot)

    def append(self, entry: LogEntry) -> None:
        """Add the next entry."""
        assert entry.rank > self.rank, "entries come in order"
        assert entry.slot not in self.noops, "a slot that was given up stays empty"
        self.entries.append(entry)
        self.slots[entry.slot] = entry

    def remove(self, slots: Iterable[Slot]) -> list[LogEntry]:
        """Take entries out; returns them. None of them may be certain."""
        gone = [self.slots.pop(slot) for slot in slots if slot in self.slots]
        if gone:
            names = {entry.slot for entry in gone}
            certain = self.entries[: self.synced]
            assert not any(entry.slot in names for entry in certain), "certain entries stay"
            self.entries = certain + [
                entry for entry in self.entries[self.synced :] if entry.slot not in names
            ]
        return gone

    def cut(self, rank: Rank) -> list[LogEntry]:
        """Take out all entries beyond a rank; returns them."""
        return self.remove([entry.slot for entry in self.entries[self.index_of(rank) :]])

    def replace_tail(self, entries: Iterable[LogEntry], noops: Iterable[Slot]) -> list[LogEntry]:
        """Have these entries behind the certain ones, and these NO-OPs; returns the entries that went.

        NO-OPs among the certain entries stay: the other log may begin behind them, and does not tell them.
        """
        gone = self.remove([entry.slot for entry in self.entries[self.synced :]])
        certain = dict(self.place_at(self.synced).numbers)
        stay = {slot for slot in self.noops if slot[1] <= certain.get(slot[0], 0)}
        self.noops = stay | {slot for slot in noops if not self.is_behind(slot)}
        kept = []
        for entry in sorted(entries, key=lambda entry: entry.rank):
            self.append(entry)
            kept.append(entry.slot)
        names = set(kept)
        return [entry for entry in gone if entry.slot not in names]

    def rebase(self, base: LogPlace) -> list[LogEntry]:
        """Begin at a place; entries up to there are forgotten. Returns them."""
        index = self.index_of(base.rank)
        gone, self.entries = self.entries[:index], self.entries[index:]
        self.synced = max(0, self.synced - index)
        self.base = base
        for entry in gone:
            del self.slots[entry.slot]
            self._keep(entry)
        self.noops = {slot for slot in self.noops if not self.is_behind(slot)}
        return gone

    def _keep(self, entry: LogEntry) -> None:
        if self._kept.maxlen:
            if len(self._kept) == self._kept.maxlen:
                self._old.pop(self._kept[0].slot, None)
            self._kept.append(entry)
            self._old[entry.slot] = entry

"""The log of one group at a node that keeps it: messages with their places, saved before they go on."""

from collections.abc import Iterator

import msgspec

from ordercast.core import Env, GroupId, NodeId
from ordercast.protocols.atoms.parts import size_of
from ordercast.protocols.atoms.records import Entry, GroupPlan, Placed, Serial

_encoder = msgspec.msgpack.Encoder()
_entries: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)
_serials: msgspec.msgpack.Decoder[Serial] = msgspec.msgpack.Decoder(Serial)


class GroupLog:
    """Entries by position, and what is expected next from each publisher."""

    __slots__ = ("_env", "_group", "entries", "low", "next", "serials", "version")

    def __init__(self, env: Env, group: GroupId) -> None:
        self._env = env
        self._group = group
        self.version = 0
        """The plan that the log was last kept by."""
        self.entries: dict[int, Entry] = {}
        self.next = 0
        """The position after the last."""
        self.low = 0
        """Nobody needs what is before this position."""
        self.serials: dict[NodeId, Serial] = {}

    def load(self, place: str, state: bytes) -> None:
        """Take what an earlier life saved."""
        kind, name = place[0], int(place[1:] or 0)
        if kind == "v":
            self.version = int.from_bytes(state, "little")
        elif kind == "l":
            self.low = int.from_bytes(state, "little")
        elif kind == "e":
            self.entries[name] = _entries.decode(state)
            self.next = max(self.next, name + 1)
        else:
            self.serials[name] = _serials.decode(state)

    def keep(self, plan: GroupPlan) -> None:
        """Keep what is in the order, and drop what is not, or may not be.

        The log of a node is in the order up to the base of the plan that followed the last one it obeyed.
        """
        if plan.version == self.version:
            return
        following = [base for version, base in plan.bases if version > self.version]
        end = following[0] if following and self.version >= plan.bases[0][0] else 0
        for position in [one for one in self.entries if one >= end and self.entries[one].label != plan.label]:
            self._drop(position)
        self.next = 1 + max(self.entries, default=-1)
        self.forget(plan.low)
        self.version = plan.version
        self._save("v", plan.version.to_bytes(8, "little"))

    def begin(self, plan: GroupPlan) -> None:
        """Begin an epoch."""
        for position, begin in (*plan.begins, (plan.base, plan.begin)):
            self.put(position, begin)
        self.forget(plan.low)
        serials = dict(plan.serials)
        for publisher in [one for one in self.serials if one not in serials]:
            self._save(f"s{publisher}", None)
        for publisher, serial in serials.items():
            if self.serials.get(publisher) != serial:
                self._save(f"s{publisher}", _encoder.encode(serial))
        self.serials = serials

    def append(self, position: int, entry: Placed) -> None:
        """Add a message in its place."""
        self.put(position, entry)
        serial = self.serials[entry.publisher] = (entry.life, entry.number + 1)
        self._save(f"s{entry.publisher}", _encoder.encode(serial))

    def put(self, position: int, entry: Entry) -> None:
        """Keep an entry."""
        if position not in self.entries:
            self.entries[position] = entry
            self._save(f"e{position}", _encoder.encode(entry))
        self.next = max(self.next, position + 1)

    def forget(self, low: int) -> None:
        """Forget what is before a position, but for the last entry, which says how long the log is."""
        low = min(low, self.next - 1)
        if low > self.low:
            for position in [one for one in self.entries if one < low]:
                self._drop(position)
            self._set_low(low)

    def clear(self) -> None:
        """Forget everything."""
        for position in list(self.entries):
            self._drop(position)
        for publisher in self.serials:
            self._save(f"s{publisher}", None)
        self._save("v", None)
        self._save("l", None)
        self.serials = {}

    def _set_low(self, low: int) -> None:
        self.low = low
        self._save("l", low.to_bytes(8, "little"))

    def _drop(self, position: int) -> None:
        del self.entries[position]
        self._save(f"e{position}", None)

    def run(self, start: int, most: int, bytes_max: int) -> tuple[Entry, ...]:
        """Entries from a position on, without a gap."""
        found: list[Entry] = []
        size = 0
        while len(found) < most and (entry := self.entries.get(start + len(found))) is not None:
            size += len(entry.payload or b"") if isinstance(entry, Placed) else size_of(entry)
            if found and size > bytes_max:
                break
            found.append(entry)
        return tuple(found)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The parts of the log that are here."""
        start = last = None
        for position in sorted(self.entries):
            if last is None or position != last + 1:
                if start is not None and last is not None:
                    yield start, last + 1
                start = position
            last = position
        if start is not None and last is not None:
            yield start, last + 1

    def reach(self, label: int) -> int:
        """The position after the last entry of an epoch; 0 if there is none of that epoch."""
        last = self.entries.get(self.next - 1)
        return self.next if last is not None and last.label == label else 0

    def lacks(self, start: int, stop: int) -> tuple[int, int] | None:
        """The first part that is missing between two positions."""
        missing = next((one for one in range(max(start, self.low), stop) if one not in self.entries), None)
        if missing is None:
            return None
        end = missing
        while end < stop and end not in self.entries:
            end += 1
        return missing, end

    def _save(self, place: str, state: bytes | None) -> None:
        self._env.save(f"{self._group}.{place}", state)

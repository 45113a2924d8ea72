"""Ordering information (section III.C, Figure 5): what the primary of a group did, in the order in which it
did it.

Each operation of a group has a *place*: 1, 2, 3, ..., numbered over all its connections and views. An entry
says what was done at one place, or at several in a row. Consecutive messages of one connection share an
entry, and so do single messages of different connections, as many clients send them. Entries are an open list
of typed structures; a new kind of non-determinism is one more type.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Self, TypeAlias

import msgspec

from ordercast.replication.llft.names import Link, Natural, Short, ViewId

RUN_MAX = 1 << 20
"""The most places that one entry stands for."""
ROUND_MAX = 64
"""The most places that one entry for different connections stands for."""
ENTRIES_MAX = 4096
"""The most entries in one message."""
POSITIONS_MAX = 65_536


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the primary did, at one place or at several."""

    @property
    def places(self) -> int:
        """How many places it stands for."""
        return 1

    def cut(self, skip: int, keep: int) -> Self:
        """The part that stands for some of its places."""
        return self


class MessageOrder(Entry, frozen=True, tag=1):
    """It delivered messages that it received on a connection: so many, beginning with this one."""

    link: Link | Short
    """In full if it is the first message that is delivered on the connection."""
    first: Natural
    """The index of the first of them on the connection."""
    count: Annotated[int, msgspec.Meta(ge=1, le=RUN_MAX)]

    @property
    def places(self) -> int:
        return self.count

    def cut(self, skip: int, keep: int) -> Self:
        return type(self)(self.link, self.first + skip, keep)


class ViewOrder(Entry, frozen=True, tag=2):
    """It began a primary view: the virtual synchrony point at which backups change their view."""

    view: ViewId
    members: Annotated[tuple[Natural, ...], msgspec.Meta(max_length=4096)]
    """The precedences of the members of the view."""
    received: Annotated[tuple[tuple[Link, Natural], ...], msgspec.Meta(max_length=POSITIONS_MAX)]
    """For each connection that goes on: the index of the last message that the remote primary had received
    without a gap. Messages that follow are numbered from one again."""


class RoundOrder(Entry, frozen=True, tag=4):
    """It delivered the next message of each of some connections, one after the other.

    It names no indexes: a connection has no gaps, so each follows from what was delivered before.
    """

    links: Annotated[tuple[Short, ...], msgspec.Meta(min_length=1, max_length=ROUND_MAX)]

    @property
    def places(self) -> int:
        return len(self.links)

    def cut(self, skip: int, keep: int) -> Self:
        return type(self)(self.links[skip : skip + keep])


class CloseOrder(Entry, frozen=True, tag=3):
    """It closed a connection, whose other end is gone."""

    link: Link


class SendOrder(Entry, frozen=True, tag=5):
    """It sent on a connection what an operation asks another group, for the first time or again."""

    link: Link
    ask: Natural
    """The number of the ask, which all replicas count alike."""
    message: Natural
    """The identity under which it is sent."""
    time_ns: Natural
    """When it was sent first. Identity and time are the same at all replicas (virtual determinism)."""


class SeatOrder(Entry, frozen=True, tag=6):
    """It let a replica take a seat in the group, or give it up: the replica has joined or left here."""

    node: Natural
    joins: bool


AnyEntry: TypeAlias = MessageOrder | RoundOrder | ViewOrder | CloseOrder | SendOrder | SeatOrder
Entries: TypeAlias = Annotated[tuple[AnyEntry, ...], msgspec.Meta(max_length=ENTRIES_MAX)]


class Slice(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A part of the ordering information of a group, as it travels."""

    view: ViewId
    """The view of the primary that made it."""
    begin: Natural
    """The place at which this view began."""
    after: Natural
    """The place before the first entry."""
    entries: Entries
    safe: Natural
    """All members of the group have everything up to this place."""
    settled: Natural
    """What is up to this place outlives the primary."""

    @property
    def end(self) -> int:
        """The last place that it covers."""
        return self.after + sum(entry.places for entry in self.entries)


def cut(entries: tuple[AnyEntry, ...], places: int) -> tuple[AnyEntry, ...]:
    """As many of some entries as stand for so many places."""
    kept: list[AnyEntry] = []
    for entry in entries:
        if places <= 0:
            break
        kept.append(entry if entry.places <= places else entry.cut(0, places))
        places -= entry.places
    return tuple(kept)


def _joined(last: AnyEntry, entry: AnyEntry) -> AnyEntry | None:
    """One entry for what two stand for, if there is one."""
    if isinstance(last, MessageOrder) and isinstance(entry, MessageOrder) and last.link == entry.link:
        follows = last.first + last.count == entry.first and last.count + entry.count <= RUN_MAX
        return MessageOrder(last.link, last.first, last.count + entry.count) if follows else None
    before, after = _round(last), _round(entry)
    if before and after and before[-1] != after[0] and len(before) + len(after) <= ROUND_MAX:
        return RoundOrder(before + after)
    return None


def _round(entry: AnyEntry) -> tuple[Short, ...]:
    """The connections that an entry names, if it is for single messages and names none in full."""
    if isinstance(entry, RoundOrder):
        return entry.links
    if isinstance(entry, MessageOrder) and entry.count == 1 and isinstance(entry.link, int):
        return (entry.link,)
    return ()


class OrderLog:
    """The ordering information that one member holds: a stretch of places without a gap."""

    __slots__ = ("_entries", "_starts", "after", "end")

    def __init__(self, after: int = 0) -> None:
        self._starts: list[int] = []
        self._entries: list[AnyEntry] = []
        self.after = after
        """The place before the first that it holds."""
        self.end = after
        """The last place that it holds."""

    def append(self, entry: AnyEntry) -> int:
        """Add what was done next; return its first place."""
        place = self.end + 1
        joined = _joined(self._entries[-1], entry) if self._entries else None
        if joined is not None:
            self._entries[-1] = joined
        else:
            self._starts.append(place)
            self._entries.append(entry)
        self.end += entry.places
        return place

    def at(self, place: int) -> AnyEntry:
        """What was done at a place that it holds; an entry for several messages is cut to one."""
        index = bisect_right(self._starts, place) - 1
        entry = self._entries[index]
        return entry if entry.places == 1 else entry.cut(place - self._starts[index], 1)

    def part(self, after: int, limit: int = ENTRIES_MAX) -> tuple[AnyEntry, ...]:
        """The entries for all places above `after`, at most so many entries."""
        if after >= self.end:
            return ()
        if after < self.after:
            raise ValueError(f"places up to {self.after} are forgotten; {after} was asked for")
        first = bisect_right(self._starts, after + 1) - 1
        entries = self._entries[first : first + limit]
        skip = after + 1 - self._starts[first]
        if skip:
            entries[0] = entries[0].cut(skip, entries[0].places - skip)
        return tuple(entries)

    def runs(self, after: int) -> int:
        """How many entries there are for the places above `after`."""
        return (
            len(self._starts) - max(0, bisect_right(self._starts, after + 1) - 1) if after < self.end else 0
        )

    def extend(self, part: Slice) -> bool:
        """Take over what a slice has beyond this log; False if something between is missing."""
        if part.end <= self.end:
            return True
        if part.after > self.end:
            return False
        place = part.after
        for entry in part.entries:
            skip = max(0, self.end - place)
            place += entry.places
            if skip < entry.places:
                self.append(entry.cut(skip, entry.places - skip) if skip else entry)
        return True

    def truncate(self, end: int) -> None:
        """Forget what is above a place."""
        while self._starts and self._starts[-1] > end:
            self._starts.pop()
            self._entries.pop()
        if self._entries:
            last, start = self._entries[-1], self._starts[-1]
            if start + last.places - 1 > end:
                self._entries[-1] = last.cut(0, end - start + 1)
        self.end = max(self.after, min(self.end, end))

    def forget(self, upto: int) -> None:
        """Forget what is up to a place, as far as whole entries go."""
        count = bisect_right(self._starts, upto + 1) - 1
        if count > 0:
            del self._starts[:count], self._entries[:count]
            self.after = self._starts[0] - 1
        if upto >= self.end:
            self._starts.clear()
            self._entries.clear()
            self.after = self.end

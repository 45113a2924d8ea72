"""The ordering of one subscriber, fed by hand in a short notation.

An entry of a log is a `begin`, with the atoms of the group and their groups, or a `message` with its numbers.
"""

from collections.abc import Mapping

from ordercast.core import GroupId
from ordercast.protocols.atoms.ordering import Ordering, Stream
from ordercast.protocols.atoms.records import Begin, Entry, Placed

PUBLISHER = 90


def begin(
    label: int,
    atoms: Mapping[int, tuple[GroupId, ...]] | None = None,
    *,
    kin: tuple[GroupId, ...] = (),
    floor: int | None = None,
    ends: bool = False,
) -> Begin:
    """The entry with which an epoch begins."""
    floor = label if floor is None else floor
    return Begin(label, floor, kin, tuple((atoms or {}).items()), ends)


def message(text: str, label: int = 1, /, **numbers: int) -> Placed:
    """A message with its numbers, as in `message("m", q3=5)`: number 5 of atom 3."""
    stamps = tuple((int(name[1:]), number) for name, number in numbers.items())
    return Placed(label, stamps, PUBLISHER, 1, 0, text.encode())


class Streams:
    """A subscriber's ordering, and what it has delivered."""

    def __init__(self, *groups: GroupId, first: int = 1) -> None:
        self.ordering = Ordering(self._deliver, self._enter)
        self.told: list[str] = []
        for group in groups:
            self.add(group, first)

    def add(self, group: GroupId, first: int, start: int = 0) -> Stream:
        """A group that the subscriber is in from an epoch and a place on."""
        stream = self.ordering.streams[group] = Stream(group, first, start, founder=first == 1)
        return stream

    def _deliver(self, stream: Stream, entry: Placed) -> None:
        assert entry.payload is not None
        self.told.append(entry.payload.decode())

    def _enter(self, stream: Stream, begin: Begin) -> None:
        if stream.stop is not None and stream.next == stream.stop - 1:
            self.told.append(f"left {stream.group}")
            stream.next += 1
            self.ordering.remove(stream.group)
            return
        self.told.append(f"{stream.group}:{begin.label}")

    def gives(self, group: GroupId, start: int, *entries: Entry) -> list[str]:
        """What is delivered when entries of a group come, from a place on."""
        self.told.clear()
        for position, entry in enumerate(entries, start):
            self.ordering.streams[group].take(position, entry)
        return self.advances(group)

    def advances(self, *groups: GroupId) -> list[str]:
        """What is delivered when these groups are looked at again."""
        self.told.clear()
        self.ordering.advance(groups)
        return self.told.copy()

    def misses(self, group: GroupId) -> tuple[int, int] | None:
        """The atom and the number for which the next entry of a group waits."""
        stream = self.ordering.streams[group]
        assert isinstance(stream.head, Placed)
        return self.ordering.missing(stream, stream.head)

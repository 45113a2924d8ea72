"""Decides at once what a subscriber delivers and what it holds ([atoms] section 3.1).

A subscriber has a *stream* for each of its groups: the entries of the group's log, in their order. An atom is
*relevant* to it if it is in all groups that the atom numbers; then it gets every message that the atom
numbers, and delivers them in the order of these numbers, without a gap. All other numbers it ignores.

At the end of an epoch numbers may be missing: messages that had them did not come so far, and get other ones
in the next epoch. A subscriber that has all that its groups have of the old epoch delivers it without the
missing numbers, and then enters the next one. A subscriber must know in which groups it is in an epoch before
it enters it; the *horizon* says for which epochs it knows.
"""

from collections.abc import Callable, Iterable

from ordercast.components.sequencing_graph import AtomId
from ordercast.core import GroupId, Nanos
from ordercast.protocols.atoms.records import Begin, Entry, Placed, Stamps

HELD_MAX = 8192
"""How far ahead of its next entry a stream takes entries."""
NO_LABEL = 0
"""The epoch of a stream that has not begun."""


class Stream:
    """The log of one group, as a subscriber has it."""

    __slots__ = (
        "atoms", "begins", "came", "first", "founder", "group", "label", "last", "next", "out", "received",
        "relevant", "since", "stop",
    )  # fmt: skip

    def __init__(self, group: GroupId, first: int, start: int, founder: bool) -> None:
        self.group = group
        self.first = first
        """The first epoch in which the subscriber is a member."""
        self.founder = founder
        """Whether it was a member at the start of the run, and is not told that it joined."""
        self.next = start
        """The position of the next entry to deliver."""
        self.received = start
        """All entries before this position have come."""
        self.label = NO_LABEL
        """The epoch that it is in."""
        self.atoms: dict[AtomId, tuple[GroupId, ...]] = {}
        self.relevant: frozenset[AtomId] = frozenset()
        self.last: Stamps = ()
        """The numbers of the last message of this epoch."""
        self.came: dict[int, Entry] = {}
        self.begins: list[int] = []
        """Where epochs begin among the entries that came."""
        self.since: Nanos = 0
        """When the entry that it waits for, or one after it, could have been delivered first."""
        self.out: int | None = None
        """The first epoch in which the subscriber is no member any more."""
        self.stop: int | None = None
        """The position after the last of its part, if it leaves."""

    @property
    def head(self) -> Entry | None:
        """The next entry, if it has come."""
        return self.came.get(self.next)

    @property
    def is_complete(self) -> bool:
        """Whether everything up to the end of its epoch has come."""
        return bool(self.begins) and self.begins[0] < self.received

    def has_come_to(self, floor: int) -> bool:
        """Whether it has delivered everything of epochs with labels below this one."""
        label = self.label or self.first
        head = self.head
        return label >= floor or (bool(self.label) and isinstance(head, Begin) and head.label >= floor)

    def take(self, position: int, entry: Entry) -> bool:
        """Keep an entry; False if it is known, or too far ahead."""
        if not self.next <= position < self.next + HELD_MAX or position in self.came:
            return False
        if self.stop is not None and position >= self.stop:
            return False
        self.came[position] = entry
        if isinstance(entry, Begin):
            self.begins.append(position)
            self.begins.sort()
        while self.received in self.came:
            self.received += 1
        return True

    def step(self) -> None:
        """The next entry is done with."""
        entry = self.came.pop(self.next)
        if isinstance(entry, Begin):
            self.begins.remove(self.next)
        else:
            self.last = entry.stamps
        self.next += 1


class Ordering:
    """The streams of one subscriber, and the numbers that it expects."""

    def __init__(
        self, deliver: Callable[[Stream, Placed], None], enter: Callable[[Stream, Begin], None]
    ) -> None:
        self.streams: dict[GroupId, Stream] = {}
        self.horizon: int | None = None
        """In which groups the subscriber is in epochs below is known; None: in all epochs to come."""
        self._former: dict[GroupId, tuple[int, int]] = {}
        """Groups that it was in, with the first epoch and the first without it. One that it has lost counts
        in epochs that it has not come to yet: they wait for their ends instead of its numbers."""
        self._deliver = deliver
        self._enter = enter
        self._expected: dict[int, dict[AtomId, int]] = {}
        """By epoch: the next number of each relevant atom."""

    def resume(self, stream: Stream) -> None:
        """Go on with a stream that an earlier life has begun."""
        self.streams[stream.group] = stream
        expected = self._expected.setdefault(stream.label, {})
        for atom, number in stream.last:
            expected[atom] = max(expected.get(atom, 0), number + 1)

    def remove(self, group: GroupId) -> None:
        """A stream is over."""
        stream = self.streams.pop(group)
        if stream.out is not None:
            self._former[group] = (stream.first, stream.out)
        self._forget_epochs()

    def advance(self, groups: Iterable[GroupId]) -> None:
        """Deliver whatever can be delivered, beginning with these groups."""
        waiting = list(groups)
        if any(group in self.streams and self.streams[group].begins for group in waiting):
            waiting = list(self.streams)  # at an end of an epoch others may skip numbers
        while waiting:
            stream = self.streams.get(waiting.pop())
            moved = False
            while stream is not None and stream.head is not None and self._step(stream):
                moved = True
                stream = self.streams.get(stream.group)
            if moved:
                waiting = [group for group, one in self.streams.items() if one.head is not None]

    def _step(self, stream: Stream) -> bool:
        entry = stream.head
        if isinstance(entry, Begin):
            return self._pass(stream, entry)
        assert entry is not None
        if self.missing(stream, entry) is not None and not self._may_skip(stream, entry):
            return False
        expected = self._expected.setdefault(stream.label, {})
        for atom, number in entry.stamps:
            if atom in stream.relevant:
                expected[atom] = number + 1
        self._deliver(stream, entry)
        stream.step()
        return True

    def missing(self, stream: Stream, entry: Placed) -> tuple[AtomId, int] | None:
        """The first relevant atom of which an earlier number is missing, and that number."""
        expected = self._expected.get(stream.label, {})
        for atom, number in entry.stamps:
            if atom in stream.relevant and number != expected.get(atom, 0):
                return atom, expected.get(atom, 0)
        return None

    def _may_skip(self, stream: Stream, entry: Placed) -> bool:
        """Whether no message will come with the missing numbers: the epoch is over in all groups that have
        them, all of it is here, and this message is the next of each of its atoms."""
        expected = self._expected.get(stream.label, {})
        return stream.is_complete and all(
            self._is_next(stream, atom, number)
            for atom, number in entry.stamps
            if atom in stream.relevant and number != expected.get(atom, 0)
        )

    def _is_next(self, stream: Stream, atom: AtomId, number: int) -> bool:
        """Whether no group has a message with a lower number of an atom left."""
        for group in stream.atoms[atom]:
            other = self.streams.get(group)
            if other is None or other is stream or other.label > stream.label:
                continue
            if other.label < stream.label or not other.is_complete:
                return False
            head = other.head
            if isinstance(head, Placed) and any(one == atom and n < number for one, n in head.stamps):
                return False
        return True

    def blockers(self, stream: Stream, begin: Begin) -> list[Stream]:
        """The streams that have not come to the end of the epochs that end before another begins.

        Those of groups that it has left by then count too, kin or not: others may be in both.
        """
        leaves = stream.stop is not None and stream.next == stream.stop - 1
        found: list[Stream] = []
        for group, other in self.streams.items():
            behind = group in begin.kin and not other.has_come_to(begin.floor)
            left = not leaves and other.out is not None and other.out <= begin.label
            if other is not stream and (behind or left):
                found.append(other)
        return found

    def _pass(self, stream: Stream, begin: Begin) -> bool:
        """Enter an epoch, or end the stream."""
        if self.horizon is not None and begin.label >= self.horizon:
            return False
        if self.blockers(stream, begin):
            return False
        if stream.stop is not None and stream.next == stream.stop - 1:
            self._enter(stream, begin)  # the subscriber takes the stream out
            return True
        inside = self._inside(begin.label)
        stream.label, stream.last = begin.label, ()
        stream.atoms = dict(begin.atoms)
        stream.relevant = frozenset(atom for atom, groups in begin.atoms if inside.issuperset(groups))
        self._expected.setdefault(begin.label, {})
        self._enter(stream, begin)
        stream.step()
        self._forget_epochs()
        return True

    def _inside(self, label: int) -> set[GroupId]:
        """The groups that it is in in an epoch."""
        streams = self.streams.items()
        found = {
            group for group, one in streams if one.first <= label and (one.out is None or label < one.out)
        }
        return found | {group for group, (first, out) in self._former.items() if first <= label < out}

    def _forget_epochs(self) -> None:
        labels = {stream.label for stream in self.streams.values()}
        for label in [label for label in self._expected if label not in labels]:
            del self._expected[label]

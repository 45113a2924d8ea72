"""What is void where side branches are discarded: rows that are not on the branch that survives.

The promises of such a run hold within the branch that survives. So before anything else is judged, void rows
are taken out here, in one place, when all rows are known. A void delivery, view or checkpoint becomes a row
of the kind `undone`: its node was up and heard something, and nothing follows from it. A node that joined on
a side branch has not joined. One that left there has left, at the last place that this branch has in common
with the one that survives; it is told nothing any more. If all answers to an
operation are void, each becomes a row of the kind `unconfirmed`: its client cannot know what becomes of it.
The property `branches` sees the rows as they were.

An `undone` row may name the view that its node goes on with. If that view is discarded later, the node may
have taken back what survives after all. That is void too: the node counts as if it had never had it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ordercast.core import GroupId, MessageId, NodeId
from ordercast.judge.online.branch import JUDGED, Branch, ViewName
from ordercast.judge.online.memory import Memory
from ordercast.trace import (
    ANSWERING,
    CARRYING,
    ENTERING,
    LEAVING,
    REQUESTS,
    UNDOING,
    Event,
    Kind,
    RunDescription,
)

TAKEN_BACK = (*CARRYING, *ANSWERING)
"""The kinds of rows that a notice takes back."""


class Retreat(NamedTuple):
    """An `undone` row with a place: its node takes back what is behind the place."""

    row: int
    event: Event
    clock: int
    misled: bool
    """It named a view that did not survive."""


class SideBranches:
    """The branches of all groups, and which rows are void."""

    def __init__(self, description: RunDescription) -> None:
        self._description = description
        self.events: Sequence[Event] = ()
        """All rows of the run as they were."""
        self.branches: dict[GroupId, Branch] = {}
        self.void: set[int] = set()
        self.memory = Memory()
        self.given: dict[tuple[NodeId, GroupId], list[int]] = {}
        """For each node and group, the rows of deliveries and answers that have a place."""
        self.retreats: dict[tuple[NodeId, GroupId], list[Retreat]] = {}
        """The notices of each node about each group, in order."""
        self.moved: dict[int, Event] = {}
        """Rows of nodes that left on a side branch, with the place that counts."""
        self.left: dict[tuple[NodeId, GroupId], int] = {}
        """The last row with which each node left each group."""
        self._joined: dict[tuple[NodeId, GroupId], int] = {}
        self._asked: dict[tuple[NodeId, GroupId], list[int]] = {}
        """What each node has asked for since it left last."""
        self.placeless: list[Event] = []
        """Notices that do not say what they take back."""

    def surviving(self, events: Sequence[Event]) -> list[Event]:
        """All rows of a run, with others in the place of void ones."""
        self.events = events
        groups = self._description.groups
        self.branches = {group: Branch(self._description, group, events) for group in groups}
        for row, event in enumerate(events):
            self.memory.take(row, event)
            branch = self.branches.get(event.groups[0]) if event.groups else None
            if branch is not None:
                self._take(row, event, branch)
        for retreats in self.retreats.values():
            for retreat in retreats:
                if retreat.misled:
                    self.void.update(self.taken_back(retreat))
        held = {e.message for row, e in enumerate(events) if e.kind in ANSWERING and row not in self.void}
        return [
            _voided(event, held) if row in self.void else self.moved.get(row, event)
            for row, event in enumerate(events)
        ]

    def _take(self, row: int, event: Event, branch: Branch) -> None:
        if event.kind in UNDOING:
            self._take_notice(row, event, branch)
        elif event.kind in REQUESTS:
            self._asked.setdefault((event.node, branch.group), []).append(row)
        elif event.kind in LEAVING:
            self._take_leave(row, event, branch)
        elif event.kind in JUDGED:
            if event.kind in ENTERING:
                self._joined[event.node, branch.group] = row
            if not branch.has(event):
                self.void.add(row)
            if event.kind in TAKEN_BACK and None not in (event.stamp_clock, event.stamp_issuer):
                self.given.setdefault((event.node, branch.group), []).append(row)

    def _take_leave(self, row: int, event: Event, branch: Branch) -> None:
        key = (event.node, branch.group)
        self.left[key] = row
        asked = self._asked.pop(key, [])
        if self._joined.get(key) in self.void:  # it was never in the branch that survives, and need not be
            self.void.update((row, *asked))
        elif not branch.has(event):
            clock, issuer = branch.leaves_at(event)
            self.moved[row] = event._replace(stamp_clock=clock, stamp_issuer=issuer)

    def _take_notice(self, row: int, event: Event, branch: Branch) -> None:
        if event.stamp_clock is None:
            self.placeless.append(event)
            return
        named = ViewName(*event.numbers) if event.numbers is not None and len(event.numbers) == 2 else None
        known = named is not None and (named in branch.views or named == branch.initial)
        misled = known and named is not None and not branch.has_view(named)
        retreat = Retreat(row, event, event.stamp_clock, misled)
        self.retreats.setdefault((event.node, branch.group), []).append(retreat)

    def taken_back(self, retreat: Retreat) -> Iterator[int]:
        """The deliveries and answers that a notice takes back, as far as its node can know of them."""
        notice = retreat.event
        for row in self.given.get((notice.node, (notice.groups or (0,))[0]), ()):
            if row > retreat.row:
                return
            event = self.events[row]
            behind = event.stamp_clock is not None and event.stamp_clock > retreat.clock
            if behind and self.memory.remembers(event, row, retreat.row):
                yield row


def _voided(event: Event, held: set[MessageId | None]) -> Event:
    """The row that stands for a void one."""
    if event.kind in ANSWERING and event.message is not None and event.message not in held:
        return event._replace(kind=Kind.UNCONFIRMED)
    return event._replace(kind=Kind.UNDONE)

"""The branch of a group's order that survives: its primary views, from the first one to the head.

A view is named by its number and its precedence, and its row says which view it follows and at which clock
it begins. The head is the last view of a receiver that is up at the end, the one with the greatest precedence
(then number). From there the rows lead back to the initial view. What was ordered in a view of the branch,
between the clock at which the view begins and that of the next, is on the branch.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ordercast.core import GroupId, NodeId
from ordercast.trace import (
    ANSWERING,
    CARRYING,
    CONFIGURING,
    ENTERING,
    LEAVING,
    LOST,
    READ,
    Event,
    Kind,
    RunDescription,
)

INITIAL = 0
"""The number of the view in which a group begins; nobody needs to install it."""


class ViewName(NamedTuple):
    """What tells a primary view from all others."""

    number: int
    precedence: int | None
    """None for an initial view of which nothing tells the precedence."""

    @property
    def rank(self) -> tuple[float, int]:
        """Of competing views, the one with the greatest rank survives."""
        return (float("-inf") if self.precedence is None else self.precedence, self.number)

    def __str__(self) -> str:
        """The view, for people."""
        return f"view {self.number} of precedence {self.precedence}"


class Part(NamedTuple):
    """One view of a branch."""

    view: ViewName | None
    """None for all that came before a view that follows an unknown one."""
    begin: int | None
    """The clock behind which it begins; None if it begins with the group."""
    end: int | None
    """The last clock that belongs to it; None if it is the head."""

    def has(self, clock: int, issuer: int, *, from_begin: bool) -> bool:
        """Whether a place is in this part; `from_begin`: the place at which the view begins counts too."""
        if self.view is not None and self.view.precedence not in (None, issuer):
            return False
        early = self.begin is not None and (clock < self.begin or (clock == self.begin and not from_begin))
        return not early and (self.end is None or clock <= self.end)


class Installed(NamedTuple):
    """A primary view, as a row tells it."""

    event: Event
    name: ViewName
    clock: int
    previous: ViewName


class Branch:
    """The branch of one group that survives, and the views of all its branches."""

    def __init__(self, description: RunDescription, group: GroupId, events: Iterable[Event]) -> None:
        """`events` are all rows of the run; of a view, the first row counts here."""
        self.group = group
        self._founders = frozenset(description.groups[group])
        self._inside = set(self._founders)
        """Who was told last that it is in the group."""
        self.rows: list[Installed] = []
        """Each installation of a view but the initial one."""
        self.unreadable: list[Event] = []
        """Views whose rows do not say what they must say."""
        self.initials: list[tuple[Event, ViewName]] = []
        """Rows that name the initial view."""
        self._first_issuer: int | None = None
        self._current: dict[NodeId, Event | None] = {}
        """The last view of each receiver that has one; None for one that came back and was told none yet."""
        self._down: set[NodeId] = set()
        self._all: list[Event] = []
        for event in events:
            self._take(event)
        named = [name for _, name in self.initials]
        self.initial = named[0] if named else ViewName(INITIAL, self._first_issuer)
        self.views: dict[ViewName, Installed] = {}
        for row in self.rows:
            self.views.setdefault(row.name, row)
        self.last = {node: self._last_of(node) for node in sorted(self._inside - self._down)}
        """For each receiver that is up at the end, its view; None if it came back and was told none."""
        self.head = self._find_head()
        self.chain: list[ViewName] = []
        """The views of the branch, from the first to the head."""
        self.lacking: ViewName | None = None
        """The view that a view of the branch follows, but that nobody installed."""
        self._parts = self._walk_back()
        self._names = frozenset(self.chain)

    def _take(self, event: Event) -> None:
        if event.kind is Kind.CRASH:
            self._down.add(event.node)
        elif event.kind is Kind.RECOVER:
            self._down.discard(event.node)
            self._current[event.node] = None
            if event.label == LOST and event.node not in self._founders:
                self._inside.discard(event.node)
            elif event.label == LOST:
                self._inside.add(event.node)
        elif not event.groups or event.groups[0] != self.group:
            return
        elif event.kind in CONFIGURING:
            self._take_view(event)
        elif event.kind in ENTERING:
            self._inside.add(event.node)
        elif event.kind in LEAVING:
            self._inside.discard(event.node)
        elif event.kind in CARRYING and self._first_issuer is None and event.stamp_clock is not None:
            self._first_issuer = event.stamp_issuer

    def _take_view(self, event: Event) -> None:
        if event.config is None or event.members is None:
            return  # not a view at all: the gate says so
        if event.config == INITIAL:
            if event.stamp_issuer is not None:
                self.initials.append((event, ViewName(INITIAL, event.stamp_issuer)))
        elif event.stamp_clock is None or event.stamp_issuer is None or len(event.numbers or ()) != 2:
            self.unreadable.append(event)
            return
        else:
            name, previous = ViewName(event.config, event.stamp_issuer), ViewName(*(event.numbers or ()))
            self.rows.append(Installed(event, name, event.stamp_clock, previous))
            if previous.number == INITIAL:
                self.initials.append((event, previous))
        self._all.append(event)
        self._current[event.node] = event

    def name_of(self, event: Event) -> ViewName | None:
        """The view that a row installs; None if it does not say."""
        if event.config == INITIAL and event.stamp_issuer is None:
            return self.initial
        if event.config is None or event.stamp_issuer is None:
            return None
        return ViewName(event.config, event.stamp_issuer)

    def _last_of(self, node: NodeId) -> ViewName | None:
        if node not in self._current:
            return self.initial
        event = self._current[node]
        return None if event is None else self.name_of(event)

    def _find_head(self) -> ViewName:
        """The head; if nobody who is up is in a view, the greatest view that there ever was."""
        last = [name for name in self.last.values() if name is not None]
        ever = [name for name in map(self.name_of, self._all) if name is not None]
        return max(last or ever, key=lambda name: name.rank, default=self.initial)

    def _walk_back(self) -> list[Part]:
        parts: list[Part] = []
        name, end = self.head, None
        while name.number != INITIAL:
            row = self.views.get(name)
            if row is None or name in self.chain:
                self.lacking = name
                parts.append(Part(None, None, end))
                break
            self.chain.append(name)
            parts.append(Part(name, row.clock, end))
            name, end = row.previous, row.clock if end is None else min(end, row.clock)
        else:
            self.chain.append(name)
            parts.append(Part(name, None, end))
        self.chain.reverse()
        return parts

    def has_view(self, name: ViewName) -> bool:
        """Whether a view is on the branch."""
        return name in self._names

    def has(self, event: Event) -> bool:
        """Whether a row is on the branch; one that names no view and no place is.

        If a view of the branch is lacking, all that may have come before it counts.
        """
        if event.kind in CONFIGURING:
            name = None if event.members is None else self.name_of(event)
            if name is None or event in self.unreadable or self.has_view(name):
                return True
            return self._may_precede(name, event.stamp_clock)
        if event.stamp_clock is None or event.stamp_issuer is None:
            return True
        from_begin = event.kind is Kind.CHECKPOINT or event.label == READ
        clock, issuer = event.stamp_clock, event.stamp_issuer
        return any(part.has(clock, issuer, from_begin=from_begin) for part in self._parts)

    def _may_precede(self, name: ViewName, clock: int | None) -> bool:
        """Whether a view of another branch may be one of those before a view that is lacking."""
        end = self._parts[-1].end
        if self.lacking is None or end is None:
            return False
        return name.number == INITIAL or (clock is not None and clock <= end)

    def leaves_at(self, event: Event) -> tuple[int, int]:
        """The last place that the view of a row which is not on the branch has in common with the branch."""
        issuer, clock = event.stamp_issuer, event.stamp_clock or 0
        name = next((name for name in self.views if name.precedence == issuer), self.initial)
        while not self.has_view(name):
            row = self.views.get(name)
            if row is None:
                return 0, 0
            name, clock = row.previous, min(clock, row.clock)
        end = next((part.end for part in self._parts if part.view == name), None)
        return clock if end is None else min(clock, end), name.precedence or 0

    def crossings(self) -> Iterator[tuple[Installed, str]]:
        """Views that do not go on from the one that they follow, and what is wrong."""
        for row in self.views.values():
            before = self.views.get(row.previous)
            if row.previous.number >= row.name.number:
                yield row, "whose number is not lower"
            elif (row.previous.precedence or 0) > (row.name.precedence or 0):
                yield row, "whose precedence is greater"
            elif before is not None and before.clock > row.clock:
                yield row, f"which begins later, at {before.clock}"


JUDGED = (*CARRYING, *ANSWERING, Kind.CHECKPOINT, *CONFIGURING, *ENTERING)
"""The kinds of rows that are on a branch."""

"""The branch of a group's order that survives, over columns.

Views are few, so their rows are read one by one: who follows whom, and who is in which view at the end. The
branch leads from the greatest of these views, by precedence and number, back to the initial one. It cuts the
clocks of the group into parts, each with one issuer; rows are compared with all parts at once.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, NodeId
from ordercast.judge.columns.columns import Flags, Ints, null_of
from ordercast.judge.columns.population import Population
from ordercast.judge.columns.trace import Trace
from ordercast.trace import CARRYING, CHANGING, CONFIGURING, ENTERING, Kind

Name = tuple[int, int | None]
"""The number of a view, and its precedence; None for an initial view of which nothing tells it."""


class ViewRow(NamedTuple):
    """A row of a view; `begin` and `before` are None for the initial view and for rows that lack them."""

    row: int
    node: NodeId
    name: Name
    begin: int | None
    before: Name | None
    members: tuple[NodeId, ...]

    @property
    def readable(self) -> bool:
        """Whether the row says what it must say."""
        return self.name[0] == 0 or (self.begin is not None and self.before is not None)


class ClockRange(NamedTuple):
    """Clocks behind `begin` and up to `end`, of one issuer; None for no limit, and for any issuer."""

    issuer: int | None
    begin: int | None
    end: int | None


def first_groups(trace: Trace) -> Ints:
    """The first group of each row; -1 if there is none."""
    firsts = [groups[0] if groups else -1 for groups in trace.groups.tuples]
    found: Ints = np.array([*firsts, -1], np.int64)[trace.groups.codes]
    return found


def named_text(name: Name) -> str:
    """A view, for people."""
    return f"view {name[0]} of precedence {name[1]}"


class Branch:
    """The branch of one group that survives."""

    def __init__(self, trace: Trace, group: GroupId, firsts: Ints, population: Population) -> None:
        self._trace = trace
        self.group = group
        self._mine = firsts == group
        self._up = [node for node in self._at_end() if population.standing(node) != "down"]
        found = self._read()
        self.unreadable = [view for view in found if not view.readable]
        self.rows = [view for view in found if view.readable]
        self.initial: Name = next((name for _, name in self.initials), (0, self._first_issuer()))
        self.first: dict[Name, ViewRow] = {}
        """For each view but the initial one, the first row that installs it."""
        for view in self.rows:
            if view.name[0]:
                self.first.setdefault(view.name, view)

    def _at_end(self) -> list[NodeId]:
        """The nodes that were told last that they are in the group."""
        trace, founders = self._trace, frozenset(self._trace.description.groups[self.group])
        inside, lost = set(founders), {int(row) for rows in trace.lost.values() for row in rows}
        changing, entering = trace.rows(*CHANGING), trace.is_kind(*ENTERING)
        for row in sorted({*changing[self._mine[changing]].tolist(), *lost}):
            node = int(trace.node[row])
            goes_in = node in founders if row in lost else bool(entering[row])
            (inside.add if goes_in else inside.discard)(node)
        return sorted(inside)

    def _read(self) -> list[ViewRow]:
        trace = self._trace
        rows = trace.rows(*CONFIGURING)
        rows = rows[self._mine[rows]]
        table = trace.table.select(["numbers", "members", "config", "stamp_clock", "stamp_issuer"]).take(rows)
        found = []
        for row, said in zip(rows.tolist(), table.to_pylist(), strict=True):
            number, members = said["config"], said["members"]
            if number is None or members is None:
                continue
            before = tuple(said["numbers"] or ())
            named = said["stamp_issuer"] is not None and len(before) == 2
            found.append(
                ViewRow(
                    row,
                    int(trace.node[row]),
                    (number, said["stamp_issuer"]),
                    said["stamp_clock"] if number else None,
                    (before[0], before[1]) if number and named else None,
                    tuple(members),
                )
            )
        return found

    @cached_property
    def initials(self) -> list[tuple[ViewRow, Name]]:
        """The rows that tell the precedence of the initial view, and how they name it."""
        named = [(view, view.before or view.name) for view in self.rows]
        return [(view, name) for view, name in named if name[0] == 0 and name[1] is not None]

    def _first_issuer(self) -> int | None:
        """Who issued the first place that a row names; without views, this is the only issuer."""
        trace = self._trace
        rows = trace.rows(*CARRYING)
        rows = rows[self._mine[rows]]
        for name in ("stamp_clock", "stamp_issuer"):
            rows = rows[trace.column(name)[rows] != null_of(trace.column(name))]
        return int(trace.column("stamp_issuer")[rows[0]]) if len(rows) else None

    def _known(self, name: Name) -> Name:
        return self.initial if name == (0, None) else name

    @cached_property
    def last(self) -> dict[NodeId, Name | None]:
        """For each receiver that is up at the end, its view; None if it came back and was told none."""
        back: dict[NodeId, int] = {}
        for row in self._trace.rows(Kind.RECOVER).tolist():
            back[int(self._trace.node[row])] = row
        views = {view.node: view for view in self.rows if view.row > back.get(view.node, -1)}
        return {
            node: self._known(views[node].name) if node in views else None if node in back else self.initial
            for node in self._up
        }

    @cached_property
    def head(self) -> Name:
        """The view with which the branch ends."""
        names = [name for name in self.last.values() if name is not None]
        names = names or [self._known(view.name) for view in self.rows] or [self.initial]
        return max(names, key=lambda name: (name[1] is not None, name[1] or 0, name[0]))

    @cached_property
    def chain(self) -> list[Name]:
        """The views of the branch, the head first. The last one is an initial view unless one is lacking."""
        chain = [self.head]
        while chain[-1][0] != 0 and chain[-1] in self.first:
            before = self.first[chain[-1]].before
            if before is None or before in chain:
                break
            chain.append(before)
        return chain

    @property
    def lacking(self) -> Name | None:
        """The view with which the branch should begin: nobody installed it, or it comes in a circle."""
        end = self.chain[-1]
        if end[0] == 0:
            return None
        return self.first[end].before if end in self.first else end

    @cached_property
    def names(self) -> frozenset[Name]:
        """The views of the branch that somebody installed, and the initial one."""
        return frozenset(name for name in self.chain if name[0] == 0 or name in self.first)

    @cached_property
    def _ranges(self) -> list[ClockRange]:
        found, end = [], None
        for name in self.chain:
            if name[0] == 0:
                found.append(ClockRange(name[1], None, end))
                return found
            if name not in self.first:
                break
            begin = self.first[name].begin
            found.append(ClockRange(name[1], begin, end))
            end = begin if end is None or begin is None else min(begin, end)
        return [*found, ClockRange(None, None, end)]

    def common(self, clock: int, issuer: int) -> tuple[int, int]:
        """The last place that another branch has in common with this one, where a place of it is given."""
        name = next((name for name in self.first if name[1] == issuer), self.initial)
        while name not in self.names:
            view = self.first.get(name)
            if view is None or view.before is None or view.begin is None:
                return 0, 0
            name, clock = self._known(view.before), min(clock, view.begin)
        later = self.chain[: self.chain.index(name)]
        ends = [begin for one in later if one in self.first and (begin := self.first[one].begin) is not None]
        return min([clock, *ends]), name[1] or 0

    def holds(self, clock: Ints, issuer: Ints, from_begin: Flags) -> Flags:
        """Which of some places are on the branch; `from_begin`: where a view begins counts as in it."""
        on = np.zeros(len(clock), bool)
        for one in self._ranges:
            inside = np.ones(len(clock), bool)
            if one.issuer is not None:
                inside &= issuer == one.issuer
            if one.begin is not None:
                inside &= (clock > one.begin) | (from_begin & (clock == one.begin))
            if one.end is not None:
                inside &= clock <= one.end
            on |= inside
        return on

    def discarded(self) -> Ints:
        """The rows of views that are not on the branch."""
        strange = [view for view in self.rows if self._known(view.name) not in self.names]
        end = self._ranges[-1].end
        if self.lacking is not None and end is not None:  # all that may have come before counts
            strange = [view for view in strange if view.begin is not None and view.begin > end]
        return np.array([view.row for view in strange], np.int64)

"""What is void where side branches are discarded, over columns.

Rows that are not on the branch that survives get another kind before any other property is judged: an answer
of which no other is left becomes `unconfirmed`, and all others become `undone`. So rows keep their places.
What a node took back because of a view that was discarded itself is void too. Whoever joined on a side branch
has not joined; whoever left on one has left, at the last place that it has in common with what survives.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import GroupId, NodeId, Partition
from ordercast.judge.columns.branch import Branch, first_groups
from ordercast.judge.columns.columns import CODE, KINDS, Flags, Ints, null_of
from ordercast.judge.columns.memory import Memory
from ordercast.judge.columns.population import Population
from ordercast.judge.columns.trace import Trace
from ordercast.trace import ANSWERING, CARRYING, CHANGING, ENTERING, LEAVING, READ, REQUESTS, UNDOING, Kind


class Notice(NamedTuple):
    """An `undone` row; `misled` if it named a view that was discarded itself."""

    row: int
    node: NodeId
    group: GroupId
    clock: int | None
    misled: bool


class Move(NamedTuple):
    """A row with which a node joined a group or left it."""

    row: int
    node: NodeId
    group: GroupId
    joined: int | None
    """The row with which it joined last."""
    asked: tuple[int, ...]
    """The rows in which it has asked for something since it left last."""
    leaves: bool


class SideBranches:
    """The branches of a run's groups, and what is void."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        """All rows as they were."""
        self.firsts = first_groups(trace)
        self.population = Population(trace)
        groups = trace.description.groups
        self.branches = {group: Branch(trace, group, self.firsts, self.population) for group in groups}
        self.memory = Memory(trace, self.firsts)
        self.answers = trace.is_kind(*ANSWERING)
        self.clock = trace.column("stamp_clock")
        self.placed = (self.clock != null_of(self.clock)) & (
            trace.column("stamp_issuer") != null_of(trace.column("stamp_issuer"))
        )
        self.given = np.flatnonzero(trace.is_kind(*CARRYING, *ANSWERING) & self.placed)
        """Deliveries and answers with a place."""

    @cached_property
    def void(self) -> Flags:
        """For each row, whether it is void."""
        trace = self.trace
        void = np.zeros(len(trace.kind), bool)
        judged = trace.is_kind(*CARRYING, *ANSWERING, Kind.CHECKPOINT, *ENTERING)
        rows = np.flatnonzero(judged & self.placed)
        from_begin = trace.is_kind(Kind.CHECKPOINT)[rows] | trace.labelled(rows, READ)
        issuer = trace.column("stamp_issuer")
        for group, branch in self.branches.items():
            mine = self.firsts[rows] == group
            ours = rows[mine]
            void[ours] = ~branch.holds(self.clock[ours], issuer[ours], from_begin[mine])
            void[branch.discarded()] = True
        for change in self.changes:
            if change.leaves and change.joined is not None and void[change.joined]:
                void[[change.row, *change.asked]] = True
        for notice in self.notices:
            if notice.misled:
                void[self.taken_back(notice)] = True
        return void

    @cached_property
    def changes(self) -> list[Move]:
        """All rows with which nodes joined or left a group, in order."""
        found: list[Move] = []
        joined: dict[tuple[NodeId, GroupId], int] = {}
        asked: dict[tuple[NodeId, GroupId], tuple[int, ...]] = {}
        leaving, asking = self.trace.is_kind(*LEAVING), self.trace.is_kind(*REQUESTS)
        for row in self.trace.rows(*CHANGING, *REQUESTS).tolist():
            key = (int(self.trace.node[row]), int(self.firsts[row]))
            if asking[row]:
                asked[key] = (*asked.get(key, ()), row)
            elif key[1] in self.branches:
                leaves = bool(leaving[row])
                found.append(Move(row, *key, joined.get(key), asked.get(key, ()), leaves))
                if leaves:
                    asked.pop(key, None)
                else:
                    joined[key] = row
        return found

    def last_left(self, node: NodeId, group: GroupId) -> int:
        """The last row with which a node left a group; -1 if there is none."""
        rows = [one.row for one in self.changes if one.leaves and (one.node, one.group) == (node, group)]
        return max(rows, default=-1)

    @cached_property
    def moved(self) -> dict[int, tuple[int, int]]:
        """The rows with which nodes left on a side branch, and the places that count."""
        found = {}
        issuers = self.trace.column("stamp_issuer")
        for change in self.changes:
            row, branch = np.array([change.row]), self.branches[change.group]
            if not change.leaves or not self.placed[change.row] or self.void[change.row]:
                continue
            if not branch.holds(self.clock[row], issuers[row], np.zeros(1, bool))[0]:
                found[change.row] = branch.common(int(self.clock[change.row]), int(issuers[change.row]))
        return found

    @cached_property
    def notices(self) -> list[Notice]:
        """All notices about groups of the run, in order."""
        return list(self._notices())

    def _notices(self) -> Iterator[Notice]:
        trace = self.trace
        for row in trace.rows(*UNDOING).tolist():
            branch = self.branches.get(int(self.firsts[row]))
            if branch is None:
                continue
            clock = None if self.clock[row] == null_of(self.clock) else int(self.clock[row])
            named = tuple(trace.table["numbers"][row].as_py() or ())
            known = named in branch.first or named == branch.initial
            misled = len(named) == 2 and known and named not in branch.names
            yield Notice(row, int(trace.node[row]), branch.group, clock, misled)

    def taken_back(self, notice: Notice) -> Ints:
        """The deliveries and answers that a notice takes back, as far as its node can know of them."""
        if notice.clock is None:
            return self.given[:0]
        rows = self.given[: np.searchsorted(self.given, notice.row)]
        rows = rows[(self.trace.node[rows] == notice.node) & (self.firsts[rows] == notice.group)]
        rows = rows[self.clock[rows] > notice.clock]
        return self.remembered(rows, notice.node, notice.group, notice.row)

    def remembered(self, rows: Ints, node: NodeId, group: GroupId, until: int) -> Ints:
        """Those of some deliveries and answers that their node can still know of at a later row."""
        known = np.zeros(len(rows), bool)
        for answers in (False, True):
            since = self.memory.since(node, group, answers=answers, until=until)
            known |= (self.answers[rows] == answers) & (rows > since)
        found: Ints = rows[known]
        return found

    def surviving(self) -> Trace:
        """The run with other kinds in the place of void rows."""
        trace, void = self.trace, self.void
        if not void.any() and not self.moved:
            return trace
        kind = np.where(void, np.int8(CODE[Kind.UNDONE]), trace.kind).astype(np.int8)
        message = trace.message
        held = np.unique(message[self.answers & ~void])
        open_ = void & self.answers & (message != null_of(message)) & ~np.isin(message, held)
        kind[open_] = CODE[Kind.UNCONFIRMED]
        words = pa.array([str(word) for word in KINDS], pa.string())
        column = pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), words)
        place = trace.table.schema.get_field_index("kind")
        table = trace.table.set_column(place, "kind", pa.chunked_array([column]))
        return Trace(trace.description, self._with_places(table) if self.moved else table)

    def _with_places(self, table: pa.Table) -> pa.Table:
        """The rows of those who left on a side branch, with the places that count."""
        rows = sorted(self.moved)
        mask = np.zeros(len(table), bool)
        mask[rows] = True
        for part, name in enumerate(("stamp_clock", "stamp_issuer")):
            column = table[name].combine_chunks()
            places = pa.array([self.moved[row][part] for row in rows], column.type)
            changed = pc.replace_with_mask(column, pa.array(mask), places)
            table = table.set_column(table.schema.get_field_index(name), name, pa.chunked_array([changed]))
        return table


def side_branches(trace: Trace) -> SideBranches | None:
    """The side branches of a run; None if it does not promise to discard any."""
    if trace.description.guarantees.partition is not Partition.SIDE_BRANCHES_DISCARDED:
        return None
    return SideBranches(trace)

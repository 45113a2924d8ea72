"""What is void where side branches are discarded, over columns.

Rows that are not on the branch that survives get another kind before any other property is judged: an answer
of which no other is left becomes `unconfirmed`, and all others become `undone`. So rows keep their places.
What a node took back because of a view that was discarded itself is void too.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.core import GroupId, NodeId, Partition
from ordercast.judge.columns.branch import Branch, first_groups
from ordercast.judge.columns.columns import CODE, KINDS, Flags, Ints, null_of
from ordercast.judge.columns.memory import Memory
from ordercast.judge.columns.population import Population
from ordercast.judge.columns.trace import Trace
from ordercast.trace import ANSWERING, CARRYING, READ, UNDOING, Kind


class Notice(NamedTuple):
    """An `undone` row; `misled` if it named a view that was discarded itself."""

    row: int
    node: NodeId
    group: GroupId
    clock: int | None
    misled: bool


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
        rows = np.flatnonzero(trace.is_kind(*CARRYING, *ANSWERING, Kind.CHECKPOINT) & self.placed)
        from_begin = trace.is_kind(Kind.CHECKPOINT)[rows] | trace.labelled(rows, READ)
        issuer = trace.column("stamp_issuer")
        for group, branch in self.branches.items():
            mine = self.firsts[rows] == group
            ours = rows[mine]
            void[ours] = ~branch.holds(self.clock[ours], issuer[ours], from_begin[mine])
            void[branch.discarded()] = True
        for notice in self.notices:
            if notice.misled:
                void[self.taken_back(notice)] = True
        return void

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
        if not void.any():
            return trace
        kind = np.where(void, np.int8(CODE[Kind.UNDONE]), trace.kind).astype(np.int8)
        message = trace.message
        held = np.unique(message[self.answers & ~void])
        open_ = void & self.answers & (message != null_of(message)) & ~np.isin(message, held)
        kind[open_] = CODE[Kind.UNCONFIRMED]
        words = pa.array([str(word) for word in KINDS], pa.string())
        column = pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), words)
        place = trace.table.schema.get_field_index("kind")
        return Trace(trace.description, trace.table.set_column(place, "kind", pa.chunked_array([column])))


def side_branches(trace: Trace) -> SideBranches | None:
    """The side branches of a run; None if it does not promise to discard any."""
    if trace.description.guarantees.partition is not Partition.SIDE_BRANCHES_DISCARDED:
        return None
    return SideBranches(trace)

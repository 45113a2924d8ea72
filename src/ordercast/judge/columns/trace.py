"""The table of a run as arrays, prepared once for all properties.

A row is identified by its place in the table. Rows of one node, and of one host, are in the order in which
they happened. The order of rows of different hosts means nothing, because their clocks need not agree.

*Lives*: a node that recovers without its saved state counts as a new receiver. The lives of a node are
numbered from 0; in most runs there is one.
"""

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import Groups, NodeId, RemoteError
from ordercast.judge.columns.columns import (
    KINDS,
    Flags,
    Ints,
    Lists,
    filled,
    is_kind,
    words_at,
)
from ordercast.judge.columns.members import Members
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.trace import ACTIONS, LOST, PACKETS, Kind, RunDescription

GATED = (*ACTIONS, Kind.CRASH, Kind.RECOVER)
"""The kinds of rows that must name a node of the run."""
COLUMNS = (
    "time_ns",
    "clock_ns",
    "node",
    "kind",
    "message",
    "groups",
    "numbers",
    "submitted_ns",
    "stamp_clock",
    "stamp_issuer",
    "config",
    "members",
    "peer",
    "size",
    "digest",
    "label",
)
"""The columns that the promises of a run are judged on."""
STORED = (*COLUMNS, "run", "step", "position")
"""The columns that a run on disk is judged on: its promises and its record."""


class Trace:
    """One run: its description, and its rows as arrays."""

    def __init__(self, description: RunDescription, table: pa.Table, order: NodeOrder | None = None) -> None:
        """`order` are the rows by node, if they have been sorted already."""
        self.description = description
        self.table = table
        self._columns: dict[str, Ints] = {}
        self.order = order or NodeOrder(table)
        """All rows, sorted by node, stable."""
        self.kind = self.order.kind
        self.node = self.order.node
        self.node_ids = [node.id for node in description.nodes]
        self._screen_groups()
        self._screen_nodes()

    def rows(self, *kinds: Kind) -> Ints:
        """The rows of these kinds."""
        if not any(kind in self._present for kind in kinds):
            return np.empty(0, np.int64)
        return np.flatnonzero(self.is_kind(*kinds))

    @cached_property
    def _present(self) -> frozenset[Kind]:
        """The kinds of which there are rows."""
        return frozenset(kind for kind in KINDS if is_kind(self.kind, kind).any())

    def is_kind(self, *kinds: Kind) -> Flags:
        """For each row, whether it is of one of these kinds."""
        return is_kind(self.kind, *(kind for kind in kinds if kind in self._present))

    def column(self, name: str) -> Ints:
        """A column of integers, null as the smallest number of its type."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = filled(self.table[name])
        return found

    @cached_property
    def time(self) -> Ints:
        """When each row happened."""
        return self.column("time_ns")

    @cached_property
    def message(self) -> Ints:
        """The message of each row."""
        return self.column("message")

    @cached_property
    def groups(self) -> Lists:
        """The groups of each row, as the row has them."""
        return Lists(self.table["groups"])

    @cached_property
    def by_node(self) -> tuple[Ints, Ints]:
        """All rows except packet rows, sorted by node, stable; and where each node begins."""
        return self.order.only(~self.is_kind(*PACKETS))

    def label(self, rows: Ints) -> list[str | None]:
        """The labels of some rows."""
        return words_at(self.table["label"], rows)

    def labelled(self, rows: Ints, word: str) -> Flags:
        """Which of some rows have this label."""
        column = self.table["label"]
        if not any(word in chunk.dictionary.to_pylist() for chunk in column.chunks):
            return np.zeros(len(rows), bool)
        flags: Flags = pc.fill_null(pc.equal(column.take(rows).cast(pa.string()), word), False).to_numpy()
        return flags

    @cached_property
    def lost(self) -> dict[NodeId, Ints]:
        """For each node that recovered without its state, the rows in which it did."""
        rows = self.rows(Kind.RECOVER)
        found: dict[NodeId, list[int]] = {}
        for row, label in zip(rows.tolist(), self.label(rows), strict=True):
            if label == LOST:
                found.setdefault(int(self.node[row]), []).append(row)
        return {node: np.array(rows) for node, rows in found.items()}

    def known(self, groups: Groups) -> Groups:
        """The groups among these that the run has, each once."""
        return tuple(dict.fromkeys(group for group in groups if group in self.description.groups))

    def receivers(self, groups: Groups) -> frozenset[NodeId]:
        """All that ever received one of some groups of the run."""
        return frozenset(node for group in groups for node in self.members.ever[group])

    @cached_property
    def members(self) -> Members:
        """Who receives which group, and when."""
        return Members(self)

    def _screen_groups(self) -> None:
        known = set(self.node_ids)
        for group, members in self.description.groups.items():
            strangers = [node for node in members if node not in known]
            if strangers:
                raise RemoteError(
                    f"run {self.description.run}: group {group} has receiver {strangers[0]},"
                    " which is not a node of the run"
                )

    def _screen_nodes(self) -> None:
        if np.isin(self.order.nodes, self.node_ids).all():
            return
        strange = ~np.isin(self.node, self.node_ids) & self.is_kind(*GATED)
        if strange.any():
            row = int(np.argmax(strange))
            raise RemoteError(
                f"event {row} ({KINDS[self.kind[row]]}) names node {self.node[row]},"
                " which is not in the run's description"
            )

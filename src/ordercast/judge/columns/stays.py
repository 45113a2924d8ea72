"""Stays: a *stay* is a node's time in one view of a group, as a range of its rows."""

from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, NodeId
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.trace import Trace
from ordercast.trace import LEAVING, Kind


class Stay(NamedTuple):
    """A node in one view of a group, from the row that installed it up to, not including, `until`."""

    node: NodeId
    group: GroupId
    view: InstalledView
    until: int
    next: InstalledView | None
    """The view of the group that it installed next, if it kept its state until then and did not leave."""
    whole: bool
    """The node did not crash during the stay."""

    @property
    def excluded(self) -> bool:
        """Whether the view leaves the node out."""
        return self.node not in self.view.members


def _rows_left(trace: Trace) -> dict[tuple[NodeId, GroupId], list[int]]:
    """The rows in which each node left each group."""
    rows = trace.rows(*LEAVING)
    found: dict[tuple[NodeId, GroupId], list[int]] = {}
    for row, groups in zip(rows.tolist(), trace.table["groups"].take(rows).to_pylist(), strict=True):
        for group in groups or ():
            found.setdefault((int(trace.node[row]), group), []).append(row)
    return found


class Stays:
    """All stays of a run."""

    def __init__(self, trace: Trace, views: list[InstalledView], *, until_left: bool = False) -> None:
        """`until_left`: a stay ends also where the node is told that it left the group."""
        self.all: list[Stay] = []
        """Sorted by node and group, in order."""
        installed: dict[tuple[NodeId, GroupId], list[InstalledView]] = {}
        for view in views:
            for group in dict.fromkeys(view.groups):
                installed.setdefault((view.node, group), []).append(view)
        crashes, left = trace.rows(Kind.CRASH), _rows_left(trace) if until_left else {}
        for (node, group), mine in installed.items():
            lost = trace.lost.get(node, np.empty(0, np.int64))
            crashed = crashes[trace.node[crashes] == node]
            for view, following in zip(mine, [*mine[1:], None], strict=True):
                until = len(trace.kind) if following is None else following.row
                ends = [*lost.tolist(), *(left.get((node, group), ()) if node in view.members else ())]
                ended = min((row for row in ends if view.row < row < until), default=None)
                if ended is not None:
                    until, following = ended, None
                whole = not ((crashed > view.row) & (crashed < until)).any()
                self.all.append(Stay(node, group, view, until, following, bool(whole)))

    @cached_property
    def of(self) -> dict[tuple[NodeId, GroupId], list[Stay]]:
        """The stays of a node in views of a group."""
        found: dict[tuple[NodeId, GroupId], list[Stay]] = {}
        for stay in self.all:
            found.setdefault((stay.node, stay.group), []).append(stay)
        return found

    def stay_at(self, node: NodeId, group: GroupId, row: int) -> Stay | None:
        """The stay that a node is in, at one of its rows."""
        stays = self.of.get((node, group), [])
        place = bisect_left(stays, row, key=lambda stay: stay.view.row) - 1
        return stays[place] if place >= 0 and row < stays[place].until else None

    def numbers_at(self, node: NodeId, group: GroupId, rows: Ints) -> Ints:
        """For each of a node's rows, ascending, which of its stays in the group it is in; -1 if none."""
        stays = self.of.get((node, group), [])
        numbers = np.full(len(rows), -1, np.int64)
        for number, stay in enumerate(stays):
            first, last = np.searchsorted(rows, (stay.view.row, stay.until))
            numbers[first:last] = number
        return numbers

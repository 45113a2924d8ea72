"""Changes of issuers: the views that add or remove an issuer."""

from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, Nanos, NodeId
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.trace import Trace
from ordercast.trace import ADDED, REMOVED


class Change(NamedTuple):
    """A view of a group that adds an issuer after a number, or removes it up to one."""

    row: int
    node: NodeId
    time_ns: Nanos
    config: int
    group: GroupId
    issuer: int
    number: int
    clock: int | None
    added: bool


def changes_of(trace: Trace, views: list[InstalledView]) -> list[Change]:
    """The views that add or remove an issuer; other views only list the members."""
    if not views:
        return []
    rows = np.array([view.row for view in views])
    table = trace.table.select(["numbers", "stamp_issuer", "stamp_clock"]).take(rows)
    columns = [column.to_pylist() for column in table.columns]
    found = []
    for view, label, numbers, issuer, clock in zip(views, trace.label(rows), *columns, strict=True):
        if label not in (ADDED, REMOVED) or issuer is None or not numbers or None in numbers:
            continue
        place = (view.row, view.node, view.time_ns, view.config)
        for group, number in zip(view.groups, numbers, strict=False):
            found.append(Change(*place, group, issuer, number, clock, label == ADDED))
    return found

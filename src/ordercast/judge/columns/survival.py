"""Survival: deliveries in a view that the node does not survive bind nobody, unless agreement is uniform.

Such deliveries are left out before integrity's gate. A node survives a view if it goes on to its next one, or
if the view is the newest of its group. A node installs the views of all its groups together. A node that is
told that it left with a view which it does not install was left out of it, whatever view it joins later. So
was one that lost its state.
"""

import numpy as np

from ordercast.core import Agreement, GroupId, NodeId, Order
from ordercast.judge.columns.columns import Flags, Ints
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.trace import Trace
from ordercast.trace import LEAVING


def lasting(trace: Trace, views: list[InstalledView]) -> Ints:
    """The rows of the deliveries that count, sorted by node."""
    rows = trace.order.carried
    promised = trace.description.guarantees
    uniform = promised.uniform or promised.agreement is not Agreement.ALL
    if uniform or not promised.views or promised.order is Order.NONE or not views:
        return rows
    keep: Flags = np.ones(len(rows), bool)
    newest: dict[GroupId, int] = {}
    by_node: dict[NodeId, list[InstalledView]] = {}
    for view in views:
        by_node.setdefault(view.node, []).append(view)
        for group in view.groups:
            newest[group] = max(view.config, newest.get(group, view.config))
    for gone in _exits(trace, by_node):
        by_node[gone.node].append(gone)
    for node, mine in by_node.items():
        mine.sort(key=lambda view: view.row)
        for view, following in zip(mine, [*mine[1:], None], strict=True):
            if not _survives(view, following, max(newest[group] for group in view.groups)):
                until = len(trace.kind) if following is None else following.row
                keep &= ~((trace.node[rows] == node) & (rows > view.row) & (rows < until))
    return np.asarray(rows[keep])


def _exits(trace: Trace, by_node: dict[NodeId, list[InstalledView]]) -> list[InstalledView]:
    """Where nodes were left out without a view that says so, as views without members."""
    found = []
    configs = trace.column("config")
    lost = {row for rows in trace.lost.values() for row in rows.tolist()}
    for row in sorted(lost.union(trace.rows(*LEAVING).tolist())):
        node, config = int(trace.node[row]), int(configs[row])
        before = [view for view in by_node.get(node, ()) if view.row < row]
        if before and (row in lost or config > before[-1].config):
            found.append(InstalledView(row, node, int(trace.time[row]), config, before[-1].groups, ()))
    return found


def _survives(view: InstalledView, following: InstalledView | None, newest: int) -> bool:
    """Whether what a node delivers in a view counts; a view that leaves the node out is judged elsewhere."""
    if view.node not in view.members:
        return True
    if following is None:
        return view.config == newest
    if following.config == view.config:
        return True
    return view.node in following.members and not following.anew

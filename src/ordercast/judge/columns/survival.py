"""Survival: deliveries in a view that the node does not survive bind nobody, unless agreement is uniform.

Such deliveries are left out before integrity's gate. A node survives a view if it goes on to its next one, or
if the view is the newest of its group. A node installs the views of all its groups together.
"""

import numpy as np

from ordercast.core import Agreement, GroupId, NodeId, Order
from ordercast.judge.columns.columns import Flags, Ints
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.trace import Trace


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
    for node, mine in by_node.items():
        for view, following in zip(mine, [*mine[1:], None], strict=True):
            if not _survives(view, following, max(newest[group] for group in view.groups)):
                until = len(trace.kind) if following is None else following.row
                keep &= ~((trace.node[rows] == node) & (rows > view.row) & (rows < until))
    return np.asarray(rows[keep])


def _survives(view: InstalledView, following: InstalledView | None, newest: int) -> bool:
    """Whether what a node delivers in a view counts; a view that leaves the node out is judged elsewhere."""
    if view.node not in view.members:
        return True
    if following is None:
        return view.config == newest
    if following.config == view.config:
        return True
    return view.node in following.members and not following.anew

"""States that replicas of a service took from others; there are few, so they are processed one by one.

A replica does not owe what is ordered up to the place of such a state.
"""

from typing import NamedTuple

from ordercast.core import GroupId, Nanos, NodeId
from ordercast.judge.columns.columns import null_of
from ordercast.judge.columns.trace import Trace
from ordercast.trace import RESTORED, Kind


class RestoredState(NamedTuple):
    """A state that a node took over: the row, and the place of the state in the order of the group."""

    row: int
    node: NodeId
    time_ns: Nanos
    group: GroupId
    clock: int
    issuer: int


def restored_states(trace: Trace) -> list[RestoredState]:
    """All states that were taken over, in the order of the rows."""
    rows = trace.rows(Kind.CHECKPOINT)
    if not len(rows):
        return []
    rows = rows[trace.labelled(rows, RESTORED)]
    node, clock, issuer = trace.node, trace.column("stamp_clock"), trace.column("stamp_issuer")
    return [
        RestoredState(row, int(node[row]), int(trace.time[row]), group, int(clock[row]), int(issuer[row]))
        for row in rows.tolist()
        if clock[row] != null_of(clock) and issuer[row] != null_of(issuer)
        for group in trace.table["groups"][row].as_py() or ()
    ]


def restored_by_node(trace: Trace) -> dict[NodeId, list[RestoredState]]:
    """The states that each node took over."""
    found: dict[NodeId, list[RestoredState]] = {}
    for state in restored_states(trace):
        found.setdefault(state.node, []).append(state)
    return found

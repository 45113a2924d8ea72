"""Joining: a node that asks to join or to leave a group is told that it has, unless it crashes before."""

from ordercast.core import GroupId, NodeId, format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS
from ordercast.judge.columns.findings import Findings
from ordercast.trace import CHANGING, ENTERING, LEAVING, Kind

_ENDS = {**dict.fromkeys(ENTERING, Kind.JOIN), **dict.fromkeys(LEAVING, Kind.LEAVE)}
"""Which request each kind of notice answers."""


def joining(case: Case, findings: Findings) -> None:
    """Find requests that never took effect. There are few such rows, so they are processed one by one."""
    trace = case.trace
    waiting: dict[tuple[NodeId, GroupId], tuple[int, Kind]] = {}
    rows = trace.rows(Kind.JOIN, Kind.LEAVE, *CHANGING, Kind.CRASH)
    lists = trace.table["groups"].take(rows).to_pylist()
    for row, groups in zip(rows.tolist(), lists, strict=True):
        node, kind = int(trace.node[row]), KINDS[trace.kind[row]]
        if kind is Kind.CRASH:
            waiting = {key: asked for key, asked in waiting.items() if key[0] != node}
            continue
        for group in groups or ():
            if kind not in _ENDS:
                waiting[node, group] = (row, kind)
            elif waiting.get((node, group), (0, None))[1] is _ENDS[kind]:
                del waiting[node, group]
    for (node, group), (row, kind) in waiting.items():
        time_ns = int(trace.time[row])
        detail = (
            f"node {node} asked at {format_ns(time_ns)} to {kind} group {group}, and did not crash"
            " afterwards, but this never took effect"
        )
        findings.add((node,), (), (time_ns,), detail)

"""Lifecycle: a crashed node does nothing until it recovers.

Only nodes with a crash or a recovery are checked, between these rows. Rows of all kinds count.
"""

import numpy as np

from ordercast.core import NodeId, format_ns, message_name
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace
from ordercast.trace import Kind


def lifecycle(case: Case, findings: Findings) -> None:
    """Find rows of nodes that are down, crashes of nodes that are down, and recoveries without a crash."""
    trace = case.trace
    rows = trace.rows(Kind.CRASH, Kind.RECOVER)
    turns: dict[NodeId, list[int]] = {}
    for row in rows.tolist():
        turns.setdefault(int(trace.node[row]), []).append(row)
    broken: list[tuple[int, int, str]] = []
    acting = ~trace.is_kind(Kind.CRASH, Kind.RECOVER) if turns else None
    for node, places in turns.items():
        acts = np.flatnonzero(acting & (trace.node == node))
        down = -1
        for row, until in zip(places, [*places[1:], len(trace.kind)], strict=True):
            if KINDS[trace.kind[row]] is Kind.RECOVER:
                if down < 0:
                    broken.append((row, -1, "recovers without a crash"))
                down = -1
                continue
            if down >= 0:
                broken.append((row, down, "crashes while it is down"))
            down = row
            first, last = np.searchsorted(acts, (row, until))
            broken += [(act, row, "") for act in acts[first:last].tolist()]
    broken.sort()
    for row, crash, what in findings.wanted(broken):
        _tell(trace, findings, row, crash, what)


def _tell(trace: Trace, findings: Findings, row: int, crash: int, what: str) -> None:
    node, message = int(trace.node[row]), int(trace.message[row])
    told = () if message == null_of(trace.message) else (message,)
    what = what or " ".join(
        ["has a row", KINDS[trace.kind[row]], *map(message_name, told), "while it is down"]
    )
    times = [int(trace.time[place]) for place in (crash, row) if place >= 0]
    since = f", since {format_ns(times[0])}" if crash >= 0 else ""
    detail = f"node {node} {what}{since}, at {format_ns(times[-1])}"
    findings.add((node,), told, times, detail, row)

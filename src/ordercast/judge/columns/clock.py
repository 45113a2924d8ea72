"""Clocks: a node's clock never runs backwards, not even over restarts; nor does the time of its rows.

Packet rows are ignored. Each row is compared with the one before it of its node.
"""

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS, Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace


def clock(case: Case, findings: Findings) -> None:
    """Find rows whose time or clock is less than that of their node's row before."""
    trace = case.trace
    rows, starts = trace.by_node
    same = np.ones(max(0, len(rows) - 1), bool)
    changes = starts[1:-1] - 1
    same[changes[(changes >= 0) & (changes < len(same))]] = False
    broken = []
    for what, values in (("time", trace.time), ("clock", trace.column("clock_ns"))):
        if what == "time" and (values[1:] >= values[:-1]).all():
            continue  # in order altogether, as a simulated run is, so at each node
        ordered = values[rows]
        back = np.flatnonzero((ordered[1:] < ordered[:-1]) & same)
        broken += [(int(rows[place + 1]), int(rows[place]), what, values) for place in back.tolist()]
    broken.sort(key=lambda found: found[0])
    for row, last, what, values in findings.wanted(broken):
        _tell(trace, findings, row, what, values, last)


def _tell(trace: Trace, findings: Findings, row: int, what: str, values: Ints, last: int) -> None:
    node, message = int(trace.node[row]), int(trace.message[row])
    before, after = int(values[last]), int(values[row])
    findings.add(
        (node,),
        () if message == null_of(trace.message) else (message,),
        (before, after),
        f"the {what} of node {node} ran back from {format_ns(before)} to"
        f" {format_ns(after)} ({format_ns(before - after)}) at its event {KINDS[trace.kind[row]]}",
        row,
    )

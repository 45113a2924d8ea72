"""Digests: every submission and every delivery of a message has one."""

import numpy as np

from ordercast.core import message_name
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.trace import CARRYING, Kind


def digests(case: Case, findings: Findings) -> None:
    """Find rows of messages without a digest."""
    trace = case.trace
    if not trace.table["digest"].null_count:
        return
    values = trace.column("digest")
    bare = trace.is_kind(Kind.SUBMIT, *CARRYING) & (values == null_of(values))
    rows = np.flatnonzero(bare & (trace.message != null_of(trace.message)))
    for row in findings.wanted(rows.tolist()):
        node, message = int(trace.node[row]), int(trace.message[row])
        what = f"has a row {KINDS[trace.kind[row]]} of {message_name(message)} without a digest"
        findings.add((node,), (message,), (int(trace.time[row]),), f"node {node} {what}", row)

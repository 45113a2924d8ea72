"""Reasons of drops: a drop notification is about a packet that was sent and had not come.

What became of the packet is the label of the notification's row; rows without such a label are not judged.
"""

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.trace import UNFOUNDED


def drop_reason(case: Case, findings: Findings) -> None:
    """Find notifications of packets that had come, or that nobody had sent."""
    drops = case.admitted.drops
    labels = case.trace.label(np.array([drop.row for drop in drops], np.int64))
    wrong = [pair for pair in zip(drops, labels, strict=True) if pair[1] in UNFOUNDED]
    for drop, label in findings.wanted(wrong):
        slot = f"number {drop.number} of issuer {drop.issuer} in group {drop.group}"
        detail = f"node {drop.node} was notified of the drop of {slot} at {format_ns(drop.time_ns)}"
        findings.add((drop.node,), (), (drop.time_ns,), f"{detail}; the packet was {label}", drop.row)

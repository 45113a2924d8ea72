"""Answers to calls: each fits its call, comes once, and names the place where its call was delivered."""

from collections.abc import Iterable

import numpy as np

from ordercast.core import format_ns, message_name
from ordercast.judge.columns.calls import Calls
from ordercast.judge.columns.columns import null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace


def judge_replies(trace: Trace, calls: Calls, findings: Findings) -> None:
    """Find answers that fit no call, and those that differ from the first one."""
    fits = calls.fits
    for row in findings.wanted(calls.reply[~fits].tolist()):
        tell(trace, findings, row, "which does not answer a call of this client")
    replies, first = calls.reply[fits], calls.first_reply[calls.of[fits]]
    differs = np.zeros(len(replies), bool)
    for name in ("stamp_clock", "stamp_issuer", "size", "digest"):
        differs |= trace.column(name)[replies] != trace.column(name)[first]
    labels = zip(trace.label(replies), trace.label(first), strict=True)
    differs |= np.array([one != other for one, other in labels], bool)
    for row in findings.wanted(replies[differs].tolist()):
        tell(trace, findings, row, "and had got another answer before")


def judge_places(trace: Trace, calls: Calls, findings: Findings) -> None:
    """Find answers that name another place than the delivery of their operation."""
    number = np.flatnonzero((calls.first_reply >= 0) & ~calls.reads)
    reply = calls.first_reply[number]
    delivery = calls.delivery_for(number, reply)
    clock, issuer, named = calls.place(reply)
    delivered = delivery >= 0
    there = calls.place(np.maximum(delivery, 0))
    differs = delivered & ((clock != there[0]) | (issuer != there[1]))
    for row, other in findings.wanted(list(zip(reply[differs], delivery[differs], strict=True))):
        tell(trace, findings, int(row), "which was delivered at another place", [int(trace.node[other])])
    for row in findings.wanted(reply[~named & ~differs].tolist()):
        tell(trace, findings, row, "without a place in the order")
    if trace.description.complete:
        for row in findings.wanted(reply[named & ~delivered].tolist()):
            tell(trace, findings, row, "which no replica delivered")


def tell(trace: Trace, findings: Findings, row: int, what: str, others: Iterable[int] = ()) -> None:
    """Report an answer."""
    node, message, peer = int(trace.node[row]), int(trace.message[row]), int(trace.column("peer")[row])
    told = () if message == null_of(trace.message) else (message,)
    peers = [] if peer == null_of(trace.column("peer")) else [peer]
    nodes = dict.fromkeys((node, *peers, *others))
    named = message_name(message) if told else "nothing that has a name"
    time_ns = int(trace.time[row])
    detail = f"node {node} got the answer to {named} at {format_ns(time_ns)}, {what}"
    findings.add(nodes, told, (time_ns,), detail)

"""Linearizable: the places of a service's operations explain the times of all calls and answers.

All operations of a group are sorted by their places, and reads behind the operations of the place that their
answers name. The latest invocation up to each one is a running maximum: no answer may be earlier than that.
The maximum is taken by each clock, because times of different clocks are not compared.
"""

from collections.abc import Iterable

import numpy as np

from ordercast.core import GroupId, format_ns, message_name
from ordercast.judge.columns.answered import judge_places, judge_replies
from ordercast.judge.columns.calls import NOWHERE, Calls
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import message_at


def linearizable(case: Case, findings: Findings) -> None:
    """Judge each answer by itself, then the order of all operations."""
    calls, trace = case.calls, case.trace
    if not len(calls.reply):
        return
    judge_replies(trace, calls, findings)
    judge_places(trace, calls, findings)
    for group in case.description.groups:
        _judge_order(trace, calls, group, findings)


def _judge_order(trace: Trace, calls: Calls, group: GroupId, findings: Findings) -> None:
    """Find operations that were answered before one with an earlier place was invoked."""
    number, clock, issuer = _placed(calls, group)
    reads, asked = calls.reads[number], calls.row[number]
    invoked = trace.time[asked]
    turn = np.where(reads, invoked, calls.message[number])
    order = np.lexsort((turn, reads, issuer, clock))
    number, asked, invoked = number[order], asked[order], invoked[order]
    reply = calls.first_reply[number]
    answered = np.where(reply >= 0, trace.time[reply], np.iinfo(np.int64).max)
    clock_of = trace.description.clocks()
    clocks = np.array([clock_of[node] for node in trace.node[asked].tolist()], np.int64)
    for one in np.unique(clocks).tolist():
        mine = np.flatnonzero(clocks == one)
        latest = np.maximum.accumulate(invoked[mine])
        wrong = np.flatnonzero(answered[mine[1:]] < latest[:-1]) + 1
        for place in findings.wanted(wrong.tolist()):
            before = int(np.argmax(invoked[mine[:place]]))
            _tell_order(trace, findings, (int(reply[mine[place]]), *asked[mine[[place, before]]].tolist()))


def _placed(calls: Calls, group: GroupId) -> tuple[Ints, Ints, Ints]:
    """The calls of a group that have a place, and the places."""
    number = calls.in_group(group)
    delivery, reply, reads = calls.delivery[number], calls.first_reply[number], calls.reads[number]
    source = np.where(reads | (delivery < 0), reply, delivery)
    clock, issuer, named = calls.place(np.maximum(source, 0))
    first = reads & ~named
    clock, issuer = np.where(first, NOWHERE, clock), np.where(first, 0, issuer)
    has = (source >= 0) & (named | reads)
    return number[has], clock[has], issuer[has]


def _tell_order(trace: Trace, findings: Findings, rows: Iterable[int]) -> None:
    reply, one, other = rows
    nodes = [int(trace.node[row]) for row in (one, other)]
    messages = [int(trace.message[row]) for row in (one, other)]
    answered, invoked = int(trace.time[reply]), int(trace.time[other])
    findings.add(
        nodes,
        messages,
        (answered, invoked),
        f"node {nodes[0]} had the answer to {message_at(messages[0], int(trace.time[one]))} at"
        f" {format_ns(answered)}, before node {nodes[1]} called {message_name(messages[1])} at"
        f" {format_ns(invoked)}; but the place of the first is later",
    )

"""Replica state: checkpoints of a group at an equal place have equal sizes and digests.

A replica that took over a state delivers nothing for which the state stands.
"""

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Flags, Ints, factorize, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.restored import RestoredState
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import message_at
from ordercast.trace import Kind


def replica_state(case: Case, findings: Findings) -> None:
    """Compare the checkpoints of each place, and look behind states that were taken over."""
    trace = case.trace
    if not len(trace.rows(Kind.CHECKPOINT)):
        return
    rows = _placed(trace)
    first = _firsts(trace, rows)
    differs = np.zeros(len(rows), bool)
    for name in ("size", "digest"):
        differs |= trace.column(name)[rows] != trace.column(name)[first]
    for row, other in findings.wanted(np.stack((rows, first), 1)[differs].tolist()):
        _tell(trace, findings, row, other)
    covered = np.unique(np.concatenate([np.empty(0, np.int64), *(_covered(case, s) for s in case.restored)]))
    for row in findings.wanted(covered.tolist()):
        node, message, time_ns = int(trace.node[row]), int(trace.message[row]), int(trace.time[row])
        detail = f"node {node} delivered {message_at(message, time_ns)}, for which a state stands that it has"
        findings.add((node,), (message,), (time_ns,), detail, row)


def _placed(trace: Trace) -> Ints:
    """The checkpoints that have a group, a place and a digest."""
    rows = trace.rows(Kind.CHECKPOINT)
    for name in ("stamp_clock", "stamp_issuer", "digest"):
        rows = rows[trace.column(name)[rows] != null_of(trace.column(name))]
    placed: Ints = rows[trace.groups.codes[rows] >= 0]
    return placed


def _firsts(trace: Trace, rows: Ints) -> Ints:
    """For each checkpoint, the first one of the same group and place."""
    keys = np.zeros(len(rows), np.int64)
    for column in (trace.groups.codes, trace.column("stamp_clock"), trace.column("stamp_issuer")):
        distinct, places = factorize(column[rows])
        _, keys = factorize(keys * len(distinct) + places)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    found: Ints = rows[first[places]]
    return found


def _covered(case: Case, state: RestoredState) -> Ints:
    """The deliveries of a replica after it took over a state that stands for them, in the same life."""
    account, trace = case.account, case.trace
    until = [row for row in trace.lost.get(state.node, []) if row > state.row]
    mine: Flags = (account.node == state.node) & (account.row > state.row)
    mine &= account.row < min(until, default=len(trace.kind))
    mine &= account.going_to(state.group)[account.to]
    rows = account.row[mine if account.ordered is None else mine & account.ordered]
    clock, issuer = trace.column("stamp_clock")[rows], trace.column("stamp_issuer")[rows]
    known = (clock != null_of(clock)) & (issuer != null_of(issuer))
    below = (clock < state.clock) | ((clock == state.clock) & (issuer <= state.issuer))
    found: Ints = rows[known & below]
    return found


def _tell(trace: Trace, findings: Findings, row: int, other: int) -> None:
    place = (int(trace.column("stamp_clock")[row]), int(trace.column("stamp_issuer")[row]))
    nodes, times = ([int(column[one]) for one in (other, row)] for column in (trace.node, trace.time))
    sizes, digests = ([int(trace.column(name)[one]) for one in (other, row)] for name in ("size", "digest"))
    findings.add(
        nodes,
        (),
        times,
        f"at the place {place}, node {nodes[0]} had a state of {sizes[0]} bytes with digest {digests[0]} at"
        f" {format_ns(times[0])}, and node {nodes[1]} one of {sizes[1]} bytes with digest {digests[1]} at"
        f" {format_ns(times[1])}",
        row,
    )

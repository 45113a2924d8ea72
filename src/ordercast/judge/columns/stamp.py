"""Stamps: all receivers that deliver a message in order do so with the same stamp, or all without a stamp.

Where each group has an order of its own, the receivers of each group are compared.
"""

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at


def stamp(case: Case, findings: Findings) -> None:
    """Compare each delivery's stamp with that of one delivery of the same message."""
    stamped = case.stamped
    if not stamped.columns:
        return
    if not case.calls.separate:
        _compare(case, findings, np.flatnonzero(stamped.differs), stamped.sample)
        return
    for members in case.description.groups.values():
        mine = np.isin(case.trace.node[stamped.rows], members)
        sample = stamped.sample_of(mine)
        _compare(case, findings, np.flatnonzero(mine & stamped.differs_from(sample)), sample)


def _compare(case: Case, findings: Findings, differing: Ints, sample: Ints) -> None:
    stamped = case.stamped
    for found in findings.wanted(differing.tolist()):
        first = int(sample[stamped.places[found]])
        _tell(case.account, findings, stamped.columns, int(stamped.rows[found]), first)


def _tell(account: Account, findings: Findings, columns: list[Ints], row: int, first: int) -> None:
    trace = account.trace
    nodes = (int(trace.node[first]), int(trace.node[row]))
    times = (int(trace.time[first]), int(trace.time[row]))
    message = int(trace.message[row])
    findings.add(
        nodes,
        (message,),
        times,
        f"node {nodes[0]} delivered {message_at(message, times[0])} with stamp {_stamp(columns, first)},"
        f" node {nodes[1]} at {format_ns(times[1])} with {_stamp(columns, row)}",
        row,
    )


def _stamp(columns: list[Ints], row: int) -> str:
    values = [int(column[row]) for column in columns]
    return f"({', '.join('-' if v == null_of(c) else str(v) for v, c in zip(values, columns, strict=True))})"

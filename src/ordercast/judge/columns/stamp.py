"""Stamps: all receivers that deliver a message in order do so with the same stamp, or all without a stamp."""

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, list_columns, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at


def stamp(case: Case, findings: Findings) -> None:
    """Compare each delivery's stamp with that of one delivery of the same message."""
    account = case.account
    table = account.trace.table
    columns = [
        account.trace.column(n) for n in ("stamp_clock", "stamp_issuer") if table[n].null_count < len(table)
    ]
    if table["numbers"].null_count < len(table):
        columns += list_columns(table["numbers"])
    if not columns:
        return
    places, deliveries = account.place, np.arange(len(account.place))
    if account.ordered is not None:
        deliveries = np.flatnonzero(account.ordered)
        places = places[deliveries]
    rows = account.row[deliveries]
    sample = np.full(len(account.messages), -1, np.int64)
    sample[places[::-1]] = rows[::-1]
    differs = np.zeros(len(rows), bool)
    for column in columns:
        differs |= column[rows] != column[np.maximum(sample, 0)][places]
    for found in findings.wanted(np.flatnonzero(differs).tolist()):
        _tell(account, findings, columns, int(rows[found]), int(sample[places[found]]))


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

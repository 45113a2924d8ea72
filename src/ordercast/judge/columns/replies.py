"""Answered: a client that stays gets an answer to each operation, or is told that its outcome is unknown."""

import numpy as np

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at
from ordercast.trace import ANSWERING, RETURNING


def replies(case: Case, findings: Findings) -> None:
    """Find calls without an outcome, of clients that did not crash afterwards."""
    calls, trace = case.calls, case.trace
    outcomes = trace.message[trace.rows(*ANSWERING, *RETURNING)]
    row = calls.row[~np.isin(calls.message, outcomes)]
    for node, crashes in case.ledger.population.crashes.items():
        row = row[(trace.node[row] != node) | (row > crashes[-1])]
    for one in findings.wanted(row.tolist()):
        node, message, time_ns = int(trace.node[one]), int(trace.message[one]), int(trace.time[one])
        findings.add(
            (node,),
            (message,),
            (time_ns,),
            f"node {node} called {message_at(message, time_ns)} and did not crash afterwards; it never got an"
            " answer, and was not told that the outcome is unknown",
        )

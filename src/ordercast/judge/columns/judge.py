"""The judge over columns: a run's table in, the verdict out.

The properties are those of the registry (`ordercast.judge.registry`), each implemented over columns instead
of events. Each first tries to prove with a few passes over arrays that nothing is wrong; for most runs this
is enough. What the proof does not cover is judged in depth.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import pyarrow as pa

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.holes import holes
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.columns.side_branches import side_branches
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import Replay, Verdict, in_order
from ordercast.trace import RunDescription

ColumnJudge: TypeAlias = Callable[[Case, Findings], None]
"""Judges one property of a case, and records its findings."""


def judge_columns(
    description: RunDescription,
    table: pa.Table,
    judges: Iterable[tuple[str, ColumnJudge]],
    order: NodeOrder | None = None,
    replay: Replay | None = None,
) -> Verdict:
    """Judge a whole run by these properties; return the findings, and how many more there were.

    `order` are the rows of the table by node, if they have been sorted already.
    """
    trace = Trace(description, table, order)
    side = side_branches(trace)
    case = Case(trace if side is None else side.surviving(), replay, side)
    told = []
    for name, judge in judges:
        told.append(Findings(name))
        judge(case, told[-1])
    violations = in_order(violation for findings in told for violation in findings.violations)
    suppressed = {findings.name: findings.suppressed for findings in told if findings.suppressed}
    return Verdict(violations, suppressed, holes(case.ledger) if description.counts_holes else None)

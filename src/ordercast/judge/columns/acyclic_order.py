"""Acyclic order: the orders of all groups together have no cycle.

Judged only where every group is in order by itself: otherwise it depends on which of the contradicting
deliveries are believed.
"""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.line import contradictions


def acyclic_order(case: Case, findings: Findings) -> None:
    """Find cycles over several groups."""
    if not case.disordered and not case.line.straight:
        contradictions(case.account, findings, case.line)

"""Acyclic order: the orders of all groups together have no cycle.

Judged only if each group alone is in order: otherwise it is not clear which of the contradicting deliveries
are right.
"""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.line import contradictions


def acyclic_order(case: Case, findings: Findings) -> None:
    """Find cycles over several groups."""
    if not case.disordered and not case.line.straight:
        contradictions(case.account, findings, case.line)

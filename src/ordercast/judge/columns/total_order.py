"""Total order: the receivers of a group deliver its messages in one common order.

Each group has its own line (`line.py`). If one line over all groups is straight, so are the lines of the
groups.
"""

from ordercast.core import Order
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.line import Line, contradictions, sequences


def total_order(case: Case, findings: Findings) -> None:
    """Find the groups whose receivers contradict each other."""
    account, groups = case.account, case.trace.members.ever
    # Order across groups needs the line over all groups anyway.
    across = len(groups) == 1 or case.description.guarantees.order is Order.ACROSS
    if across and case.line.straight:
        return
    for group, members in groups.items():
        chains = sequences(account, account.going_to(group), members, (group,))
        line = Line(chains, len(account.messages))
        if not line.straight:
            case.disordered |= contradictions(account, findings, line)

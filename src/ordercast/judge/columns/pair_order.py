"""Order of pairs: who receives the same two groups delivers the messages of both in one common order.

Each two groups with a common receiver have their own line (`line.py`). Judged only if each group alone is in
order: otherwise it is not clear which of the contradicting deliveries are right.
"""

from itertools import combinations

from ordercast.core import GroupId, NodeId
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.line import Line, contradictions, sequences


def pair_order(case: Case, findings: Findings) -> None:
    """Find the pairs of groups whose common receivers contradict each other."""
    if case.disordered:
        return
    account = case.account
    for pair, common in _overlaps(case).items():
        wanted = account.going_to(pair[0]) | account.going_to(pair[1])
        line = Line(sequences(account, wanted, common, pair), len(account.messages))
        if not line.straight:
            contradictions(account, findings, line)


def _overlaps(case: Case) -> dict[tuple[GroupId, GroupId], list[NodeId]]:
    """For each two groups that have had common receivers, these receivers."""
    groups_of: dict[NodeId, list[GroupId]] = {}
    for group, nodes in case.trace.members.ever.items():
        for node in nodes:
            groups_of.setdefault(node, []).append(group)
    found: dict[tuple[GroupId, GroupId], list[NodeId]] = {}
    for node, groups in groups_of.items():
        for one, other in combinations(groups, 2):
            found.setdefault((one, other), []).append(node)
    return found

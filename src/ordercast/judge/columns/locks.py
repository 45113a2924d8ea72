"""Locks: at the end of a complete run, no replica that is up holds locks for a transaction."""

from ordercast.core import GroupId, NodeId, format_ns, message_name
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.lock_spans import LockRow, locks_of, unmatched
from ordercast.judge.columns.population import Population


def locks(case: Case, findings: Findings) -> None:
    """Look for what was never released, since each replica began or took over a state."""
    trace, population = case.trace, Population(case.trace)
    for (group, message), rows in locks_of(trace).items():
        for node in dict.fromkeys(one.node for one in rows):
            if population.standing(node) == "down":
                continue
            since = _begun(case, node, group)
            mine = [one for one in rows if one.node == node and one.row > since]
            for left in unmatched(mine)[1][:1]:
                _tell(case, findings, group, message, left)


def _begun(case: Case, node: NodeId, group: GroupId) -> int:
    """The last row in which a replica began anew; -1 if it never did."""
    states = [state.row for state in case.restored if (state.node, state.group) == (node, group)]
    return max([*states, *case.trace.lost.get(node, ())], default=-1)


def _tell(case: Case, findings: Findings, group: GroupId, message: int, left: LockRow) -> None:
    time_ns = int(case.trace.time[left.row])
    findings.add(
        (left.node,),
        (message,),
        (time_ns,),
        f"{message_name(message)} has locks of shard {group} at node {left.node} since {format_ns(time_ns)},"
        " which were never released",
    )

"""Drop notifications and views. There are few such rows, so they are processed one by one.

They must pass integrity's gate too. A notification for a group that the node does not receive, and a view of
an unknown group or with unknown members, are findings of integrity, and no other property sees them.
"""

from typing import NamedTuple

from ordercast.core import ANEW, GroupId, Groups, Nanos, NodeId, RemoteError, format_ns
from ordercast.judge.columns.columns import KINDS, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import listed
from ordercast.trace import ADDED, CHANGING, REMOVED, Kind


class Drop(NamedTuple):
    """A notification that a number of an issuer will not be delivered to a group here."""

    row: int
    node: NodeId
    time_ns: Nanos
    issuer: int
    group: GroupId
    number: int


class InstalledView(NamedTuple):
    """A view of some groups, installed by a node."""

    row: int
    node: NodeId
    time_ns: Nanos
    config: int
    groups: Groups
    members: tuple[NodeId, ...]
    anew: bool = False
    """The node starts anew with it."""
    state: int | None = None
    """In which state the group is when the view begins, if the node says so."""


def drops_of(trace: Trace, findings: Findings) -> list[Drop]:
    """The notifications of a run."""
    rows = trace.rows(Kind.DROP)
    if not len(rows):
        return []
    table = trace.table.select(["groups", "numbers"]).take(rows)
    issuers = trace.column("stamp_issuer")[rows].tolist()
    null = null_of(trace.column("stamp_issuer"))
    found = []
    columns = [column.to_pylist() for column in table.columns]
    for row, groups, numbers, issuer in zip(rows.tolist(), *columns, issuers, strict=True):
        groups, numbers = groups or [], numbers or []
        if len(groups) != 1 or len(numbers) != 1 or None in (*groups, *numbers) or issuer == null:
            raise RemoteError(f"event {row}: a notification must have one group, one number and an issuer")
        node, time_ns = int(trace.node[row]), int(trace.time[row])
        if node in trace.receivers(trace.known(tuple(groups))):
            found.append(Drop(row, node, time_ns, issuer, groups[0], numbers[0]))
        else:
            detail = f"node {node} was notified at {format_ns(time_ns)} of a drop in group {groups[0]}"
            findings.add((node,), (), (time_ns,), f"{detail}, which the node does not receive", row)
    return found


def views_of(trace: Trace, findings: Findings) -> list[InstalledView]:
    """The views of a run."""
    rows = trace.rows(Kind.VIEW)
    if not len(rows):
        return []
    table = trace.table.select(["groups", "config", "members", "stamp_clock"]).take(rows)
    nodes, labels = frozenset(trace.node_ids), trace.label(rows)
    found = []
    columns = [column.to_pylist() for column in table.columns]
    for row, label, groups, config, members, clock in zip(rows.tolist(), labels, *columns, strict=True):
        if not groups or config is None or members is None:
            raise RemoteError(f"event {row}: a view must have a group, a configuration and members")
        node, time_ns = int(trace.node[row]), int(trace.time[row])
        state = None if label in (ADDED, REMOVED) else clock
        view = InstalledView(row, node, time_ns, config, tuple(groups), tuple(members), label == ANEW, state)
        strangers = [member for member in members if member not in nodes]
        if not strangers and trace.known(view.groups) == view.groups:
            found.append(view)
            continue
        what = f"members that the run does not have: {listed(strangers)}" if strangers else "unknown groups"
        detail = f"node {node} installed view {config} at {format_ns(time_ns)} with {what}"
        findings.add((node,), (), (time_ns,), detail, row)
    return found


def judge_changes(trace: Trace, findings: Findings) -> None:
    """Report nodes that joined or left a group that is unknown or fixed."""
    rows = trace.rows(*CHANGING)
    for row, groups in zip(rows.tolist(), trace.table["groups"].take(rows).to_pylist(), strict=True):
        known = trace.known(tuple(groups or ()))
        if trace.members.changing and known and list(known) == groups:
            continue
        node, time_ns, what = int(trace.node[row]), int(trace.time[row]), KINDS[trace.kind[row]]
        why = "the groups are fixed" if known else f"the run has groups {listed(trace.description.groups)}"
        detail = f"node {node} {what} groups {listed(groups or ())} at {format_ns(time_ns)}, but {why}"
        findings.add((node,), (), (time_ns,), detail, row)

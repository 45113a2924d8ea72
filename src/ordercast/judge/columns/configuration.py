"""Configurations: what is delivered in a configuration comes after the view that begins it.

The first configuration has number 0 and no view. Rows that name another one are few kinds: they are compared
by node, life, configuration and groups, and only the first row of each kind can be too early alone.
"""

import numpy as np
import pyarrow.compute as pc

from ordercast.core import GroupId, Groups, NodeId, format_ns, message_name
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS, Flags, Ints, factorize, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace

Installed = dict[tuple[NodeId, int, GroupId, int], int]
"""The first row in which a node installed, in one life, a group's configuration."""


def configuration(case: Case, findings: Findings) -> None:
    """Find deliveries and notifications in a configuration that their node had not installed."""
    trace = case.trace
    ends = pc.min_max(trace.table["config"]).as_py()
    if not ends["min"] and not ends["max"]:
        return
    account, drops = case.account, case.admitted.drops
    rows = np.concatenate([account.row, np.array([drop.row for drop in drops], np.int64)])
    groups: list[Groups] = list(dict.fromkeys([*account.destinations, *((drop.group,) for drop in drops)]))
    codes = {known: code for code, known in enumerate(groups)}
    to = np.concatenate([account.to, np.array([codes[drop.group,] for drop in drops], account.to.dtype)])
    config = trace.column("config")[rows]
    named = (config != 0) & (config != null_of(config))
    early = _early(case, rows[named], to[named], config[named], groups)
    for row in findings.wanted(np.sort(early).tolist()):
        _tell(trace, findings, row)


def _early(case: Case, rows: Ints, to: Ints, config: Ints, groups: list[Groups]) -> Ints:
    """The rows that come before their node installed their configuration, or without that."""
    trace = case.trace
    nodes, lives = trace.node[rows], _lives(trace, rows)
    installed = _installed(case)
    kinds = np.zeros(len(rows), np.int64)
    for column in (nodes, lives, config, to):
        keys, places = factorize(column)
        _, kinds = factorize(kinds * max(1, len(keys)) + places)
    begin = np.full(int(kinds.max(initial=-1)) + 1, len(trace.kind), np.int64)
    _, samples = np.unique(kinds, return_index=True)
    for kind, at in enumerate(samples.tolist()):
        place = (int(nodes[at]), int(lives[at]))
        found = [installed.get((*place, group, int(config[at]))) for group in groups[to[at]]]
        begin[kind] = min((row for row in found if row is not None), default=len(trace.kind))
    early: Ints = rows[(rows < begin[kinds]) & ~_resuming(case, nodes, rows)]
    return early


def _resuming(case: Case, nodes: Ints, rows: Ints) -> Flags:
    """Which rows come before the first view of a node that began the run with state from an earlier run."""
    flags = np.zeros(len(rows), bool)
    for node in case.description.resumed:
        views = [view.row for view in case.admitted.views if view.node == node]
        first = min([*views, *case.trace.lost.get(node, ())], default=len(case.trace.kind))
        flags |= (nodes == node) & (rows < first)
    return flags


def _installed(case: Case) -> Installed:
    found: Installed = {}
    for view in case.admitted.views:
        life = int(_lives(case.trace, np.array([view.row]))[0])
        for group in view.groups:
            found.setdefault((view.node, life, group, view.config), view.row)
    return found


def _lives(trace: Trace, rows: Ints) -> Ints:
    """In which life of its node each row is."""
    lives = np.zeros(len(rows), np.int64)
    for node, lost in trace.lost.items():
        mine = trace.node[rows] == node
        lives[mine] = np.searchsorted(lost, rows[mine])
    return lives


def _tell(trace: Trace, findings: Findings, row: int) -> None:
    node, message, time_ns = int(trace.node[row]), int(trace.message[row]), int(trace.time[row])
    messages = () if message == null_of(trace.message) else (message,)
    what = " ".join([KINDS[trace.kind[row]], *map(message_name, messages)])
    config = int(trace.column("config")[row])
    detail = f"node {node} has a row {what} in configuration {config} at {format_ns(time_ns)}"
    findings.add((node,), messages, (time_ns,), f"{detail}, which it had not installed", row)

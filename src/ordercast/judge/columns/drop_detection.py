"""Drop detection at each receiver (Hydra sections 4.1, 4.3.2 and 4.4).

A *lane* has the numbers of one issuer for one group at one receiver; `lane.py` has its rules. If the numbers
of a lane come in order, their differences prove it; only other lanes are checked number by number. Also, a
configuration that adds or removes an issuer must be the same at every node.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, NodeId, format_ns, message_name
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.changes import Change
from ordercast.judge.columns.columns import Flags, Ints, by_key, factorize, list_columns, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.lane import Lane, faults, regular
from ordercast.judge.columns.notices import Drop
from ordercast.trace import Kind


class Came(NamedTuple):
    """The numbers that came, as columns; a lane is (node, life, issuer, group)."""

    node: Ints
    life: Ints
    issuer: Ints
    group: Ints
    number: Ints
    row: Ints
    dropped: Flags


def drop_detection(case: Case, findings: Findings) -> None:
    """Judge every lane of every receiver."""
    account, changes = case.account, case.changes
    _compare(changes, findings)
    came = _joined(account, _delivered(account, changes, findings), case.admitted.drops)
    turns = _turns(account, changes)
    broken: list[tuple[int, str]] = []
    for lane, rows in _lanes(came):
        numbers, at, mine = came.number[rows], came.row[rows], turns.pop(lane, [])
        if not regular(lane, numbers, at, mine):
            broken += faults(lane, numbers.tolist(), at.tolist(), came.dropped[rows].tolist(), mine)
    for lane, mine in turns.items():
        broken += faults(lane, [], [], [], mine)
    broken.sort()
    for row, what in findings.wanted(broken):
        _tell(account, findings, row, what)


def _compare(changes: list[Change], findings: Findings) -> None:
    """Judge whether all nodes agree on what a configuration changes."""
    known: dict[tuple[GroupId, int], Change] = {}
    for change in changes:
        first = known.setdefault((change.group, change.config), change)
        if _content(first) != _content(change):
            detail = (
                f"node {change.node} installed view {change.config} of group {change.group} at"
                f" {format_ns(change.time_ns)}, which {_content(change)}; at node {first.node} it"
                f" {_content(first)}"
            )
            nodes, times = (change.node, first.node), (change.time_ns, first.time_ns)
            findings.add(nodes, (), times, detail, change.row)


def _content(change: Change) -> str:
    kind = "added" if change.added else "removed"
    return f"{kind} issuer {change.issuer} after number {change.number} at clock {change.clock}"


def _turns(account: Account, changes: list[Change]) -> dict[Lane, list[Change]]:
    """The changes that begin or end each lane, in order."""
    trace = account.trace
    found: dict[Lane, list[Change]] = {}
    for change in changes:
        if change.node in trace.receivers((change.group,)):
            life = int(np.searchsorted(trace.lost.get(change.node, np.empty(0, np.int64)), change.row))
            life += change.node in trace.description.resumed
            lane = Lane(change.node, life, change.issuer, change.group)
            found.setdefault(lane, []).append(change)
    return found


def _delivered(account: Account, changes: list[Change], findings: Findings) -> Came:
    """The numbers of deliveries, once per bundle, for the groups that their node receives."""
    trace = account.trace
    rows, nodes = account.row, account.node
    lengths, *places = list_columns(trace.table["numbers"])
    issuers = trace.column("stamp_issuer")
    wanting = (lengths[rows] <= 0) | (issuers[rows] == null_of(issuers))
    for column in places:
        wanting |= column[rows] == null_of(column)
    for row in findings.wanted(rows[wanting].tolist()):
        what = f"delivered {message_name(int(trace.message[row]))} without numbers or without their issuer"
        _tell(account, findings, row, what)
    destination = account.to
    same = ~wanting[1:] & ~wanting[:-1] & (nodes[1:] == nodes[:-1]) & (destination[1:] == destination[:-1])
    senders = trace.message[rows] >> 40
    same &= senders[1:] == senders[:-1]
    for column in (lengths, *places, trace.column("stamp_clock"), issuers):
        values = column[rows]
        same &= values[1:] == values[:-1]
    same &= ~_interrupted(account, changes)
    kept = ~wanting
    kept[1:] &= ~same
    sizes = np.array([len(groups) for groups in account.destinations], np.int64)
    uneven = kept & (lengths[rows] != sizes[destination])
    for delivery in findings.wanted(np.flatnonzero(uneven).tolist()):
        row = int(rows[delivery])
        counts = f"{lengths[row]} numbers for {sizes[destination[delivery]]} groups"
        _tell(account, findings, row, f"delivered {message_name(int(trace.message[row]))} with {counts}")
    return _exploded(account, np.flatnonzero(kept), destination, lengths, places, issuers)


def _interrupted(account: Account, changes: list[Change]) -> Flags:
    """For each delivery but the first, whether its node recovered or changed issuers since the one before."""
    trace = account.trace
    found = np.zeros(max(0, len(account.row) - 1), bool)
    ends: dict[NodeId, list[int]] = {}
    for row in [*trace.rows(Kind.RECOVER).tolist(), *(change.row for change in changes)]:
        ends.setdefault(int(trace.node[row]), []).append(row)
    for node, rows in ends.items():
        mine = np.flatnonzero(account.node == node)
        after = np.searchsorted(account.row[mine], rows)
        found[mine[after[(after > 0) & (after < len(mine))]] - 1] = True
    return found


def _exploded(
    account: Account, kept: Ints, destination: Ints, lengths: Ints, places: list[Ints], issuers: Ints
) -> Came:
    """A row for each number of each delivery."""
    members = {group: frozenset(nodes) for group, nodes in account.trace.description.groups.items()}
    parts: list[tuple[Ints, int, Ints]] = []
    for code, groups in enumerate(account.destinations):
        mine = kept[destination[kept] == code]
        if not len(mine):
            continue
        for place, group in enumerate(groups[: len(places)]):
            receives = np.isin(account.node[mine], list(members[group]))
            there = mine[receives & (lengths[account.row[mine]] > place)]
            parts.append((there, group, places[place][account.row[there]]))
    where = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.int64)
    rows = account.row[where]
    return Came(
        account.node[where],
        _lives(account, account.node[where], rows),
        issuers[rows],
        np.concatenate([np.full(len(part[0]), part[1]) for part in parts]) if parts else rows,
        np.concatenate([part[2] for part in parts]) if parts else rows,
        rows,
        np.zeros(len(rows), bool),
    )


def _lives(account: Account, nodes: Ints, rows: Ints) -> Ints:
    lives = np.zeros(len(rows), np.int64)
    for node, lost in account.trace.lost.items():
        mine = nodes == node
        lives[mine] = np.searchsorted(lost, rows[mine])
    # A run before this one counts as a life: the numbers did not begin here.
    return lives + np.isin(nodes, account.trace.description.resumed)


def _joined(account: Account, delivered: Came, drops: list[Drop]) -> Came:
    """Deliveries and notifications together."""
    if not drops:
        return delivered
    rows, nodes, _, issuers, groups, numbers = (np.array(column) for column in zip(*drops, strict=True))
    lives = _lives(account, nodes, rows)
    notified = Came(nodes, lives, issuers, groups, numbers, rows, np.ones(len(rows), bool))
    return Came(*(np.concatenate(columns) for columns in zip(delivered, notified, strict=True)))


def _lanes(came: Came) -> Iterator[tuple[Lane, Ints]]:
    """Each lane with the places of its numbers, in the order in which they came."""
    if not len(came.row):
        return
    columns = (came.node, came.life, came.issuer, came.group)
    lanes = np.zeros(len(came.row), np.int64)
    for column in columns:
        keys, places = factorize(column)
        _, lanes = factorize(lanes * len(keys) + places)
    in_time = np.argsort(came.row, kind="stable")
    order, starts = by_key(lanes[in_time], int(lanes.max()) + 1)
    order = in_time[order]
    for start, stop in pairwise(starts.tolist()):
        node, life, issuer, group = (int(column[order[start]]) for column in columns)
        yield Lane(node, life, issuer, group), order[start:stop]


def _tell(account: Account, findings: Findings, row: int, what: str) -> None:
    trace = account.trace
    node, time_ns, message = int(trace.node[row]), int(trace.time[row]), int(trace.message[row])
    messages = () if message == null_of(trace.message) else (message,)
    findings.add((node,), messages, (time_ns,), f"node {node} {what}, at {format_ns(time_ns)}", row)

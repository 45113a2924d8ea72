"""Drop detection at each receiver (Hydra sections 4.1 and 4.3.2).

A *lane* is what one receiver gets of one issuer for one group. Its numbers come once each, as a message or
as a notification, and when the message with a number comes, all smaller ones have. A lane whose numbers
come one after the other is proved right by its differences; only the others are walked through.

Numbers begin at 1; with the first that comes, if the receiver had recovered without its state, or had
installed a second view of the group before.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ordercast.audit.account import Account
from ordercast.audit.columns import Flags, Ints, by_key, factorize, list_columns, null_of
from ordercast.audit.findings import Findings
from ordercast.audit.rare import Drop, View
from ordercast.core import GroupId, NodeId, format_ns, message_name
from ordercast.trace import Kind

NAME = "drop-detection"


class Came(NamedTuple):
    """Numbers that came, in columns; the lane is (node, life, issuer, group)."""

    node: Ints
    life: Ints
    issuer: Ints
    group: Ints
    number: Ints
    row: Ints
    dropped: Flags


def drop_detection(account: Account, drops: list[Drop], views: list[View], findings: Findings) -> None:
    """Judge every lane of every receiver."""
    delivered = _delivered(account, findings)
    came = _joined(account, delivered, drops)
    second = _second_views(views)
    broken: list[tuple[int, str]] = []
    for lane, rows in _lanes(came):
        node, life, _, group = lane
        numbers, at = came.number[rows], came.row[rows]
        late = life > 0 or second.get((node, group), len(account.trace.kind)) < at[0]
        first = int(numbers[0]) if late else 1
        if numbers[0] == first and (np.diff(numbers) == 1).all():
            continue
        broken += _walk(numbers.tolist(), at.tolist(), came.dropped[rows].tolist(), first, lane)
    broken.sort()
    for row, what in findings.wanted(NAME, broken):
        _tell(account, findings, row, what)


def _delivered(account: Account, findings: Findings) -> Came:
    """The numbers that deliveries name, those of one bundle once, for the groups that their node receives."""
    trace = account.trace
    rows, nodes = account.row, account.node
    lengths, *places = list_columns(trace.table["numbers"])
    issuers = trace.column("stamp_issuer")
    wanting = (lengths[rows] <= 0) | (issuers[rows] == null_of(issuers))
    for column in places:
        wanting |= column[rows] == null_of(column)
    for row in findings.wanted(NAME, rows[wanting].tolist()):
        what = f"delivered {message_name(int(trace.message[row]))} without numbers or their issuer"
        _tell(account, findings, row, what)
    destination = account.to
    same = ~wanting[1:] & ~wanting[:-1] & (nodes[1:] == nodes[:-1]) & (destination[1:] == destination[:-1])
    senders = trace.message[rows] >> 40
    same &= senders[1:] == senders[:-1]
    for column in (lengths, *places, trace.column("stamp_clock"), issuers):
        values = column[rows]
        same &= values[1:] == values[:-1]
    same &= ~_recovered_between(account)
    kept = ~wanting
    kept[1:] &= ~same
    sizes = np.array([len(groups) for groups in account.destinations], np.int64)
    uneven = kept & (lengths[rows] != sizes[destination])
    for delivery in findings.wanted(NAME, np.flatnonzero(uneven).tolist()):
        row = int(rows[delivery])
        counts = f"{lengths[row]} numbers for {sizes[destination[delivery]]} groups"
        _tell(account, findings, row, f"delivered {message_name(int(trace.message[row]))} with {counts}")
    return _exploded(account, np.flatnonzero(kept), destination, lengths, places, issuers)


def _recovered_between(account: Account) -> Flags:
    """For each delivery but the first, whether its node recovered since the one before: bundles end there."""
    trace = account.trace
    found = np.zeros(max(0, len(account.row) - 1), bool)
    for row in trace.rows(Kind.RECOVER).tolist():
        mine = np.flatnonzero(account.node == trace.node[row])
        after = np.searchsorted(account.row[mine], row)
        if 0 < after < len(mine):
            found[mine[after] - 1] = True
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
    return lives


def _joined(account: Account, delivered: Came, drops: list[Drop]) -> Came:
    """Deliveries and notifications together."""
    if not drops:
        return delivered
    rows, nodes, _, issuers, groups, numbers = (np.array(column) for column in zip(*drops, strict=True))
    lives = _lives(account, nodes, rows)
    notified = Came(nodes, lives, issuers, groups, numbers, rows, np.ones(len(rows), bool))
    return Came(*(np.concatenate(columns) for columns in zip(delivered, notified, strict=True)))


def _second_views(views: list[View]) -> dict[tuple[NodeId, GroupId], int]:
    """The row in which a node installed its second view of a group."""
    seen: dict[tuple[NodeId, GroupId], int] = {}
    second: dict[tuple[NodeId, GroupId], int] = {}
    for view in views:
        for group in view.groups:
            key = (view.node, group)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == 2:
                second[key] = view.row
    return second


def _lanes(came: Came) -> Iterator[tuple[tuple[int, int, int, int], Ints]]:
    """Each lane, and where its numbers are, in the order in which they came."""
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
        yield (node, life, issuer, group), order[start:stop]


def _walk(
    numbers: list[int], rows: list[int], dropped: list[bool], first: int, lane: tuple[int, int, int, int]
) -> Iterator[tuple[int, str]]:
    """A lane's faults, one after the other: a number that comes twice, and one passed over in silence."""
    came: dict[int, bool] = {}
    early: list[int] = []
    low = first - 1  # all up to here has come, or its lack has been told
    for number, row, drop in zip(numbers, rows, dropped, strict=True):
        slot = f"number {number} of issuer {lane[2]} in group {lane[3]}"
        what = f"was notified of the drop of {slot}" if drop else f"delivered {slot}"
        if number in came:
            earlier = "a notification" if came[number] else "a message"
            yield row, f"{what} after {earlier} with that number"
        elif number < first:
            yield row, f"{what}, below the first number, {first}"
        came[number] = came.get(number, False) or drop
        heappush(early, number)
        low = _settled(low, early)
        if not drop and low < number:
            yield row, f"{what}, but neither message nor notification for number {low + 1}"
            low = _settled(number, early)


def _settled(low: int, early: list[int]) -> int:
    """How far all numbers have come, given those that came before their turn."""
    while early and early[0] <= low + 1:
        low = max(low, heappop(early))
    return low


def _tell(account: Account, findings: Findings, row: int, what: str) -> None:
    trace = account.trace
    node, time_ns, message = int(trace.node[row]), int(trace.time[row]), int(trace.message[row])
    messages = () if message == null_of(trace.message) else (message,)
    findings.add(NAME, (node,), messages, (time_ns,), f"node {node} {what}, at {format_ns(time_ns)}", row)

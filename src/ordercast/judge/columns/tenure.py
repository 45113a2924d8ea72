"""Tenure: a receiver delivers of a group only what is ordered between its `joined` and its `left`.

Only nodes that have such rows are looked at. The rows themselves are judged one by one: they come in turn,
and a node joins only if it has asked to, or was a member at the start. Deliveries are compared with the
places of their spans over columns.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, MessageId, NodeId, format_ns
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import CODE, Flags, Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.members import OrderPlaces, Span
from ordercast.judge.finding import message_at
from ordercast.trace import Kind


class Breach(NamedTuple):
    """What a node did wrong, and in which row."""

    row: int
    node: NodeId
    what: str
    message: MessageId | None = None


class Deliveries(NamedTuple):
    """What a node that joined or left groups delivered, and because of which groups."""

    where: Ints
    rows: Ints
    places: OrderPlaces
    inside: dict[GroupId, Flags]
    """For each group, which of them went to it while the node was in it."""


def tenure(case: Case, findings: Findings) -> None:
    """Judge the nodes that joined or left groups."""
    found: list[Breach] = []
    for node in case.trace.members.changed:
        delivered = _deliveries(case.account, node)
        found += _turns(case, node)
        found += _early(case, node, delivered)
        found += _beyond(case, node, delivered)
    for breach in findings.wanted(sorted(found, key=lambda one: one.row)):
        time_ns = int(case.trace.time[breach.row])
        messages = () if breach.message is None else (breach.message,)
        detail = f"node {breach.node} {breach.what} (at {format_ns(time_ns)})"
        findings.add((breach.node,), messages, (time_ns,), detail, breach.row)


def _deliveries(account: Account, node: NodeId) -> Deliveries:
    chains = account.chains_by_node.get(node, [])
    parts = [np.arange(chain.start, chain.stop) for chain in chains]
    where = np.concatenate(parts) if parts else np.empty(0, np.int64)
    rows = account.row[where]
    names = ("stamp_clock", "stamp_issuer", "config")
    inside = {
        group: account.going_to(group)[account.to[where]] & account.trace.members.inside(node, group, rows)
        for group in account.trace.description.groups
    }
    return Deliveries(where, rows, OrderPlaces(*(account.trace.column(name)[rows] for name in names)), inside)


def _early(case: Case, node: NodeId, delivered: Deliveries) -> Iterator[Breach]:
    """Messages that come before the place where the node joined each of their groups."""
    members = case.trace.members
    somewhere, within = (np.zeros(len(delivered.rows), bool) for _ in range(2))
    for group, inside in delivered.inside.items():
        somewhere |= inside
        if (node, group) not in members.spans:
            within |= inside
        for span in members.spans.get((node, group), ()):
            within |= inside & span.covers(delivered.rows) & span.begun(delivered.places)
    for at in np.flatnonzero(somewhere & ~within).tolist():
        group = min(group for group, inside in delivered.inside.items() if inside[at])
        what = f"delivered {_named(case, delivered, at)}, which comes before it joined group {group}"
        yield Breach(int(delivered.rows[at]), node, what, _message(case, delivered, at))


def _beyond(case: Case, node: NodeId, delivered: Deliveries) -> Iterator[Breach]:
    """Messages that come after the place where the node left their only group of its own."""
    own = np.sum(list(delivered.inside.values()), axis=0)
    for (one, group), spans in case.trace.members.spans.items():
        for span in spans if one == node else ():
            if span.left is None:
                continue
            mine = delivered.inside[group] & (own == 1) & span.covers(delivered.rows)
            mine &= span.begun(delivered.places) & ~span.held(delivered.places)
            if mine.any():
                at = _highest(delivered, np.flatnonzero(mine), span)
                what = (
                    f"left group {group}, but it had delivered {_named(case, delivered, at)} after that place"
                )
                yield Breach(span.left.row, node, what, _message(case, delivered, at))


def _highest(delivered: Deliveries, which: Ints, span: Span) -> int:
    """The delivery with the highest place among some."""
    places = delivered.places.of(which)
    stamped = span.left is not None and span.left.stamp is not None
    keys = (places.issuer, places.clock) if stamped else (places.config,)
    return int(which[np.lexsort(keys)[-1]])


def _turns(case: Case, node: NodeId) -> Iterator[Breach]:
    """`joined` and `left` rows that do not come in turn, or were not asked for."""
    trace = case.trace
    for (one, group), turns in trace.members.turns.items():
        if one != node:
            continue
        founder = node in trace.description.groups[group]
        inside, last = founder, -1
        for row, what in turns:
            if what == "joined":
                recovered = _recovered(case, node, last, row)
                if inside and not recovered and not case.description.guarantees.views:
                    yield Breach(row, node, f"joined group {group}, although it was in it")
                elif not founder and not _asked(case, node, group, row):
                    yield Breach(row, node, f"joined group {group}, although it had not asked for it")
                inside, last = True, row
            elif what == "left":
                if not inside:
                    yield Breach(row, node, f"left group {group}, although it was not in it")
                inside = False
            else:
                inside = founder


def _recovered(case: Case, node: NodeId, after: int, before: int) -> bool:
    rows = case.trace.rows(Kind.RECOVER)
    return bool(((case.trace.node[rows] == node) & (rows > after) & (rows < before)).any())


def _asked(case: Case, node: NodeId, group: GroupId, before: int) -> bool:
    """Whether a node has asked to join a group before a row."""
    trace = case.trace
    rows = np.flatnonzero((trace.kind[:before] == CODE[Kind.JOIN]) & (trace.node[:before] == node))
    return any(group in trace.groups.tuples[code] for code in trace.groups.codes[rows].tolist() if code >= 0)


def _message(case: Case, delivered: Deliveries, at: int) -> MessageId:
    return case.account.message(int(case.account.place[delivered.where[at]]))


def _named(case: Case, delivered: Deliveries, at: int) -> str:
    return message_at(_message(case, delivered, at), int(case.trace.time[delivered.rows[at]]))

"""Validity: what a sender submits and does not crash after, every correct receiver of its groups delivers.

Judged at the end of a complete run; a notification serves as well where gaps are notified. A message that
nobody delivered has no known slot: each notification for a slot that nobody saw the message of may have
been for one such message, or for one bundle of them, and excuses it, those with the fewest groups first.
What receivers disagree on is agreement's finding.
"""

from collections.abc import Set

import numpy as np

from ordercast.core import Gaps, NodeId
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.debts import Debts
from ordercast.judge.columns.findings import Findings
from ordercast.judge.online.violation import message_at, nodes_named

NAME = "validity"


def validity(debts: Debts, lacking: Ints, told: Set[int], findings: Findings) -> None:
    """Judge the messages that some correct receiver lacks, except those that have been told of."""
    account = debts.account
    notified = account.trace.description.guarantees.gaps is Gaps.NOTIFIED
    wanting: dict[int, list[NodeId]] = {}
    for place in lacking[_steady(debts, lacking)].tolist():
        if place not in told and (missing := _missing(debts, place, notified)):
            wanting[place] = missing
    if notified and wanting:
        wanting = _unexcused(debts, wanting)
    for place, missing in wanting.items():
        row = int(account.submit_row[place])
        sender, time_ns = int(account.trace.node[row]), int(account.trace.time[row])
        findings.add(
            NAME,
            (sender, *missing),
            (account.message(place),),
            (time_ns,),
            f"node {sender} submitted {message_at(account.message(place), time_ns)} and did not crash after;"
            f" {nodes_named(missing)} never delivered it",
        )


def _steady(debts: Debts, places: Ints) -> Ints:
    """Which of some messages were submitted by a node that did not crash afterwards."""
    trace = debts.account.trace
    rows = debts.account.submit_row[places]
    steady = np.ones(len(places), bool)
    for node, crashes in debts.population.crashes.items():
        steady &= (trace.node[rows] != node) | (rows > crashes[-1])
    return np.flatnonzero(steady)


def _missing(debts: Debts, place: int, notified: bool) -> list[NodeId]:
    """The receivers that owe a message, and neither delivered it nor got a notification for it."""
    groups = debts.groups(place)
    missing = [node for node in debts.correct(groups) if not debts.delivered[node][place]]
    owing = debts.owing(place, [n for n in debts.receivers(groups) if debts.delivered[n][place]])
    return [node for node in missing if node in owing and not (notified and debts.notified(node, place))]


def _unexcused(debts: Debts, wanting: dict[int, list[NodeId]]) -> dict[int, list[NodeId]]:
    excuses = debts.unexplained()
    if not excuses:
        return wanting
    bundle = _bundles(debts)
    settled: dict[tuple[NodeId, int], bool] = {}
    unknown = [place for place in wanting if not debts.slotted[place]]
    for place in sorted(unknown, key=lambda place: len(debts.groups(place))):
        for node in wanting[place]:
            claim = (node, int(bundle[place]))
            if claim not in settled:
                group = max(debts.groups(place), key=lambda g: excuses[node, g])
                settled[claim] = excuses[node, group] > 0
                excuses[node, group] -= settled[claim]
    left = {
        place: [n for n in missing if debts.slotted[place] or not settled[n, int(bundle[place])]]
        for place, missing in wanting.items()
    }
    return {place: missing for place, missing in left.items() if missing}


def _bundles(debts: Debts) -> Ints:
    """For each message, which bundle it may have been in: what one sender submitted in a row."""
    count = debts.count
    bundles = np.arange(count)
    if not debts.bundled:
        return bundles
    senders = debts.account.trace.node[debts.account.submit_row]
    last: dict[int, int] = {}
    for place in range(count):
        sender = int(senders[place])
        before = last.get(sender)
        if not debts.slotted[place] and before is not None and debts.groups(before) == debts.groups(place):
            bundles[place] = bundles[before]
        if debts.slotted[place]:
            last.pop(sender, None)
        else:
            last[sender] = place
    return bundles

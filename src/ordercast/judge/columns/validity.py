"""Validity: if a sender submits a message and does not crash afterwards, every correct receiver delivers it.

Judged at the end of a complete run. Where gaps are notified, a notification counts as well. A message that
nobody delivered has no known slot. A notification for a slot whose message nobody delivered may have been for
such a message, or for one bundle of them, and excuses it; messages with the fewest groups come first. A
message on which receivers disagree is a finding of agreement. A message of which its sender was told that it
may be lost is not judged.
"""

import numpy as np

from ordercast.core import Gaps, NodeId
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.ledger import Ledger
from ordercast.judge.finding import message_at, nodes_named
from ordercast.trace import RETURNING


def validity(case: Case, findings: Findings) -> None:
    """Judge the messages that some correct receiver lacks, except those that agreement reported."""
    ledger, account, lacking = case.ledger, case.account, case.lacking
    notified = case.description.guarantees.gaps is Gaps.NOTIFIED
    wanting: dict[int, list[NodeId]] = {}
    returned = _returned(ledger)
    for place in lacking[_steady(ledger, lacking)].tolist():
        if place in case.disputed or account.message(place) in returned:
            continue
        if missing := _missing(ledger, place, notified):
            wanting[place] = missing
    if notified and wanting:
        wanting = _unexcused(ledger, wanting)
    for place, missing in wanting.items():
        row = int(account.submit_row[place])
        sender, time_ns = int(account.trace.node[row]), int(account.trace.time[row])
        findings.add(
            (sender, *missing),
            (account.message(place),),
            (time_ns,),
            f"node {sender} submitted {message_at(account.message(place), time_ns)}"
            f" and did not crash afterwards; {nodes_named(missing)} never delivered it",
        )


def _returned(ledger: Ledger) -> set[int]:
    """The messages of which their sender was told that nobody may have them."""
    trace = ledger.account.trace
    return set(trace.message[trace.rows(*RETURNING)].tolist())


def _steady(ledger: Ledger, places: Ints) -> Ints:
    """Which of some messages were submitted by a node that did not crash afterwards."""
    trace = ledger.account.trace
    rows = ledger.account.submit_row[places]
    steady = np.ones(len(places), bool)
    for node, crashes in ledger.population.crashes.items():
        steady &= (trace.node[rows] != node) | (rows > crashes[-1])
    return np.flatnonzero(steady)


def _missing(ledger: Ledger, place: int, notified: bool) -> list[NodeId]:
    """The receivers that owe a message, and neither delivered it nor got a notification for it."""
    groups = ledger.groups(place)
    missing = [node for node in ledger.correct(groups) if not ledger.delivered[node][place]]
    owing = ledger.owing(place, [n for n in ledger.receivers(groups) if ledger.delivered[n][place]])
    return [node for node in missing if node in owing and not (notified and ledger.notified(node, place))]


def _unexcused(ledger: Ledger, wanting: dict[int, list[NodeId]]) -> dict[int, list[NodeId]]:
    excuses = ledger.unexplained()
    if not excuses:
        return wanting
    bundle = _bundles(ledger)
    settled: dict[tuple[NodeId, int], bool] = {}
    unknown = [place for place in wanting if not ledger.slotted[place]]
    for place in sorted(unknown, key=lambda place: len(ledger.groups(place))):
        for node in wanting[place]:
            claim = (node, int(bundle[place]))
            if claim not in settled:
                group = max(ledger.groups(place), key=lambda g: excuses[node, g])
                settled[claim] = excuses[node, group] > 0
                excuses[node, group] -= settled[claim]
    left = {
        place: [n for n in missing if ledger.slotted[place] or not settled[n, int(bundle[place])]]
        for place, missing in wanting.items()
    }
    return {place: missing for place, missing in left.items() if missing}


def _bundles(ledger: Ledger) -> Ints:
    """For each message, its possible bundle: messages of one sender with consecutive numbers."""
    count = ledger.count
    bundles = np.arange(count)
    if not ledger.bundled:
        return bundles
    senders = ledger.account.trace.node[ledger.account.submit_row]
    last: dict[int, int] = {}
    for place in range(count):
        sender = int(senders[place])
        before = last.get(sender)
        if not ledger.slotted[place] and before is not None and _follows(ledger, before, place):
            bundles[place] = bundles[before]
        if ledger.slotted[place]:
            last.pop(sender, None)
        else:
            last[sender] = place
    return bundles


def _follows(ledger: Ledger, before: int, place: int) -> bool:
    """Whether a message may be in the bundle of another of its sender."""
    message = ledger.account.message
    return message(before) + 1 == message(place) and ledger.groups(before) == ledger.groups(place)

"""Agreement: if one receiver delivers a message, every correct receiver does, or is notified of its drop.

Judged at the end of a complete run. *Uniform*: deliveries of receivers that crashed later count as well.
Where notifications count (drop detection of Hydra, section 4.1) and one receiver is notified of a slot, the
slot must have come, as message or as notification, at every correct receiver of its group. Slots above the
last number of a removed issuer bind nobody in their group if only a minority of the group got them. A message
that a majority of a group delivered binds in all of its groups (Appendix B).
"""

import numpy as np

from ordercast.core import Agreement, NodeId, format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.ledger import Ledger, Slot
from ordercast.judge.finding import message_at, messages_named, nodes_named


def agreement(case: Case, findings: Findings) -> None:
    """Judge the messages that some correct receiver lacks."""
    ledger, promised = case.ledger, case.description.guarantees
    notified = promised.agreement is Agreement.NOTIFIED

    def binds(node: NodeId) -> bool:
        return promised.uniform or ledger.population.correct(node)

    flagged = case.disputed
    for place in _witnessed(ledger, case.lacking):
        groups = ledger.groups(place)
        having = [n for n in ledger.receivers(groups) if binds(n) and ledger.delivered[n][place]]
        witnesses = [node for node in having if ledger.survived(node, place)]
        if not witnesses:
            continue
        owing = ledger.owing(place, witnesses)
        missing = [n for n in ledger.correct(groups) if n in owing and not ledger.delivered[n][place]]
        if notified:
            missing = [n for n in missing if not ledger.notified(n, place) and ledger.bound(n, place)]
        if missing:
            flagged.add(place)
            _tell_message(ledger, findings, place, witnesses[0], missing, notified)
    if notified:
        for slot, holders in ledger.holders.items():
            witnesses = [node for node in holders if binds(node)]
            if witnesses and ledger.binds(slot) and flagged.isdisjoint(ledger.carried.get(slot, ())):
                _judge_slot(ledger, findings, slot, witnesses)


def _witnessed(ledger: Ledger, lacking: Ints) -> list[int]:
    """The messages among these that some receiver delivered."""
    seen = np.zeros(len(lacking), bool)
    for marks in ledger.delivered.values():
        seen |= marks[lacking]
    places: list[int] = lacking[seen].tolist()
    return places


def _judge_slot(ledger: Ledger, findings: Findings, slot: Slot, witnesses: list[NodeId]) -> None:
    carried = ledger.carried.get(slot, [])
    owing, holders = ledger.owing_slot(slot, witnesses), ledger.holders[slot]
    missing = [
        node
        for node in ledger.correct((slot.group,))
        if node in owing
        and node not in holders
        and not any(ledger.delivered[node][place] for place in carried)
    ]
    if not missing:
        return
    witness, messages = witnesses[0], [ledger.account.message(place) for place in carried]
    named = f" ({messages_named(messages)})" if messages else ""
    findings.add(
        (witness, *missing),
        messages,
        (holders[witness],),
        f"node {witness} was notified at {format_ns(holders[witness])} that number"
        f" {slot.number} of issuer {slot.issuer} in group {slot.group}{named} is dropped;"
        f" {nodes_named(missing)} got neither the message nor a notification",
    )


def _tell_message(
    ledger: Ledger, findings: Findings, place: int, witness: NodeId, missing: list[NodeId], notified: bool
) -> None:
    message = ledger.account.message(place)
    time_ns = ledger.account.time(ledger.first_delivery(witness, place))
    instead = " and got no notification of its drop" if notified else ", although up at the end"
    findings.add(
        (witness, *missing),
        (message,),
        (time_ns,),
        f"node {witness} delivered {message_at(message, time_ns)};"
        f" {nodes_named(missing)} never delivered it{instead}",
    )

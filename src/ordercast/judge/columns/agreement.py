"""Agreement: what one receiver delivers, every correct receiver of its groups delivers, or is notified of.

Judged at the end of a complete run. *Uniform*: what a receiver did that crashed later counts as well. Where
notifications count (drop detection of Hydra, section 4.1), a slot of which one receiver is notified must
have come, as message or as notification, at every correct receiver of its group. Slots above the number up to
which a view removes their issuer bind nobody in their group if only a minority of it got them; and a message
that a majority of a group delivered binds in all of its groups (Appendix B).
"""

import numpy as np

from ordercast.core import Agreement, NodeId, format_ns
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.debts import Debts, Slot
from ordercast.judge.columns.findings import Findings
from ordercast.judge.online.violation import message_at, messages_named, nodes_named

NAME = "agreement"


def agreement(debts: Debts, lacking: Ints, findings: Findings) -> set[int]:
    """Judge the messages that some correct receiver lacks; those on which receivers do not agree."""
    promised = debts.account.trace.description.guarantees
    notified = promised.agreement is Agreement.NOTIFIED

    def binds(node: NodeId) -> bool:
        return promised.uniform or debts.population.correct(node)

    flagged: set[int] = set()
    for place in _witnessed(debts, lacking):
        groups = debts.groups(place)
        witnesses = [n for n in debts.receivers(groups) if binds(n) and debts.delivered[n][place]]
        if not witnesses:
            continue
        owing = debts.owing(place, witnesses)
        missing = [n for n in debts.correct(groups) if n in owing and not debts.delivered[n][place]]
        if notified:
            missing = [n for n in missing if not debts.notified(n, place) and debts.bound(n, place)]
        if missing:
            flagged.add(place)
            _tell_message(debts, findings, place, witnesses[0], missing, notified)
    if notified:
        for slot, holders in debts.holders.items():
            witnesses = [node for node in holders if binds(node)]
            if witnesses and debts.binds(slot) and flagged.isdisjoint(debts.carried.get(slot, ())):
                _judge_slot(debts, findings, slot, witnesses)
    return flagged


def _witnessed(debts: Debts, lacking: Ints) -> list[int]:
    """Those of the messages that some receiver delivered."""
    seen = np.zeros(len(lacking), bool)
    for marks in debts.delivered.values():
        seen |= marks[lacking]
    places: list[int] = lacking[seen].tolist()
    return places


def _judge_slot(debts: Debts, findings: Findings, slot: Slot, witnesses: list[NodeId]) -> None:
    carried = debts.carried.get(slot, [])
    owing, holders = debts.owing_slot(slot, witnesses), debts.holders[slot]
    missing = [
        node
        for node in debts.correct((slot.group,))
        if node in owing
        and node not in holders
        and not any(debts.delivered[node][place] for place in carried)
    ]
    if not missing:
        return
    witness, messages = witnesses[0], [debts.account.message(place) for place in carried]
    named = f" ({messages_named(messages)})" if messages else ""
    findings.add(
        NAME,
        (witness, *missing),
        messages,
        (holders[witness],),
        f"node {witness} was notified at {format_ns(holders[witness])} of the drop of number {slot.number} of"
        f" issuer {slot.issuer} in group {slot.group}{named}; {nodes_named(missing)} got neither it nor the"
        " notification",
    )


def _tell_message(
    debts: Debts, findings: Findings, place: int, witness: NodeId, missing: list[NodeId], notified: bool
) -> None:
    message = debts.account.message(place)
    time_ns = debts.account.time(debts.first_delivery(witness, place))
    instead = ", and was not notified of its drop" if notified else ", though correct"
    findings.add(
        NAME,
        (witness, *missing),
        (message,),
        (time_ns,),
        f"node {witness} delivered {message_at(message, time_ns)}; {nodes_named(missing)} never did{instead}",
    )

"""First in, first out: a receiver delivers the messages of one sender in the order they were submitted.

Messages are numbered by submission, so those of one sender must grow along a chain.
"""

import numpy as np

from ordercast.judge.columns.account import Account, Chain
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, by_key, factorize
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at


def fifo(case: Case, findings: Findings) -> None:
    """Find deliveries that come after a later one of the same sender."""
    account = case.account
    senders, sender_of = factorize(account.trace.node[account.submit_row])
    broken: list[tuple[int, int, int]] = []
    for chain in account.chains:
        broken += _overtaken(account, chain, sender_of, len(senders))
    broken.sort(key=lambda found: int(account.row[found[0]]))
    for late, early, sender in findings.wanted(broken):
        messages = [account.message(int(account.place[delivery])) for delivery in (late, early)]
        times = (account.time(early), account.time(late))
        node = int(account.node[late])
        findings.add(
            (node, int(senders[sender])),
            messages,
            times,
            f"node {node} delivered {message_at(messages[0], times[1])} after"
            f" {message_at(messages[1], times[0])}, which node {senders[sender]} submitted later",
            int(account.row[late]),
        )


def _overtaken(account: Account, chain: Chain, sender_of: Ints, count: int) -> list[tuple[int, int, int]]:
    """Deliveries of a chain that came too late, the one that overtook each, and their sender."""
    places, where = account.sequence(chain)
    submitted = places < len(sender_of)
    if not submitted.all():
        places, where = places[submitted], where[submitted]
    if (places[1:] > places[:-1]).all():
        return []
    order, starts = by_key(sender_of[places], count)
    places, where = places[order], where[order]
    found = []
    for sender in np.flatnonzero(np.diff(starts)).tolist():
        span = slice(starts[sender], starts[sender + 1])
        mine, at = places[span], where[span]
        newest = np.maximum.accumulate(mine)
        for late in np.flatnonzero(mine < newest).tolist():
            early = int(np.searchsorted(newest, newest[late]))
            found.append((int(at[late]), int(at[early]), sender))
    return found

"""Counts holes over columns: messages that a receiver lacks and another delivered.

Holes break no promise. `judge/finding/holes.py` defines them.
"""

import numpy as np

from ordercast.judge.columns.columns import Flags
from ordercast.judge.columns.ledger import Ledger
from ordercast.judge.finding import NAMED_MAX, Holes, NodeHoles


def holes(ledger: Ledger) -> Holes:
    """The holes of a finished run."""
    account, count = ledger.account, ledger.count
    delivered = {node: marks[:count] for node, marks in ledger.delivered.items()}
    somewhere: Flags = np.zeros(count, bool)
    for marks in delivered.values():
        somewhere |= marks
    found = []
    for node in sorted(delivered):
        mine = [node in account.trace.receivers(groups) for groups in account.destinations]
        addressed = np.array(mine, bool)[account.destination[:count]]
        owed = ledger.owed(node)
        lacked = np.flatnonzero(addressed & somewhere & ~delivered[node] & (True if owed is None else owed))
        if len(lacked):
            first = tuple(account.message(place) for place in lacked[:NAMED_MAX].tolist())
            found.append(NodeHoles(node, ledger.population.standing(node), len(lacked), first))
    return Holes(tuple(found), int(np.count_nonzero(~somewhere)))

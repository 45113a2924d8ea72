"""Holes, over columns: what receivers lack that others delivered, where agreement is probabilistic.

They break no promise, and are counted for whoever wants to know. The definition is that of `check.holes`.
"""

import numpy as np

from ordercast.judge.columns.columns import Flags
from ordercast.judge.columns.debts import Debts
from ordercast.judge.online.holes import NAMED_MAX, Holes, NodeHoles


def holes(debts: Debts) -> Holes:
    """The holes of a run that has come to its end."""
    account, count = debts.account, debts.count
    delivered = {node: marks[:count] for node, marks in debts.delivered.items()}
    somewhere: Flags = np.zeros(count, bool)
    for marks in delivered.values():
        somewhere |= marks
    found = []
    for node in sorted(delivered):
        mine = [node in account.trace.receivers(groups) for groups in account.destinations]
        addressed = np.array(mine, bool)[account.destination[:count]]
        lacked = np.flatnonzero(addressed & somewhere & ~delivered[node])
        if len(lacked):
            first = tuple(account.message(place) for place in lacked[:NAMED_MAX].tolist())
            found.append(NodeHoles(node, debts.population.standing(node), len(lacked), first))
    return Holes(tuple(found), int(np.count_nonzero(~somewhere)))

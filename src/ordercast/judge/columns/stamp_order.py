"""Order of stamps: receivers deliver in the order of stamps, and tag what they deliver later.

If every receiver follows one line, and the clocks of stamps grow along it, nothing is wrong. Otherwise the
stamps of each chain are compared with the highest one before. If an order is promised only for groups that
overlap, stamps are places within one group: then those of each group are compared, and no tags.
"""

from collections.abc import Iterator

import numpy as np

from ordercast.core import NodeId, Order
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Flags, Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.stamped import Stamped
from ordercast.judge.finding import message_at

Broken = tuple[int, int, bool]
"""A delivery, the one before it with the highest stamp or -1, and whether it is in order."""


def stamp_order(case: Case, findings: Findings) -> None:
    """Find deliveries with a lower stamp than one before, and tagged ones without a higher stamp before."""
    account, stamped = case.account, case.stamped
    if not stamped.has_places or (account.ordered is None and case.stamps_climb):
        return
    broken: dict[int, Broken] = {}
    by_group = case.description.guarantees.order is Order.OVERLAPS and len(case.description.groups) > 1
    for chain in account.chains:
        where = np.arange(chain.start, chain.stop)
        parts = _by_group(account, where) if by_group else (where,)
        until = 0 if by_group else _in_all_until(case, chain.node)
        for part in parts:
            for found in _broken(account, stamped, part, until):
                broken.setdefault(found[0], found)
    for found in findings.wanted(sorted(broken.values(), key=lambda found: int(account.row[found[0]]))):
        _tell(account, findings, stamped, found)


def _in_all_until(case: Case, node: NodeId) -> int:
    """Up to which row a node is in all groups, from the start on; 0 if it is not."""
    if not all(node in members for members in case.description.groups.values()):
        return 0
    spans = [span for (one, _), own in case.trace.members.spans.items() if one == node for span in own]
    return min((one.left.row for one in spans if one.left is not None), default=len(case.trace.kind))


def _by_group(account: Account, where: Ints) -> Iterator[Ints]:
    """Some deliveries, once for each group, with those to that group."""
    codes = np.unique(account.to[where]).tolist()
    for group in sorted({group for code in codes for group in account.destinations[code]}):
        yield where[account.going_to(group)[account.to[where]]]


def _broken(account: Account, stamped: Stamped, where: Ints, in_all_until: int) -> list[Broken]:
    """The deliveries of a receiver that are out of place, or tagged without a reason."""
    where = where[stamped.whole(account.row[where])]
    clock, issuer = (column[account.row[where]] for column in stamped.columns[:2])
    ordered = np.ones(len(where), bool) if account.ordered is None else account.ordered[where]
    if ordered.all() and _grow(clock, issuer):
        return []
    rank = _ranks(clock, issuer)
    highest = np.maximum.accumulate(np.where(ordered, rank, -1))
    in_all = account.row[where] < in_all_until
    wrong = np.where(ordered, rank < highest, in_all & (rank > highest))
    found = []
    for at in np.flatnonzero(wrong).tolist():
        first = int(np.argmax(ordered[:at] & (rank[:at] == highest[at]))) if highest[at] >= 0 else -1
        found.append((int(where[at]), int(where[first]) if first >= 0 else -1, bool(ordered[at])))
    return found


def _grow(clock: Ints, issuer: Ints) -> bool:
    """Whether stamps never decrease."""
    if (clock[1:] > clock[:-1]).all():
        return True
    same: Flags = (clock[1:] == clock[:-1]) & (issuer[1:] >= issuer[:-1])
    return bool((same | (clock[1:] > clock[:-1])).all())


def _ranks(clock: Ints, issuer: Ints) -> Ints:
    """The rank of each stamp; equal stamps have the same."""
    order = np.lexsort((issuer, clock))
    steps = np.zeros(len(order), np.int64)
    steps[1:] = (np.diff(clock[order]) != 0) | (np.diff(issuer[order]) != 0)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks


def _tell(account: Account, findings: Findings, stamped: Stamped, broken: Broken) -> None:
    late, early, ordered = broken
    named = [
        f"{message_at(account.message(int(account.place[one])), account.time(one))} with stamp"
        f" ({', '.join(str(column[account.row[one]]) for column in stamped.columns[:2])})"
        for one in (late, early)
        if one >= 0
    ]
    how = "after" if ordered else "tagged as out of order, but the last in order was"
    node = int(account.node[late])
    findings.add(
        (node,),
        [account.message(int(account.place[one])) for one in (late, early) if one >= 0],
        [account.time(one) for one in (early, late) if one >= 0],
        f"node {node} delivered {named[0]} {how} {named[1] if early >= 0 else 'none'}",
        int(account.row[late]),
    )

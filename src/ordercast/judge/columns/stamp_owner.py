"""Owners of stamps: a stamp belongs to one bundle, and so does each number of an issuer for a group.

If every receiver follows one line, and the clocks of stamps grow strictly along it, no stamp is there twice.
Otherwise one delivery of each bundle is kept, by its first message (its *head*). Stamps and numbers that
several bundles have are rare; only for these are senders and their lives compared.
"""

from typing import NamedTuple

import numpy as np

from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Flags, Ints, factorize, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.stamped import Stamped
from ordercast.judge.finding import message_at
from ordercast.trace import Kind

Shared = tuple[int, int]
"""Two bundles with one stamp or number."""


class Bundles(NamedTuple):
    """Bundles as columns: the place of the first message, the row of its delivery, its destination."""

    head: Ints
    row: Ints
    to: Ints


class Sought(NamedTuple):
    """Bundles that have something in common with others: which they are, and what that is."""

    which: Ints
    keys: tuple[Ints, ...]


def stamp_owner(case: Case, findings: Findings) -> None:
    """Find stamps and numbers that belong to several bundles."""
    account, stamped = case.account, case.stamped
    unnumbered = not stamped.numbers
    if not stamped.columns or (unnumbered and (not stamped.has_places or case.stamps_climb)):
        return
    bundles = _bundles(account, stamped)
    broken: set[Shared] = set()
    if stamped.has_places and not case.stamps_climb:
        broken.update(_sharing(account, bundles, _stamps(stamped, bundles)))
    if not unnumbered:
        broken.update(_sharing(account, bundles, _numbers(account, stamped, bundles)))
    in_order = sorted(broken, key=lambda pair: (int(max(bundles.row[list(pair)])), pair))
    for pair in findings.wanted(in_order):
        _tell(account, findings, stamped, bundles, pair)


def _bundles(account: Account, stamped: Stamped) -> Bundles:
    """One delivery of each bundle, or all of them if receivers disagree on stamps."""
    heads, row, to = [], [], []
    for chain in account.chains:
        places, where = account.sequence(chain)
        rows = account.row[where]
        first = np.flatnonzero(~_continued(account, stamped, rows, account.to[where]))
        heads.append(places[first])
        row.append(rows[first])
        to.append(account.to[where][first])
    empty = np.empty(0, np.int64)
    head, row_of, to_of = (np.concatenate(part) if part else empty for part in (heads, row, to))
    if not stamped.differs.any():
        sample = np.full(len(account.messages), -1, np.int64)
        sample[head[::-1]] = np.arange(len(head))[::-1]
        kept = sample[sample >= 0]
        head, row_of, to_of = head[kept], row_of[kept], to_of[kept]
    return Bundles(head, row_of, to_of)


def _continued(account: Account, stamped: Stamped, rows: Ints, to: Ints) -> Flags:
    """For each delivery of a chain, whether it belongs to the bundle of the one before it."""
    trace = account.trace
    messages = trace.message[rows]
    flags = np.zeros(len(rows), bool)
    near = 1 + np.flatnonzero(messages[1:] == messages[:-1] + 1)
    for column in stamped.columns:
        near = near[column[rows[near]] == column[rows[near - 1]]]
    flags[near[to[near] == to[near - 1]]] = True
    return flags


def _stamps(stamped: Stamped, bundles: Bundles) -> Sought:
    """The bundles whose stamp is not theirs alone, and these stamps."""
    which = np.flatnonzero(stamped.whole(bundles.row))
    clock, issuer = (column[bundles.row] for column in stamped.columns[:2])
    which = which[_repeated(clock[which])]
    which = which[_repeated(clock[which], issuer[which])]
    return Sought(which, (clock[which], issuer[which]))


def _numbers(account: Account, stamped: Stamped, bundles: Bundles) -> Sought:
    """The bundles with a number that is not theirs alone, and these numbers with issuers and groups."""
    issuers = account.trace.column("stamp_issuer")[bundles.row]
    parts: list[tuple[Ints, ...]] = []
    for place, column in enumerate(stamped.numbers):
        group = np.array([groups[place] if place < len(groups) else -1 for groups in account.destinations])
        number = column[bundles.row]
        there = (stamped.lengths[bundles.row] > place) & (group[bundles.to] >= 0)
        which = np.flatnonzero(there & (number != null_of(number)) & (issuers != null_of(issuers)))
        parts.append((which, number[which], issuers[which], group[bundles.to[which]]))
    which, *keys = (np.concatenate(part) for part in zip(*parts, strict=True))
    folded = np.zeros(len(which), np.int64)
    for key in keys:
        values, places = factorize(key)
        _, folded = factorize(folded * max(1, len(values)) + places)
    several = (np.bincount(folded) > 1)[folded]
    return Sought(which[several], tuple(key[several] for key in keys))


def _repeated(*keys: Ints) -> Ints:
    """The elements that are not the only ones with their keys, equal ones side by side."""
    order = np.lexsort(keys)
    same = np.ones(max(0, len(order) - 1), bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    several = np.zeros(len(order), bool)
    several[1:] |= same
    several[:-1] |= same
    return order[several]


def _sharing(account: Account, bundles: Bundles, sought: Sought) -> list[Shared]:
    """Pairs of bundles that have the same keys, and must not."""
    which, keys = sought
    if not len(which):
        return []
    heads = bundles.head[which]
    senders, lives = account.messages[heads] >> 40, _lives(account, heads)
    order = np.lexsort((heads, lives, senders, *keys))
    same = np.ones(len(order) - 1, bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    heads, lives, senders = heads[order], lives[order], senders[order]
    one_life = (senders[1:] == senders[:-1]) & (lives[1:] == lives[:-1])
    same &= (senders[1:] != senders[:-1]) | (one_life & (heads[1:] != heads[:-1]))
    bundle = which[order]
    return [(int(bundle[at]), int(bundle[at + 1])) for at in np.flatnonzero(same).tolist()]


def _lives(account: Account, places: Ints) -> Ints:
    """For each message, how often its sender had recovered when it was submitted; -1 if it never was."""
    trace = account.trace
    lives = np.zeros(len(places), np.int64)
    submitted = places < len(account.submit_row)
    lives[~submitted] = -1
    recoveries = trace.rows(Kind.RECOVER)
    rows = account.submit_row[places[submitted]]
    for node in np.unique(trace.node[recoveries]).tolist():
        mine = np.flatnonzero(submitted)[trace.node[rows] == node]
        own = recoveries[trace.node[recoveries] == node]
        lives[mine] = np.searchsorted(own, account.submit_row[places[mine]])
    return lives


def _tell(account: Account, findings: Findings, stamped: Stamped, bundles: Bundles, pair: Shared) -> None:
    rows = sorted(int(bundles.row[one]) for one in pair)
    trace = account.trace
    messages = [int(trace.message[row]) for row in rows]
    nodes, times = [int(trace.node[row]) for row in rows], [int(trace.time[row]) for row in rows]
    named = " and ".join(message_at(*one) for one in zip(messages, times, strict=True))
    stamps = " and ".join(str(tuple(int(column[row]) for column in stamped.columns)) for row in rows)
    findings.add(
        nodes,
        messages,
        times,
        f"{named} share a stamp or a number: nodes {nodes[0]} and {nodes[1]} delivered them with {stamps}",
        rows[1],
    )

"""Completion: a client has the answers of all receivers only after all of them delivered its message.

In a simulated run, the deliveries come before the `complete` row. In any other run, where rows of different
machines have no common order, they only have to be there.
"""

import numpy as np

from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import END_OF_RUN, message_at, nodes_named
from ordercast.trace import Kind


def completion(case: Case, findings: Findings) -> None:
    """Find complete messages that some receiver had not delivered."""
    trace = case.trace
    rows = trace.rows(Kind.COMPLETE)
    if not len(rows):
        return
    account = case.everything
    places = _places(account, trace.message[rows])
    simulated = trace.description.source == "simulator"
    limits = rows if simulated else np.full(len(rows), len(trace.kind))
    known = (places >= 0) & (np.append(account.submit_row, len(trace.kind))[places] < limits)
    count = _delivered(account, places[known], limits[known])
    steady = [trace.members.steady(groups) for groups in account.destinations]
    needed = np.array([len(nodes) for nodes in steady], np.int64)
    wrong = ~known
    wrong[known] = count < needed[account.destination[places[known]]]
    for at in findings.wanted(np.flatnonzero(wrong).tolist()):
        place = int(places[at]) if known[at] else -1
        _tell(account, findings, int(rows[at]), place, int(limits[at]), END_OF_RUN if not simulated else None)


def _places(account: Account, messages: Ints) -> Ints:
    """The place of each message among the submitted ones; -1 if it was not submitted."""
    submitted = account.messages[: len(account.submit_row)]
    order = np.argsort(submitted, kind="stable")
    if not len(order):
        return np.full(len(messages), -1)
    near = np.minimum(np.searchsorted(submitted, messages, sorter=order), len(order) - 1)
    found: Ints = np.where(submitted[order[near]] == messages, order[near], -1)
    return found


def _delivered(account: Account, places: Ints, limits: Ints) -> Ints:
    """For each complete message, how many receivers had delivered it before the limit."""
    # A message may be said to be complete twice: each time counts.
    wanted = np.zeros(len(account.messages), bool)
    wanted[places] = True
    counts = wanted[account.place]
    if changed := account.trace.members.changed:  # nobody answers for receivers that join or leave
        counts &= ~np.isin(account.node, changed)
    mine = np.flatnonzero(counts)
    mine = mine[np.lexsort((account.row[mine], account.node[mine], account.place[mine]))]
    first = np.ones(len(mine), bool)  # a receiver that lost its state may deliver it again
    first[1:] = (np.diff(account.place[mine]) != 0) | (np.diff(account.node[mine]) != 0)
    mine = mine[first]
    by_row = mine[np.lexsort((account.row[mine], account.place[mine]))]
    keys = account.place[by_row].astype(np.int64) * len(account.trace.kind) + account.row[by_row]
    size = len(account.trace.kind)
    low = np.searchsorted(keys, places.astype(np.int64) * size)
    high = np.searchsorted(keys, places.astype(np.int64) * size + np.minimum(limits, size - 1), side="right")
    count: Ints = high - low
    return count


def _tell(account: Account, findings: Findings, row: int, place: int, limit: int, step: int | None) -> None:
    trace = account.trace
    node, message = int(trace.node[row]), int(trace.message[row])
    what, missing = "nobody submitted", list[int]()
    if place >= 0:
        had = account.node[(account.place == place) & (account.row < limit)].tolist()
        groups = account.destinations[account.destination[place]]
        missing = sorted(trace.members.steady(groups).difference(had))
        what = f"{nodes_named(missing)} had not delivered"
    told = () if message == null_of(trace.message) else (message,)
    named = message_at(message, int(trace.time[row])) if told else "a message"
    detail = f"node {node} has all answers to {named}, which {what}"
    at = row if step is None else step
    findings.add((node, *missing), told, (int(trace.time[row]),), detail, at)

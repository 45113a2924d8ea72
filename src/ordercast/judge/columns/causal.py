"""Causal order: if a sender knew message a when it submitted b, no receiver delivers a after b.

A host knows the messages that it submitted or delivered, and all that their senders knew. The *past* of a
message is a vector: for each host, the number of its submissions that were known when the message was
submitted. The pasts are built submission by submission. A chain is correct if no message lies in the past of
an earlier one; the running maximum of the pasts shows this for the whole chain at once.
"""

import numpy as np

from ordercast.core import message_name
from ordercast.judge.columns.account import Account, Chain
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, by_key, factorize
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at

CELLS_MAX = 1 << 24
"""How many entries of pasts are compared at a time."""


def causal(case: Case, findings: Findings) -> None:
    """Find deliveries of messages that lie in the past of an earlier one of the chain."""
    account = case.account
    if not len(account.submit_row):
        return
    pasts = _Pasts(account)
    broken = [(late, chain) for chain in account.chains for late in _late(account, chain, pasts)]
    broken.sort(key=lambda found: int(account.row[found[0]]))
    for late, chain in findings.wanted(broken):
        early = _first_knowing(account, chain, pasts, late)
        node = int(account.node[late])
        messages = [account.message(int(account.place[delivery])) for delivery in (late, early)]
        times = (account.time(early), account.time(late))
        findings.add(
            (node,),
            messages,
            times,
            f"node {node} delivered {message_at(messages[0], times[1])} after"
            f" {message_at(messages[1], times[0])}, whose sender already knew"
            f" {message_name(messages[0])}",
            int(account.row[late]),
        )


class _Pasts:
    """For each message and host, how many submissions of the host were known, its own included."""

    def __init__(self, account: Account) -> None:
        trace = account.trace
        host_of = {node.id: node.host for node in trace.description.nodes}
        hosts = np.array([host_of[node] for node in trace.node[account.submit_row].tolist()], np.int64)
        self.hosts, self.host = factorize(hosts)
        order, starts = by_key(self.host, len(self.hosts))
        self.number = np.empty(len(hosts), np.int64)
        """Of each message: its number among the submissions of its host, from 1."""
        self.number[order] = np.arange(len(hosts)) - np.repeat(starts[:-1], np.diff(starts)) + 1
        self.known = np.zeros((len(hosts), len(self.hosts)), np.int32)
        self._done = np.zeros(len(hosts), bool)
        self._before = [order[starts[h] : starts[h + 1]] for h in range(len(self.hosts))]
        self._heard = self._deliveries_by_host(account, host_of)
        for place in range(len(hosts)):
            self._settle(account, place)

    def _deliveries_by_host(self, account: Account, host_of: dict[int, int]) -> list[tuple[Ints, Ints]]:
        """For each host that submits, its deliveries of submitted messages: rows, ascending, and places."""
        host = np.array([host_of[node] for node in account.node.tolist()], np.int64)
        found = []
        for wanted in self.hosts.tolist():
            mine = np.flatnonzero((host == wanted) & (account.place < len(self.host)))
            mine = mine[np.argsort(account.row[mine], kind="stable")]
            found.append((account.row[mine], account.place[mine]))
        return found

    def _settle(self, account: Account, place: int) -> None:
        """Compute the past of a message; first the pasts that it depends on."""
        work = [place]
        entered: set[int] = set()
        while work:
            place = work[-1]
            if self._done[place]:
                work.pop()
                continue
            needed, heard = self._sources(account, place)
            # Two clocks on one host can make a circle of rows: leave out what was entered.
            open_ = [int(p) for p in needed if not self._done[p] and int(p) not in entered]
            if open_ and place not in entered:
                entered.add(place)
                work += open_
                continue
            known = self.known[place]
            if len(needed):
                np.maximum.reduce(self.known[needed], axis=0, out=known)
            if len(heard):
                np.maximum.at(known, self.host[heard], self.number[heard].astype(np.int32))
            known[self.host[place]] = self.number[place]
            self._done[place] = True
            work.pop()

    def _sources(self, account: Account, place: int) -> tuple[Ints, Ints]:
        """The messages whose pasts make up a message's past; and those delivered since its host's last."""
        host = int(self.host[place])
        mine = self._before[host]
        number = int(self.number[place])
        row = int(account.submit_row[place])
        since = int(account.submit_row[mine[number - 2]]) if number > 1 else -1
        rows, places = self._heard[host]
        first, last = np.searchsorted(rows, (since, row))
        heard = places[first:last].astype(np.int64)
        before = mine[number - 2 : number - 1] if number > 1 else mine[:0]
        return np.concatenate([before, heard]), heard


def _submitted(account: Account, chain: Chain, pasts: _Pasts) -> tuple[Ints, Ints]:
    places, where = account.sequence(chain)
    submitted = places < len(pasts.host)
    return places[submitted], where[submitted]


def _first_knowing(account: Account, chain: Chain, pasts: _Pasts, late: int) -> int:
    """The first delivery of a chain that has the message of a later one in its past."""
    places, where = _submitted(account, chain, pasts)
    message = int(account.place[late])
    knowing = pasts.known[places, pasts.host[message]] >= pasts.number[message]
    return int(where[int(np.argmax(knowing))])


def _late(account: Account, chain: Chain, pasts: _Pasts) -> list[int]:
    """Deliveries of a chain that lie in the past of an earlier one."""
    places, where = _submitted(account, chain, pasts)
    width = max(1, CELLS_MAX // max(1, len(pasts.hosts)))
    reached = np.zeros(len(pasts.hosts), np.int32)
    found: list[int] = []
    for start in range(0, len(places), width):
        part = places[start : start + width]
        known = np.vstack([reached[None, :], pasts.known[part]])
        np.maximum.accumulate(known, axis=0, out=known)
        mine = pasts.host[part]
        late = np.flatnonzero(known[np.arange(len(part)), mine] >= pasts.number[part])
        found += where[start + late].tolist()
        reached = known[-1]
    return found

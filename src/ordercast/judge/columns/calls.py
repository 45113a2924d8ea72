"""The calls of a service's clients over columns: what was called, delivered and answered.

A *call* is the first submission of an operation or of a read. Calls are numbered in the order of their rows.
An answer *fits* if its client called the operation before, in the same group. Several answers may fit a call.
"""

from functools import cached_property

import numpy as np

from ordercast.core import GroupId, Groups, Order
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.columns import Flags, Ints, null_of
from ordercast.judge.columns.messages import Places
from ordercast.judge.columns.trace import Trace
from ordercast.trace import ANSWERING, READ, Kind

NOWHERE = -1 << 62
"""The clock of the place before all others."""


class Calls:
    """All calls of a run, and the answers to them."""

    def __init__(self, trace: Trace, account: Account) -> None:
        self._trace = trace
        self._account = account
        rows = trace.rows(Kind.SUBMIT)
        self._places = Places(trace.message[rows])
        self.row: Ints = rows[self._places.is_first]
        """The row of each call."""
        self.message: Ints = self._places.messages
        self.reads: Flags = trace.labelled(self.row, READ)
        """For each call, whether it is a read."""
        self.reply: Ints = trace.rows(*ANSWERING)
        """The rows of all answers."""
        self.of: Ints = self._places.of(trace.message[self.reply])
        """For each answer, the number of the call with this name; -1 if there is none."""
        self._in_group: dict[GroupId, Ints] = {}
        self._asked: Ints = np.append(self.row, 0)[self.of]
        """For each answer, the row of this call."""

    @cached_property
    def group(self) -> Ints:
        """The group of each call."""
        firsts = [next(iter(self._trace.known(groups)), -1) for groups in self._trace.groups.tuples]
        groups: Ints = np.array([*firsts, -1], np.int64)[self._trace.groups.codes[self.row]]
        return groups

    @cached_property
    def delivery(self) -> Ints:
        """The row in which each call was delivered first, in order; -1 if no replica delivered it."""
        return self._first_rows(np.ones(len(self._account.row), bool))

    @cached_property
    def separate(self) -> bool:
        """Whether a call to several groups has a place of its own in each."""
        description = self._trace.description
        return description.guarantees.order is Order.GROUP and len(description.groups) > 1

    def delivery_in(self, group: GroupId) -> Ints:
        """The row in which each call was delivered first by a receiver of a group."""
        if group not in self._in_group:
            self._in_group[group] = self._first_rows(np.isin(self._account.node, self._members(group)))
        return self._in_group[group]

    def _members(self, group: GroupId) -> list[int]:
        """The receivers of a group, also those that joined it later."""
        trace, rows = self._trace, self._trace.rows(Kind.JOINED)
        lists = map(self._lists, trace.groups.codes[rows].tolist())
        joined = zip(trace.node[rows].tolist(), lists, strict=True)
        return [*trace.description.groups[group], *(node for node, groups in joined if group in groups)]

    def _first_rows(self, wanted: Flags) -> Ints:
        account, found = self._account, np.full(len(self.row), -1, np.int64)
        where = np.flatnonzero(wanted if account.ordered is None else wanted & account.ordered)
        where = where[np.argsort(account.row[where], kind="stable")[::-1]]
        calls = self._places.of(account.messages[account.place[where]])
        found[calls[calls >= 0]] = account.row[where[calls >= 0]]
        return found

    def delivery_for(self, number: Ints, reply: Ints) -> Ints:
        """For some calls, the row of the delivery that answers to them must name."""
        found: Ints = self.delivery[number]
        if self.separate:
            firsts = [groups[0] if groups else -1 for groups in (*self._trace.groups.tuples, ())]
            group = np.array(firsts, np.int64)[self._trace.groups.codes[reply]]
            found = np.full(len(number), -1, np.int64)
            for one in self._trace.description.groups:
                found[group == one] = self.delivery_in(one)[number[group == one]]
        return found

    @cached_property
    def fits(self) -> Flags:
        """For each answer, whether its client called for it before."""
        times = self._trace.time
        fits: Flags = (self.of >= 0) & ~self.strange & (times[self.reply] >= times[self._asked])
        return fits

    @cached_property
    def strange(self) -> Flags:
        """For each answer to a call, whether it is to another client or to another call than this."""
        trace, strange = self._trace, np.zeros(len(self.reply), bool)
        strange |= trace.node[self.reply] != trace.node[self._asked]
        codes = np.stack((trace.groups.codes[self.reply], trace.groups.codes[self._asked]), 1)
        pairs, places = np.unique(codes, axis=0, return_inverse=True)
        within = [_within(self._lists(one), self._lists(other)) for one, other in pairs.tolist()]
        strange |= ~np.array(within, bool)[places.ravel()]
        strange |= trace.labelled(self.reply, READ) != np.append(self.reads, False)[self.of]
        return strange

    def _lists(self, code: int) -> tuple[int, ...]:
        return () if code < 0 else self._trace.groups.tuples[code]

    @cached_property
    def first_reply(self) -> Ints:
        """For each call, the row of the first answer that fits; -1 if there is none."""
        found = np.full(len(self.row), -1, np.int64)
        found[self.of[self.fits][::-1]] = self.reply[self.fits][::-1]
        return found

    def place(self, rows: Ints) -> tuple[Ints, Ints, Flags]:
        """The places that some rows name: clocks and issuers; and which rows name one."""
        clock, issuer = (self._trace.column(name)[rows] for name in ("stamp_clock", "stamp_issuer"))
        named: Flags = (clock != null_of(clock)) & (issuer != null_of(issuer))
        return clock, issuer, named

    def in_group(self, group: GroupId) -> Ints:
        """The numbers of the calls in a group."""
        return np.flatnonzero(self.group == group)


def _within(answering: Groups, called: Groups) -> bool:
    """Whether an answer comes from some of the groups that were called."""
    return bool(answering) and set(answering) <= set(called)

"""Phase 1 of Fast Paxos: which values may have been chosen by fast votes.

Of the records of a slot, those of the highest ballot count. In one ballot only the value that its leader
voted for can be chosen, by a majority of classic votes or by a fast quorum of q votes of either kind.

- A classic vote in that ballot names the leader's value. So it is proposed, whether it was chosen or not.
- Without one, the leader of that ballot has not reported. If a value was chosen, then by q votes, of which at
  most n - m belong to replicas that have not reported (m is a majority). So at least q - (n - m) of the
  reports name it. Not so many can name another value: at most n - q replicas voted for others.
- If no value is named so often, none was chosen, and the new leader is free. It takes the one that is named
  most often, so that fewer calls have to come again.
"""

from ordercast.components.consensus.election import Election
from ordercast.components.consensus.log import Group, Log
from ordercast.components.consensus.messages import Prepare, Promise
from ordercast.core import NodeId
from ordercast.replication.fast_paxos.fast_journal import FastJournal
from ordercast.replication.fast_paxos.messages import FastPromise

Vote = tuple[int, bool, bytes]
"""Ballot, whether it is a fast vote, and value."""


def fast_quorum(group: Group) -> int:
    """So many votes that two fast quorums and a majority have a replica in common: f + (f+1)//2 + 1."""
    return (2 * len(group.peers) - group.majority) // 2 + 1


def named_at_least(group: Group) -> int:
    """In so many reports of a majority a value is named that a fast quorum has chosen."""
    return fast_quorum(group) - (len(group.peers) - group.majority)


def fast_report(log: Log, asked: Prepare) -> Promise:
    """The promise of a voter, with a chunk of its votes."""
    assert isinstance(log.journal, FastJournal)
    entries, following = log.journal.accepted_from(asked.start, log.options.chunk_bytes)
    fast = tuple(slot for slot, _, _ in entries if slot in log.journal.fast)
    return FastPromise(asked.ballot, asked.start, entries, following, log.journal.lives_told(), fast)


def choose(votes: list[Vote], group: Group) -> bytes:
    """What a new leader proposes for a slot with these votes, one a replica."""
    highest = max(ballot for ballot, _, _ in votes)
    latest = [(fast, value) for ballot, fast, value in votes if ballot == highest]
    for fast, value in latest:
        if not fast:
            return value
    named: dict[bytes, int] = {}
    for _, value in latest:
        named[value] = named.get(value, 0) + 1
    enough = [value for value, count in named.items() if count >= named_at_least(group)]
    return enough[0] if enough else max(named, key=lambda value: (named[value], value))


class FastElection(Election):
    """One candidacy: the votes of each replica."""

    __slots__ = ("_votes",)

    def __init__(self, log: Log, ballot: int) -> None:
        self._votes: dict[int, dict[NodeId, Vote]] = {}
        super().__init__(log, ballot)

    def values(self) -> dict[int, bytes]:
        """What the new leader must propose, for slots not committed yet."""
        log = self._log
        journal = log.journal
        assert isinstance(journal, FastJournal)
        for slot, (ballot, value) in journal.entries.items():
            self._votes.setdefault(slot, {})[log.env.me] = (ballot, slot in journal.fast, value)
        return {
            slot: choose(list(votes.values()), log.group)
            for slot, votes in self._votes.items()
            if slot >= log.committed
        }

    def _take(self, source: NodeId, message: Promise) -> None:
        fast = frozenset(message.fast) if isinstance(message, FastPromise) else frozenset[int]()
        for slot, ballot, value in message.entries:
            self._votes.setdefault(slot, {})[source] = (ballot, slot in fast, value)

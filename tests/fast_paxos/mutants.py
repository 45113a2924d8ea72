"""Fast Paxos broken on purpose, and the scene that shows it."""

from typing import Any

from ordercast.components.consensus.journal import Journal
from ordercast.components.consensus.log import Group
from ordercast.replication.fast_paxos import fast_election, fast_leadership
from ordercast.replication.fast_paxos.fast_journal import FastJournal
from ordercast.replication.fast_paxos.fast_leadership import FastLeadership
from ordercast.replication.fast_paxos.fast_replica import FastReplica
from ordercast.replication.fast_paxos.messages import Open
from tests.consensus.mutants import Mutant
from tests.fast_paxos.test_log import (
    closed_slot,
    fast_decision,
    own_vote,
    second_vote,
    small_quorum,
    vote_of_an_earlier_life,
)


def _two(group: Group) -> int:
    return 2


def _own_vote_first(votes: list[Any], group: Group) -> bytes:
    highest = max(ballot for ballot, _, _ in votes)
    value: bytes = max(value for ballot, _, value in votes if ballot == highest)
    return value


def _never_voted(self: FastReplica, slot: int) -> bool:
    return slot < self._next


def _old_votes_count(self: FastLeadership, index: int) -> None:
    pass


def _all_slots_open(
    self: FastReplica, source: int, index: int, message: Any, _fast: Any = FastReplica._on_fast
) -> None:
    _fast(self, source, index, Open(message.ballot, 0) if isinstance(message, Open) else message)


def _fast_is_classic(
    self: FastLeadership, index: int, slot: int, digest: bytes, _count: Any = FastLeadership._count
) -> None:
    _count(self, index, slot, digest)
    flight = self.flights.get(slot)
    if isinstance(flight, fast_leadership.FastFlight):
        flight.accepted |= flight.votes


MUTANTS = (
    Mutant("a fast quorum of two", fast_leadership, "fast_quorum", _two, small_quorum),
    Mutant("fast votes count as classic ones", FastLeadership, "_count", _fast_is_classic, small_quorum),
    Mutant("reports are not counted", fast_election, "choose", _own_vote_first, fast_decision),
    Mutant("an own vote is committed", FastJournal, "is_certain", Journal.is_certain, own_vote),
    Mutant("two votes in a slot", FastReplica, "_has_voted", _never_voted, second_vote),
    Mutant("old lives vote", FastLeadership, "forget_votes", _old_votes_count, vote_of_an_earlier_life),
    Mutant("votes below the opened slots", FastReplica, "_on_fast", _all_slots_open, closed_slot),
)

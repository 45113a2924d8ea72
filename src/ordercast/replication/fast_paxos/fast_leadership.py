"""Phase 2 of Fast Paxos at a leader: it votes like all others, and counts.

The leader gives a call that comes from its client the next slot: that is its vote. A slot is chosen with the
votes of a fast quorum, the leader's among them, and then costs one message delay less than with a proposal.
If a replica has voted for something else there, or the quorum stays out, the leader proposes its own value as
in Multi-Paxos, and a majority of classic votes is enough. While it hears of fewer replicas than a fast quorum
has, it proposes at once.

Keeping in step. A replica that missed a call votes for all later calls one slot too early, and each of them
is a conflict. So at a conflict the leader proposes all that it has voted for from there on: the other follows
it up to its last slot, and is in step again. If it is the leader that missed a call, the others are ahead of
it: they vote for all calls that many slots too late. A leader that sees this several times in a row leaves so
many slots out.
"""

from ordercast.components.consensus.journal import NOOP
from ordercast.components.consensus.leadership import Flight, Leadership
from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Accept
from ordercast.core import Nanos
from ordercast.replication.fast_paxos.fast_election import fast_quorum
from ordercast.replication.fast_paxos.fast_journal import digest_of
from ordercast.replication.fast_paxos.messages import FastCommit, FastVote, Open

SILENT_BEATS = 2
"""A replica that has left more heartbeats unanswered is not waited for."""


STEPS_MAX = 3
"""So many votes of a replica in a row that are the same number of slots late show that it is ahead. A vote
that so many later ones have overtaken is lost. Packets that overtake each other on the way cause fewer."""


class FastFlight(Flight):
    """One slot in flight: also a bit for each replica that voted for its value by itself."""

    __slots__ = ("classic", "digest", "votes")

    def __init__(self, own: int, now: Nanos, value: bytes, *, classic: bool) -> None:
        super().__init__(own, now)
        self.votes = own
        self.digest = digest_of(value)
        self.classic = classic
        """Whether the leader has proposed it."""


class FastLeadership(Leadership):
    """One ballot in which this replica leads."""

    __slots__ = ("_ahead", "_early", "_given", "_quorum", "_skip")

    def __init__(self, log: Log, ballot: int, recovered: dict[int, bytes]) -> None:
        self._early: dict[int, dict[int, bytes]] = {}
        """Votes for slots that this replica has not voted for: by slot and replica, digests."""
        self._given: dict[bytes, int] = {}
        """Digests of values that have slots, and which, the oldest first."""
        self._ahead = [(0, 0)] * len(log.group.peers)
        """By how many slots the last votes of each replica were late, and how many in a row."""
        self._skip = 0
        """Slots to leave out, so that replicas that are ahead are in step again."""
        self._quorum = fast_quorum(log.group)
        super().__init__(log, ballot, recovered)

    def place(self, value: bytes) -> bool:
        """Vote for a value in the next slot; False if the window or the log has no room."""
        self._pump()
        while self._skip and self._has_room():
            self._skip -= 1
            self._early.pop(self._following, None)
            self._give(NOOP, classic=True)
        if not self._has_room():
            return False
        early = self._early.pop(self._following, {})
        slot = self._give(value, classic=not self._hears_quorum())
        for index, digest in early.items():
            self._count(index, slot, digest)
        self._advance()
        return True

    def on_vote(self, index: int, message: FastVote) -> None:
        """A replica voted for a value by itself."""
        if message.ballot != self.ballot or message.life < self._log.journal.lives[index]:
            return
        self._unanswered[index] = 0
        self._keep_step(index, message)
        if message.slot >= self._following:
            if message.slot < self._log.committed + 2 * self._log.options.window:
                self._early.setdefault(message.slot, {})[index] = message.digest
            return
        self._count(index, message.slot, message.digest)
        self._hurry(index, message.slot)
        self._advance()

    def forget_votes(self, index: int) -> None:
        """A replica has lost its memory, and may vote again in slots that this one has not given away yet."""
        for votes in self._early.values():
            votes.pop(index, None)

    def _hears_quorum(self) -> bool:
        return sum(count <= SILENT_BEATS for count in self._unanswered) >= self._quorum

    def _has_room(self) -> bool:
        return self._following - self._log.committed < self._log.options.window and not self.full()

    def _keep_step(self, index: int, vote: FastVote) -> None:
        """Find out whether a replica is ahead of this one."""
        late = max(0, vote.slot - self._given.get(vote.digest, vote.slot))
        before, times = self._ahead[index]
        self._ahead[index] = (late, times + 1 if late == before else 1)
        if late and self._ahead[index][1] >= STEPS_MAX:
            self._skip = max(self._skip, late)
            self._ahead = [(0, 0)] * len(self._ahead)

    def _give(self, value: bytes, *, classic: bool) -> int:
        """Give a value the next slot, for good: a leader votes once in a slot and ballot."""
        slot = self._following
        self._following = self._sent = slot + 1
        if classic:
            self._launch(slot, value)
        else:
            self._vote(slot, value, classic=False)
        return slot

    def _vote(self, slot: int, value: bytes, *, classic: bool) -> None:
        log = self._log
        log.journal.accept(slot, self.ballot, value)
        flight = FastFlight(1 << log.group.index, log.env.now, value, classic=classic)
        self.flights[slot] = flight
        self._given[flight.digest] = slot
        if len(self._given) > 2 * log.options.window:
            del self._given[next(iter(self._given))]

    def _launch(self, slot: int, value: bytes) -> None:
        log = self._log
        self._vote(slot, value, classic=True)
        log.env.multicast(log.group.others, Accept(self.ballot, slot, value, log.committed))

    def _count(self, index: int, slot: int, digest: bytes) -> None:
        flight = self.flights.get(slot)
        if not isinstance(flight, FastFlight):
            return
        if flight.digest == digest:
            flight.votes |= 1 << index
        elif not flight.classic:
            self._realign(slot)

    def _hurry(self, index: int, slot: int) -> None:
        """Propose the oldest slot if later votes of a replica have come, and its vote there has not."""
        first = self._log.committed
        flight = self.flights.get(first)
        if not isinstance(flight, FastFlight) or flight.classic or flight.votes >> index & 1:
            return
        if slot >= first + STEPS_MAX:
            self._repeat(first, flight)

    def _realign(self, start: int) -> None:
        """Propose all that this replica has voted for, from a conflict on."""
        for slot, flight in self.flights.items():
            if slot >= start and isinstance(flight, FastFlight) and not flight.classic:
                self._repeat(slot, flight)

    def _repeat(self, slot: int, flight: Flight) -> None:
        if isinstance(flight, FastFlight):
            flight.classic = True
        super()._repeat(slot, flight)

    def _is_chosen(self, flight: Flight) -> bool:
        fast = isinstance(flight, FastFlight) and flight.votes.bit_count() >= self._quorum
        return fast or super()._is_chosen(flight)

    def _tell_commit(self, before: int) -> None:
        log = self._log
        digests = tuple(digest_of(log.journal.entries[slot][1]) for slot in range(before, log.committed))
        log.env.multicast(log.group.others, FastCommit(self.ballot, before, digests, log.committed))
        self._early = {slot: votes for slot, votes in self._early.items() if slot >= log.committed}

    def _announce(self, *, asks: bool = False) -> None:
        super()._announce(asks=asks)
        self._log.env.multicast(self._log.group.others, Open(self.ballot, self._inherited))

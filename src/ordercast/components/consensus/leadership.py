"""Phase 2 at a leader: slots in flight, acknowledgements, commit notices, repetition.

A leader commits only by counting in its own ballot, and in the order of slots. When nothing is left
in flight it says so at once; while slots follow each other, the notice rides on the next Accept.

Followers answer heartbeats. A leader that no majority answers may be heard all the same, and then nobody
would stand against it: it must give up by itself.

A read that is not put into the log needs to know that this replica still led after the read had come. It
waits for a *round*: a question that was sent after it came, and that a majority has answered. Reads that
come while a round is under way share the next one.
"""

from itertools import islice
from typing import NamedTuple

from ordercast.components.consensus.journal import NOOP
from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Accept, Accepted, Commit, Confirm, Confirmed, Heard
from ordercast.components.consensus.options import BACKOFF_MAX
from ordercast.core import Nanos, Wait


class Flight:
    """One slot in flight: a bit for each replica that accepted it, and when it was last sent."""

    __slots__ = ("accepted", "began", "repeats", "sent")

    def __init__(self, accepted: int, now: Nanos) -> None:
        self.accepted = accepted
        self.began = now
        self.sent = now
        self.repeats = 0


class Barrier(NamedTuple):
    """What must have happened before a read that came to a leader may be answered."""

    ballot: int
    round: int
    slot: int


class Leadership:
    """One ballot in which this replica leads."""

    __slots__ = (
        "_answered",
        "_delivering",
        "_following",
        "_inherited",
        "_log",
        "_recovered",
        "_round",
        "_sent",
        "_unanswered",
        "_wanted",
        "ballot",
        "flights",
        "stable",
    )

    def __init__(self, log: Log, ballot: int, recovered: dict[int, bytes]) -> None:
        self.ballot = ballot
        self.flights: dict[int, Flight] = {}
        """In the order of slots, as they are proposed in that order."""
        self.stable = [log.journal.base] * len(log.group.peers)
        """For each replica, slots below are in its durable snapshot."""
        self._log = log
        self._recovered = recovered
        """Values that phase 1 found and that were not proposed yet; holes become no-ops."""
        self._sent = log.committed
        """Slots below were proposed in this ballot, or committed before it."""
        self._following = max(recovered, default=log.committed - 1) + 1
        """The slot that the next new value gets."""
        self._inherited = self._following
        """Slots below may have been decided, and answered for, in earlier ballots."""
        self._round = 0
        self._wanted = 0
        """The round that the latest read waits for."""
        self._answered = [0] * len(log.group.peers)
        """The last round that each replica has answered."""
        self._delivering = False
        self._unanswered = [0] * len(log.group.peers)
        """Heartbeats since each replica last answered."""
        self._pump()
        self._advance()

    def propose(self, value: bytes) -> bool:
        """Put a new value into the next slot, if the window and the log have room."""
        self._pump()
        slot = self._following
        if slot - self._log.committed >= self._log.options.window or self.full():
            return False
        self._following = self._sent = slot + 1
        self._launch(slot, value)
        self._advance()
        return True

    def full(self) -> bool:
        """Whether as many slots are kept as the log may hold."""
        return self._following - self._log.journal.base >= self._log.options.log_limit

    def on_accepted(self, index: int, message: Accepted) -> None:
        """A replica accepted a slot."""
        if message.ballot != self.ballot:
            return
        self._unanswered[index] = 0
        flight = self.flights.get(message.slot)
        if flight is not None:
            flight.accepted |= 1 << index
            self._advance()

    def on_heard(self, index: int, message: Heard) -> None:
        """A replica hears this leader, and its snapshot covers the slots below this one."""
        if message.ballot == self.ballot:
            self._unanswered[index] = 0
            self.stable[index] = max(self.stable[index], message.stable)

    def on_confirmed(self, index: int, message: Confirmed) -> None:
        """A replica had promised no higher ballot when a round came to it."""
        if message.ballot == self.ballot:
            self._answered[index] = max(self._answered[index], min(message.round, self._round))
            if self._round < self._wanted and self._confirmed() >= self._round:
                self._begin_round()

    def barrier(self) -> Barrier:
        """What a read that came now must wait for."""
        if self._confirmed() >= self._round:
            self._wanted = self._round + 1
            self._begin_round()
        else:  # the round under way began before the read came
            self._wanted = self._round + 1
        return Barrier(self.ballot, self._wanted, max(self._log.committed, self._inherited))

    def passes(self, barrier: Barrier) -> bool:
        """Whether a majority has confirmed this leadership since, and nothing earlier is undecided."""
        return self._confirmed() >= barrier.round and self._log.committed >= barrier.slot

    @property
    def end(self) -> int | None:
        """Slots below are proposed in this ballot, or committed; None while earlier ones are left to do."""
        return self._following if self._sent >= self._following else None

    def is_unheard(self) -> bool:
        """Whether no majority has answered for so long that this replica may be cut off."""
        limit, group = self._log.options.unanswered_max, self._log.group
        return sum(count < limit for count in self._unanswered) < group.majority

    def tick(self) -> None:
        """Heartbeat, truncation, and repetition of what was not acknowledged in time."""
        log, now = self._log, self._log.env.now
        self._unanswered = [count + 1 for count in self._unanswered]
        self.on_heard(log.group.index, Heard(self.ballot, log.journal.stable))
        # The announcement goes out first: by then the own snapshot is durable, and slots may go.
        self._announce(asks=True)
        if self._confirmed() < self._round:
            self._ask_round()
        log.journal.truncate(self._floor())
        for slot, flight in islice(self.flights.items(), log.options.burst):
            if now - flight.sent >= log.options.retry_ns << min(flight.repeats, BACKOFF_MAX):
                self._repeat(slot, flight)

    def waits(self) -> list[Wait]:
        """What is in flight, and who keeps the log from growing."""
        peers = self._log.group.peers
        waits = []
        for slot, flight in self.flights.items():
            silent = tuple(p for i, p in enumerate(peers) if not flight.accepted >> i & 1)
            blocker = f"an acknowledgement from nodes {', '.join(map(str, silent))}"
            waits.append(Wait(f"slot {slot}", blocker, flight.began, on=silent))
        if self.full():
            floor = self._floor()
            behind = tuple(p for p, slot in zip(peers, self.stable, strict=True) if slot <= floor)
            names = ", ".join(map(str, behind))
            blocker = f"room in the log, which needs a snapshot after slot {floor} from nodes {names}"
            waits.append(Wait("new proposals", blocker, self._log.env.now, on=behind))
        return waits

    def _launch(self, slot: int, value: bytes) -> None:
        log = self._log
        log.journal.accept(slot, self.ballot, value)
        self.flights[slot] = Flight(1 << log.group.index, log.env.now)
        log.env.multicast(log.group.others, Accept(self.ballot, slot, value, log.committed))

    def _pump(self) -> None:
        """Propose what phase 1 found, as far as the window allows."""
        while self._sent < min(self._following, self._log.committed + self._log.options.window):
            slot = self._sent
            self._sent = slot + 1
            self._launch(slot, self._recovered.pop(slot, NOOP))

    def _advance(self) -> None:
        """Commit and deliver what a majority accepted; who gets it may propose, but not re-enter this."""
        if self._delivering:
            return
        log, before = self._log, self._log.committed
        self._delivering = True
        while flight := self.flights.get(log.committed):
            if not self._is_chosen(flight):
                break
            del self.flights[log.committed]
            log.deliver_next()
            self._pump()
        self._delivering = False
        if log.committed > before:
            self._tell_commit(before)

    def _is_chosen(self, flight: Flight) -> bool:
        return flight.accepted.bit_count() >= self._log.group.majority

    def _tell_commit(self, before: int) -> None:
        """Slots from `before` on were committed."""
        if not self.flights:
            self._announce()

    def _announce(self, *, asks: bool = False) -> None:
        log = self._log
        notice = Commit(self.ballot, log.committed, self._floor(), asks)
        log.env.multicast(log.group.others, notice)

    def _floor(self) -> int:
        """Slots below need not be kept.

        They are in the snapshots of all replicas. Where snapshots can be sent, those of a majority will do,
        but slots stay for replicas that lag a little, until they fill half of the log.
        """
        log = self._log
        if not log.owner.transfers:
            return min(self.stable)
        of_majority = sorted(self.stable, reverse=True)[log.group.majority - 1]
        return max(min(self.stable), min(of_majority, log.committed - log.options.log_limit // 2))

    def _confirmed(self) -> int:
        """The last round that a majority has answered."""
        return sorted(self._answered, reverse=True)[self._log.group.majority - 1]

    def _begin_round(self) -> None:
        self._round += 1
        self._answered[self._log.group.index] = self._round
        self._ask_round()

    def _ask_round(self) -> None:
        missing = [p for p, r in zip(self._log.group.peers, self._answered, strict=True) if r < self._round]
        self._log.env.multicast(missing, Confirm(self.ballot, self._round))

    def _repeat(self, slot: int, flight: Flight) -> None:
        log = self._log
        flight.sent = log.env.now
        flight.repeats += 1
        missing = [p for i, p in enumerate(log.group.peers) if not flight.accepted >> i & 1]
        value = log.journal.entries[slot][1]
        log.env.multicast(missing, Accept(self.ballot, slot, value, log.committed))

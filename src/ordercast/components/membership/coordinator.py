"""Who leads a change of the view, when, and how it goes on when others lead too.

The lowest voter that sits in the view and is connected leads; if none does, the lowest voter that is
connected. It leads only if it is connected with a majority, because members stop when a change begins.
Nodes may differ in whom they suspect, so two may lead; the higher ballot wins, and the other one waits a
random time.
"""

from collections.abc import Callable

from ordercast.components.membership.ballot import ballot_above
from ordercast.components.membership.candidates import Candidates
from ordercast.components.membership.change import DECIDED, Change
from ordercast.components.membership.detector import Detector
from ordercast.components.membership.journal import VoteJournal
from ordercast.components.membership.limits import check_claim, check_record, check_round, check_stopped
from ordercast.components.membership.messages import Agreed, Flushed, Stopped
from ordercast.components.membership.record import Seat
from ordercast.components.membership.roster import Roster
from ordercast.components.membership.traffic import Traffic
from ordercast.core import Env, NodeId

BACKOFF_BEATS = 4
"""A coordinator that met a higher ballot waits up to so many heartbeats before it tries again."""


class Coordinator:
    """Decides whether this node leads a change, and leads it."""

    __slots__ = (
        "_asks",
        "_candidates",
        "_detector",
        "_env",
        "_journal",
        "_pause",
        "_roster",
        "change",
        "seen",
    )

    def __init__(
        self,
        env: Env,
        journal: VoteJournal,
        detector: Detector,
        candidates: Candidates,
        roster: Roster,
        asks: Callable[[], bool],
    ) -> None:
        self._env = env
        self._journal = journal
        self._detector = detector
        self._candidates = candidates
        self._roster = roster
        self._asks = asks
        """Whether this node wants a change, for example because it comes in."""
        self._pause = 0
        """Heartbeats before this node may lead another change."""
        self.change: Change | None = None
        self.seen = 0
        """The highest ballot heard of."""

    def tick(self) -> None:
        """One more heartbeat: begin a change if one is needed, or ask again in the one under way."""
        self._pause = max(0, self._pause - 1)
        self.yield_to(self._detector.ballot)
        if not self._may_lead():
            self.change = None
        elif self.change is not None and self.change.broken:
            self._begin()
        elif self.change is not None:
            self.change.advance()
            self.change.solicit()
        elif self._pause == 0 and self._is_needed():
            self._begin()

    def on_stopped(self, source: NodeId, message: Stopped, traffic: Traffic | None) -> None:
        """A member or voter has stopped, and says what it has."""
        record = self._journal.record
        if message.view == record.number:
            check_claim(source, message, record, self._env.now)
            check_round(source, message.accepted_ballot, self.seen)
            check_stopped(source, message, record, traffic)
            if message.accepted is not None:
                check_record(source, message.accepted, record, self._roster, self._env.now)
            self.on_answer(source, message)

    def on_answer(self, source: NodeId, message: Stopped | Flushed | Agreed) -> None:
        """A node answered in a change; answers in other ballots do not count."""
        change = self.change
        if change is None or (message.view, message.ballot) != (self._journal.record.number, change.ballot):
            return
        match message:
            case Stopped():
                change.on_promise(source, message)
            case Flushed():
                change.on_flushed(source)
            case Agreed():
                change.on_accepted(source)
        if change.phase is DECIDED:
            self.change = None

    def yield_to(self, ballot: int) -> None:
        """Somebody has promised this ballot: give up a lower one, and wait before the next."""
        self.seen = max(self.seen, ballot)
        if self.change is not None and self.change.ballot < ballot:
            self.change = None
            self._pause = self._env.rng.randint(1, BACKOFF_BEATS)

    def end(self) -> None:
        """A view was decided."""
        self.change = None
        self._pause = 0

    def _begin(self) -> None:
        ballot = ballot_above(max(self.seen, self._journal.promised, self._detector.ballot), self._env.me)
        self.seen = ballot
        self._journal.promise(ballot)  # so that a later life does not use it again
        self.change = Change(
            self._env,
            self._journal.record,
            ballot,
            self._detector.connected,
            self._present,
            self._candidates.newcomers,
            self._roster,
        )
        self.change.solicit()

    def _may_lead(self) -> bool:
        """Whether this node is the lowest that may lead, and is connected with a majority.

        One that lost its state must not lead: it might use a ballot of its earlier life again.
        """
        record, detector = self._journal.record, self._detector
        voters = [n for n in record.voters if detector.connected(n) and not detector.abstains(n)]
        if self._journal.abstains or len(voters) < record.majority:
            return False
        sitting = [seat.node for seat in filter(self._present, record.seats) if seat.node in voters]
        return (sitting or voters)[0] == self._env.me

    def _present(self, seat: Seat) -> bool:
        """Whether a member is connected and still in its seat: it has not begun another life."""
        if seat.node == self._env.me:
            return seat.incarnation == self._journal.incarnation
        return self._detector.connected(seat.node) and seat.incarnation >= self._detector.incarnation(
            seat.node
        )

    def _is_needed(self) -> bool:
        """Whether somebody failed, was removed, asks for a change or comes in, or others have stopped."""
        record, detector = self._journal.record, self._detector
        stay = all(map(self._present, record.seats)) and self._roster.removed.isdisjoint(record.peers)
        asked = self._asks() or any(map(detector.asks, record.peers))
        under_way = self._journal.promised or detector.ballot
        return bool(not stay or asked or under_way or self._candidates.newcomers())

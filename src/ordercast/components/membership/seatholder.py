"""The seat of a node: how it asks for one, comes in, goes on from view to view, and goes out.

The events that come from outside are in `view_synchrony.py`.
"""

from collections.abc import Callable

from ordercast.components.membership.candidates import Candidates
from ordercast.components.membership.coordinator import Coordinator
from ordercast.components.membership.detector import Detector
from ordercast.components.membership.exchange import Exchange
from ordercast.components.membership.journal import VoteJournal
from ordercast.components.membership.messages import Join
from ordercast.components.membership.options import ViewOptions
from ordercast.components.membership.pulse import Pulse
from ordercast.components.membership.record import InstalledView, ViewRecord, first_view
from ordercast.components.membership.roster import Roster
from ordercast.components.membership.seating import Seating
from ordercast.components.membership.standing import (
    ADMITTED,
    CHANGING,
    JOINING,
    MEMBER,
    OUT,
    STANDINGS,
    Standing,
    StandingEvent,
)
from ordercast.components.membership.transfer import Sponsor, Transfer
from ordercast.components.membership.voter import Voter
from ordercast.core import (
    ANEW,
    Env,
    GroupId,
    Groups,
    Nanos,
    Process,
    Unconfirmed,
    View,
)


def ignore(state: bytes) -> None:
    """Restore nothing."""


class Seatholder(Process):
    """The seat of a member, or of a node that wants one."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        seating: Seating,
        options: ViewOptions,
        snapshot: Callable[[], bytes] = bytes,
        restore: Callable[[bytes], None] = ignore,
    ) -> None:
        super().__init__(env)
        self._group = group
        self._founding = seating.wish(env.me)
        self.wants = self._founding
        """The groups that this node wants to receive; None if it does not want to sit."""
        self._options = options
        self._snapshot = snapshot
        self._restore = restore
        self.standing: Standing = OUT
        self.journal = VoteJournal(env, first_view(seating.founders), self.wants)
        self.voter = Voter(env, self.journal)
        self.roster = Roster(seating.nodes, seating.removed)
        self.detector = Detector(env.me, options.silences_max)
        self.candidates = Candidates(options.silences_max)
        self.exchange = Exchange(env, group, options, lambda: self.standing is MEMBER)
        parts = (self.journal, self.detector)
        self.coordinator = Coordinator(env, *parts, self.candidates, self.roster, self._needs_change)
        self.pulse = Pulse(env, *parts, self.exchange, self.coordinator, self._asks)
        self.transfer: Transfer | None = None
        self.since: Nanos = 0
        """When the standing last changed."""
        self._sponsor: Sponsor | None = None
        self._outlived = 0
        """The view after which the owner wants another one, whoever its members are."""
        self.saw_all = False
        """Whether this node, which left, has got just those messages of its last view that all others got."""

    @property
    def view(self) -> InstalledView | None:
        """The view in which this node is a member; None if it is in none."""
        return self.newest if self.standing in (MEMBER, CHANGING) else None

    @property
    def is_out(self) -> bool:
        """Whether this node neither sits nor asks for a seat."""
        return self.standing is OUT

    @property
    def receives(self) -> Groups:
        """The groups that this node is in. One that was excluded is still in them, and comes back."""
        return self.journal.groups or ()

    @property
    def first_without(self) -> int:
        """The first view after those in which this node sat, if it sits no more."""
        record = self.journal.record
        return record.number + (record.seat_of(self.env.me) is not None)

    @property
    def newest(self) -> InstalledView:
        """The newest view that is known, with or without this node."""
        record = self.journal.record
        return InstalledView(record.number, record.members, record.newcomers, record.voters, record.groups)

    def _asks(self) -> bool:
        """Whether this node wants another place than it has.

        One that does not want to sit, but votes, asks not to vote, if another member can do it.
        """
        record, me = self.journal.record, self.env.me
        if self.view is not None:
            return self.wants != record.groups_of(me) or self._outlived == record.number
        others = set(record.voters).intersection(record.members)
        return self.wants is None and me in record.voters and bool(others)

    def _needs_change(self) -> bool:
        """Whether this node has a reason of its own to lead a change; it may also take itself in."""
        return self.standing is JOINING or self._asks()

    # Coming and going

    def _come_in(self) -> None:
        """Ask for a seat, as a new incarnation."""
        self._on(StandingEvent.ASK)
        self.journal.begin_incarnation()
        self._ask()

    def _ask(self) -> None:
        """Ask the members, and nodes that may know who is one."""
        journal, me = self.journal, self.env.me
        others = {*journal.record.peers, *self.roster.present} - self.roster.removed - {me}
        request = Join(journal.record.number, journal.incarnation, self.wants or ())
        self.env.multicast(tuple(sorted(others)), request)

    def _stop(self) -> None:
        """Neither send nor deliver until the next view; who has not got the state of this one gives it up."""
        self.exchange.cut = None
        if self.standing is MEMBER:
            self._on(StandingEvent.STOP)
            self.exchange.stop()
        elif self.standing is ADMITTED:
            self._go_out()

    # Views

    def _learn(self, record: ViewRecord) -> None:
        """A view was decided: install it, come in, or go out."""
        before = self.journal.record
        if record.number <= before.number:
            return
        seat, traffic = record.seat_of(self.env.me), self.exchange.traffic
        mine = seat is not None and seat.incarnation == self.journal.incarnation
        stays = mine and self.standing is CHANGING and record.number == before.number + 1
        comes = mine and self.standing is JOINING
        if stays and traffic is not None and traffic.reaches(record.cut):
            traffic.deliver_rest(record.cut)
            self._begin_view(record)
            self._on(StandingEvent.INSTALL)
            self._announce()
        elif comes:
            self._begin_view(record)
            self._on(StandingEvent.ADMIT)
            self._get_state(record)
        else:
            self._pass_by(record)

    def _begin_view(self, record: ViewRecord) -> None:
        """Take up a view in which this node has a seat."""
        has_state = self.standing is CHANGING
        if has_state:
            self.journal.groups = record.groups_of(self.env.me)
        self._follow(record)
        self._sponsor = Sponsor(record.number, self._snapshot()) if has_state and record.newcomers else None
        self.exchange.begin(record)

    def _follow(self, record: ViewRecord) -> None:
        """Know of a view, and watch its members and voters."""
        self.journal.learn(record)
        self.detector.watch(record.peers)
        for seat in record.seats:
            self.candidates.settle(seat.node, seat.incarnation)
        self.coordinator.end()
        self._sponsor = self.transfer = None

    def _pass_by(self, record: ViewRecord) -> None:
        """A view without this node: tell the owner if it was a member, and ask to come in again."""
        was_member, traffic, before = self.view is not None, self.exchange.traffic, self.journal.record
        cut = record.cut if record.number == before.number + 1 else None
        self.saw_all = False
        if self.wants is None:
            self.journal.groups = None
            if cut is not None and traffic is not None and traffic.reaches(cut):
                traffic.deliver_rest(cut)
                self.saw_all = self.exchange.received == cut
        self._follow(record)
        if self.standing in (MEMBER, CHANGING, ADMITTED):
            self._go_out(cut)
        elif self.standing is JOINING:
            self._ask()  # a request counts if it names the newest view
        if was_member:
            self.env.deliver(View(self._group, record.number, record.members))

    def _go_out(self, cut: tuple[int, ...] | None = None) -> None:
        """Lose the seat. What others have not got, or may not have got, is given back."""
        lost = self.exchange.end(cut, queue=self.wants is None)
        self._on(StandingEvent.EXCLUDE)
        self.transfer = None
        if self.wants is not None and self._options.returns:
            self._come_in()
        for payload in lost:
            self.env.deliver(Unconfirmed(self._group, (self._group,), payload))

    def _get_state(self, record: ViewRecord) -> None:
        sources = tuple(node for node in record.members if node not in record.newcomers)
        if sources:
            self.transfer = Transfer(self.env, record.number, sources)
            self.transfer.ask()
        else:
            self._inform(b"")  # nobody of the view before is left

    def _inform(self, state: bytes) -> None:
        """This newcomer has the state: it begins."""
        self.transfer = None
        self.journal.groups = self.journal.record.groups_of(self.env.me)
        self.journal.save()
        self._restore(state)
        self._on(StandingEvent.INFORM)
        self._announce(ANEW)

    def _announce(self, note: str = "") -> None:
        """Deliver the view, then what has come in it, and send what has waited for it."""
        record = self.journal.record
        self.env.deliver(View(self._group, record.number, record.members, note))
        self.exchange.catch_up()

    def _on(self, event: StandingEvent) -> None:
        self.standing = STANDINGS.after(self.standing, event)
        self.since = self.env.now

"""View synchrony: a group whose members agree on who is in it, as a process that others embed.

Theory of operation. Members multicast in a *view*, each numbered, reliable and in the order of its sender
(`traffic.py`). Heartbeats show who is up and what is missing. If a member fails, leaves or comes in, the
lowest voter that is connected leads a change (`change.py`): all stop, get what any of them has, and agree
on the next view by a majority of voters. Views are numbered without gaps, and each is decided once, by
Paxos among the voters of the view before (`journal.py`). So only a majority goes on.

Rules beyond plain Paxos, each with its reason:

- From its first promise in a change until the next view, a member neither sends nor delivers. So what it
  has delivered is within the cut of whatever value is chosen, also of one that an earlier coordinator
  proposed.
- Nobody proposes a view before all who survive into it have everything up to its cut. So nothing depends
  on a member that dies later.
- Whoever votes and has no seat gets one. So every view has a majority of the voters as members.
- A member that is excluded remains a voter. Otherwise a group that shrank by failures to two could not go
  on without both, although a majority of all is up.
- Every restart is a new incarnation. What a member had received is not saved, so it comes back like a
  newcomer, with the state of the others; but its votes are saved, so that all may restart at the same
  time.

Limits. At most `window` messages of a member are unacknowledged, and as many wait for the next view; beyond,
`multicast` returns False. A message that all members have is forgotten.

`multicast`, `join` and `leave` may be called while this process delivers something.
"""

from collections.abc import Callable, Mapping

from ordercast.components.membership.candidates import Candidates
from ordercast.components.membership.coordinator import Coordinator
from ordercast.components.membership.detector import Detector
from ordercast.components.membership.exchange import Exchange
from ordercast.components.membership.explain import explain
from ordercast.components.membership.journal import VoteJournal
from ordercast.components.membership.limits import check_ballot, check_record, check_round, check_skipping
from ordercast.components.membership.messages import (
    Agreed,
    Beat,
    BeginChange,
    Cut,
    Data,
    Flushed,
    Install,
    Join,
    Outbid,
    Proposal,
    Resend,
    StateChunk,
    StateRequest,
    Stopped,
)
from ordercast.components.membership.options import ViewOptions
from ordercast.components.membership.pulse import Pulse
from ordercast.components.membership.record import InstalledView, ViewRecord, first_view
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
    Explanation,
    GroupId,
    LocalError,
    Message,
    Nanos,
    NodeId,
    Process,
    Unconfirmed,
    View,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX


def ignore(state: bytes) -> None:
    """Restore nothing."""


class ViewSynchrony(Process):
    """A member of a group, or a node that wants to be one."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        founders: tuple[NodeId, ...],
        options: ViewOptions,
        snapshot: Callable[[], bytes] = bytes,
        restore: Callable[[bytes], None] = ignore,
        observers: frozenset[NodeId] = frozenset(),
    ) -> None:
        """`observers` are nodes that sit and send like others but do not vote."""
        super().__init__(env)
        founding = tuple(sorted(founders))
        voters = tuple(node for node in founding if node not in observers)
        if not voters or len(set(founding)) != len(founding):
            raise LocalError(f"views: founders {founders} must differ, and one of them must vote")
        self._group = group
        self._options = options
        self._snapshot = snapshot
        self._restore = restore
        self.standing: Standing = OUT
        self.journal = VoteJournal(env, first_view(founding, voters))
        self.voter = Voter(env, self.journal, env.me not in observers)
        self.detector = Detector(env.me, options.silences_max)
        self.candidates = Candidates(options.silences_max)
        self.exchange = Exchange(env, group, options, lambda: self.standing is MEMBER)
        self.coordinator = Coordinator(env, self.journal, self.detector, self.candidates, self._leaving)
        parts = (self.journal, self.detector, self.exchange, self.coordinator)
        self.pulse = Pulse(env, *parts, self._leaving)
        self.transfer: Transfer | None = None
        self.since: Nanos = 0
        """When the standing last changed."""
        self._sponsor: Sponsor | None = None

    # For the owner

    @property
    def view(self) -> InstalledView | None:
        """The view in which this node is a member; None if it is in none."""
        if self.standing not in (MEMBER, CHANGING):
            return None
        record = self.journal.record
        return InstalledView(record.number, record.members, record.newcomers, record.voters)

    @property
    def suspects(self) -> tuple[NodeId, ...]:
        """The members and voters that this node is not connected with."""
        return self.detector.suspects

    @property
    def in_doubt(self) -> int:
        """How many messages of this node some member may not have yet."""
        return self.exchange.in_doubt

    def multicast(self, payload: bytes) -> bool:
        """Send to all members; False if too much waits, or this node is in no view."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise LocalError(f"views: payload has {len(payload)} bytes; the limit is {PAYLOAD_BYTES_MAX}")
        if self.view is None or not self.journal.wishes:
            return False
        return self.exchange.send(payload)

    def join(self) -> None:
        """Ask to come in, as a new incarnation."""
        self.journal.wishes = True
        if self.standing is OUT:
            self._on(StandingEvent.ASK)
            self.journal.begin_incarnation()
            self._ask()

    def leave(self) -> None:
        """Ask to be let go. What was multicast before is delivered first."""
        self.journal.wishes = False
        self.journal.save()
        if self.standing is JOINING:
            self._on(StandingEvent.EXCLUDE)
        elif self.view is not None:
            self.pulse.send()

    def _leaving(self) -> bool:
        return self.view is not None and not self.journal.wishes

    def explain(self) -> Explanation:
        """The state of this member and what it waits for, oldest first."""
        return explain(self)

    # Events

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the founders, or come back as a new incarnation."""
        journal, me = self.journal, self.env.me
        restarted = journal.restore(saved) or self.env.forgot
        founds = journal.record.seat_of(me) is not None
        if restarted and not saved:
            journal.abstains = journal.wishes = True
        self.detector.watch(journal.record.peers)
        if not restarted and founds:
            self._found()
        elif restarted and journal.wishes and self._options.returns:
            self.join()
        else:
            journal.save()
        self.env.set_timer("beat", self._options.heartbeat_ns)

    def _found(self) -> None:
        self.standing = MEMBER
        self.journal.wishes = True
        self.journal.save()
        self.exchange.begin(self.journal.record)
        self._announce()

    def on_timer(self, name: str) -> None:
        """Time for a heartbeat, or to ask for what is missing."""
        if name == "beat":
            self._beat()
        elif name == "repair":
            self.exchange.on_repair_timer()

    def on_message(self, source: NodeId, message: Message) -> None:
        """A message of a member or of a node that wants to be one arrived."""
        match message:
            case Data():
                self._on_data(source, message)
            case Beat():
                self.pulse.on_beat(source, message)
            case Resend():
                self.exchange.on_fetch(source, message)
            case Join():
                self._on_join(source, message)
            case BeginChange():
                self._on_prepare(source, message)
            case Cut():
                self._on_cut(source, message)
            case Proposal():
                self._on_accept(source, message)
            case Stopped():
                self.coordinator.on_stopped(source, message, self.exchange.traffic)
            case Flushed() | Agreed():
                self.coordinator.on_answer(source, message)
            case Outbid() if message.view == self.journal.record.number:
                check_round(source, message.ballot, self.coordinator.seen)
                self.coordinator.yield_to(message.ballot)
            case Install():
                self._check(source, message.record)
                self._learn(message.record)
            case StateRequest() if self._sponsor:
                self._sponsor.answer(self.env, source, message, self._options.chunk_bytes)
            case StateChunk() if self.transfer:
                state = self.transfer.on_chunk(source, message)
                if state is not None:
                    self._inform(state)
        self.detector.hear(source)

    def _on_data(self, source: NodeId, message: Data) -> None:
        if message.view == self.journal.record.number + 1:
            self.exchange.keep(source, message)
        elif self.exchange.on_data(source, message):
            self.pulse.send()

    # Heartbeats

    def _beat(self) -> None:
        self.env.set_timer("beat", self._options.heartbeat_ns)
        self.detector.tick()
        self.candidates.tick()
        self.exchange.tick()
        self.pulse.send()
        if self.standing is JOINING:
            self._ask()
        elif self.transfer is not None:
            self.transfer.ask_another()
        self.coordinator.tick()

    # Coming and going

    def _ask(self) -> None:
        journal = self.journal
        others = tuple(node for node in journal.record.peers if node != self.env.me)
        self.env.multicast(others, Join(journal.record.number, journal.incarnation, self.voter.is_voter))

    def _on_join(self, source: NodeId, message: Join) -> None:
        self.candidates.on_join(source, message, self.journal.record, self.env.now)
        self.pulse.teach(source, message.view)
        self.detector.hear(source, message.incarnation)

    # Agreement on the next view

    def _on_prepare(self, source: NodeId, message: BeginChange) -> None:
        check_ballot(source, message.ballot, self.coordinator.seen)
        self._check(source, message.base)
        self._learn(message.base)
        if self.voter.follows(source, message.base.number, message.ballot):
            self.coordinator.yield_to(message.ballot)
            self._stop()
            self.voter.promise(source, message.ballot, self.exchange.received)

    def _check(self, source: NodeId, record: ViewRecord) -> None:
        check_record(source, record, self.journal.record, self.env.now)
        if self.exchange.traffic is not None:
            check_skipping(source, record, self.journal.record)

    def _stop(self) -> None:
        """Neither send nor deliver until the next view; who has not got the state of this one gives it up."""
        self.exchange.cut = None
        if self.standing is MEMBER:
            self._on(StandingEvent.STOP)
        elif self.standing is ADMITTED:
            self._go_out()

    def _on_cut(self, source: NodeId, message: Cut) -> None:
        follows = self.voter.follows(source, message.view, message.ballot)
        if follows and message.ballot == self.journal.promised and self.standing is CHANGING:
            self.exchange.on_cut(source, message)

    def _on_accept(self, source: NodeId, message: Proposal) -> None:
        check_ballot(source, message.ballot, self.coordinator.seen)
        if self.voter.follows(source, message.value.number - 1, message.ballot):
            self._check(source, message.value)
            self.voter.accept(source, message)

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
        if cut is not None and traffic is not None and self._leaving() and traffic.reaches(cut):
            traffic.deliver_rest(cut)
        self._follow(record)
        if self.standing in (MEMBER, CHANGING, ADMITTED):
            self._go_out(cut)
        elif self.standing is JOINING:
            self._ask()  # a request counts if it names the newest view
        if was_member:
            self.env.deliver(View(self._group, record.number, record.members))

    def _go_out(self, cut: tuple[int, ...] | None = None) -> None:
        """Lose the seat. What others have not got, or may not have got, is given back."""
        wishes = self.journal.wishes
        lost = self.exchange.end(cut, queue=not wishes)
        self._on(StandingEvent.EXCLUDE)
        self.transfer = None
        if wishes and self._options.returns:
            self.join()
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

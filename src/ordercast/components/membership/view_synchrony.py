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
- Whoever votes and has no seat gets one. So every view has a majority of the voters as members, unless those
  who decided on it leave with it.
- A member that is excluded remains a voter. Otherwise a group that shrank by failures to two could not go
  on without both, although a majority of all is up.
- Whoever knows a newer view tells it to one that is behind, also after it has left. Otherwise a voter that
  was down while all others left would not learn that it is the only one, and may go on alone.
- Every restart is a new incarnation. What a member had received is not saved, so it comes back like a
  newcomer, with the state of the others; but its votes are saved, so that all may restart at the same
  time.

Limits. At most `window` messages of a member are unacknowledged, and as many wait for the next view; beyond,
`multicast` returns False. A message that all members have is forgotten.

`multicast`, `join`, `leave` and `ask_for_view` may be called while this process delivers something.
"""

from collections.abc import Mapping

from ordercast.components.membership.explain import explain
from ordercast.components.membership.limits import (
    check_ballot,
    check_known,
    check_record,
    check_round,
    check_skipping,
)
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
from ordercast.components.membership.record import ViewRecord
from ordercast.components.membership.seatholder import Seatholder
from ordercast.components.membership.standing import (
    ADMITTED,
    CHANGING,
    JOINING,
    MEMBER,
    OUT,
    StandingEvent,
)
from ordercast.core import (
    Explanation,
    Groups,
    LocalError,
    Message,
    NodeId,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX


class ViewSynchrony(Seatholder):
    """A member of a group, or a node that wants to be one."""

    # For the owner

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
        if self.view is None or self.wants is None:
            return False
        return self.exchange.send(payload)

    def join(self, groups: Groups) -> None:
        """Ask to come in, as a new incarnation, and to receive these groups; a member asks for others."""
        self.wants = tuple(sorted(groups))
        if self.standing is OUT:
            self._come_in()
        else:
            self._tell_wish()

    def leave(self) -> None:
        """Ask to be let go. What was multicast before is delivered first. A node whose view has not begun yet
        gives up its request, or its seat, at once."""
        self.wants = None
        if self.standing is JOINING:
            self._on(StandingEvent.EXCLUDE)
        elif self.standing is ADMITTED:
            self._go_out()
        if self.standing is OUT:
            self.journal.groups = None
            self.journal.save()
        else:
            self._tell_wish()

    def ask_for_view(self) -> None:
        """Ask for a next view, even if it has the same members: something is to begin with it."""
        if self.view is not None and self._outlived != self.newest.number:
            self._outlived = self.newest.number
            self._tell_wish()

    def _tell_wish(self) -> None:
        if self.standing is JOINING:
            self._ask()
        elif self.view is not None:
            self.pulse.send()

    def explain(self) -> Explanation:
        """The state of this member and what it waits for, oldest first."""
        return explain(self)

    # Events

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the founders, or come back as a new incarnation."""
        journal = self.journal
        restarted = journal.restore(saved) or self.env.forgot
        if restarted and not saved:
            journal.abstains, journal.groups = True, self._founding
        self.wants = journal.groups
        self.detector.watch(journal.record.peers)
        self.env.set_timer("beat", self._options.heartbeat_ns)
        if not restarted and journal.record.seat_of(self.env.me) is not None:
            self._found()
        elif self.wants is not None and (self._options.returns or not restarted):
            self._come_in()
        elif restarted:
            journal.begin_incarnation()  # so that nobody takes it for the member that it was
        else:
            journal.save()

    def _found(self) -> None:
        self.standing = MEMBER
        self.journal.save()
        self.exchange.begin(self.journal.record)
        self._announce()

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """The cluster has these nodes now."""
        self.roster.update(roles)
        if self.standing is JOINING:
            self._ask()

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
            case Install() if self._is_news(source, message.record):
                self._check(source, message.record)
                if self._doubts(message.record):
                    return  # this is no sign of life either: one that has left would be heard for ever
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

    def _on_join(self, source: NodeId, message: Join) -> None:
        check_known(source, self.roster)
        self.candidates.on_join(source, message, self.journal.record, self.env.now)
        self.pulse.teach(source, message.view)
        self.detector.hear(source, message.incarnation)

    # Agreement on the next view

    def _on_prepare(self, source: NodeId, message: BeginChange) -> None:
        check_ballot(source, message.ballot, self.coordinator.seen)
        self._check(source, message.base)
        if not self._doubts(message.base):
            self._learn(message.base)
        if self.voter.follows(source, message.base.number, message.ballot):
            self.coordinator.yield_to(message.ballot)
            self._stop()
            self.voter.promise(source, message.ballot, self.wants, self.exchange.received)

    def _is_news(self, source: NodeId, record: ViewRecord) -> bool:
        """Whether a view is not known, and its sender is no node that has left, whose answer comes late."""
        known = self.journal.record
        left = self.roster.knows((source,)) and source not in {*record.peers, *known.peers}
        return record.number >= known.number and record != known and not left

    def _check(self, source: NodeId, record: ViewRecord) -> None:
        check_record(source, record, self.journal.record, self.roster, self.env.now)
        if self.exchange.traffic is not None:
            check_skipping(source, record, self.journal.record)

    def _doubts(self, record: ViewRecord) -> bool:
        """Whether most voters are gone from a later view, although this member hears a majority of them.

        They go only if they leave, and a member that hears them does not miss that. So the view is a lie, or
        this member has slept: then it does not hear them any more soon, and believes the view.
        """
        known = self.journal.record
        skips = self.exchange.traffic is not None and record.number > known.number + 1
        few = 2 * len(set(record.voters) & set(known.voters)) < len(known.voters)
        return skips and few and sum(map(self.detector.connected, known.voters)) >= known.majority

    def _on_cut(self, source: NodeId, message: Cut) -> None:
        follows = self.voter.follows(source, message.view, message.ballot)
        if follows and message.ballot == self.journal.promised and self.standing is CHANGING:
            self.exchange.on_cut(source, message)

    def _on_accept(self, source: NodeId, message: Proposal) -> None:
        check_ballot(source, message.ballot, self.coordinator.seen)
        if self.voter.follows(source, message.value.number - 1, message.ballot):
            self._check(source, message.value)
            self.voter.accept(source, message)

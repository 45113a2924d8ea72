"""One replica of the log: what it does with each event, by its role. The package says how it works."""

from collections.abc import Callable, Mapping

from ordercast.components.consensus.canvassing import Canvassing
from ordercast.components.consensus.catchup import Catchup
from ordercast.components.consensus.election import Election
from ordercast.components.consensus.kinds import Kinds
from ordercast.components.consensus.leadership import Barrier, Leadership
from ordercast.components.consensus.limits import Limits
from ordercast.components.consensus.log import Group, Log, Owner
from ordercast.components.consensus.messages import (
    VALUE_BYTES_MAX,
    Accept,
    Accepted,
    Canvass,
    Chunk,
    Commit,
    Confirm,
    Confirmed,
    Fetch,
    Heard,
    Learn,
    Prepare,
    Promise,
    Recover,
    Reject,
    Support,
    Want,
)
from ordercast.components.consensus.options import ConsensusOptions
from ordercast.components.consensus.recovery import Recovery
from ordercast.components.consensus.roles import ROLES, Role, RoleEvent
from ordercast.components.consensus.vigil import Vigil
from ordercast.core import (
    Env,
    Explanation,
    LocalError,
    Message,
    NodeId,
    Process,
    Wait,
)


class Replica(Process):
    """One replica of a log.

    It delivers committed values in the order of slots, each once, with the slot as the clock of the
    stamp; not the no-ops with which a new leader fills holes, so slots may be skipped. Who gets a
    delivery may call `propose` at once. The arguments after the options are those of `Owner`.
    """

    kinds = Kinds()

    def __init__(
        self,
        env: Env,
        peers: tuple[NodeId, ...],
        options: ConsensusOptions | None = None,
        *,
        snapshot: Callable[[], bytes] | None = None,
        restore: Callable[[bytes], None] | None = None,
        transfers: bool = False,
        durable: bool = True,
    ) -> None:
        super().__init__(env)
        self.leader: NodeId | None = None
        """Who leads, as far as this replica knows."""
        self._group = Group(env.me, peers)
        self._options = options or ConsensusOptions()
        owner = Owner(snapshot, restore, transfers, durable)
        self._log = Log(env, self._group, self._options, owner, self.kinds.journal)
        self._journal = self._log.journal
        self._limits = Limits(self._log)
        self._catchup = Catchup(self._log)
        self._vigil = Vigil(env, self._options)
        self.role = Role.FOLLOWER
        self._canvassing: Canvassing | None = None
        """That of a canvasser."""
        self._election: Election | None = None
        """That of a candidate."""
        self._recovery: Recovery | None = None
        """That of a replica which has lost its memory."""
        self.returned_at = 0
        """After a loss of memory, slots below may have been delivered by an earlier life."""
        self._leadership: Leadership | None = None
        """That of a leader."""
        self._seen = 0
        """Highest ballot heard of; the next candidacy goes above it."""
        self._reported = (0, 0)
        """Ballot and first slot of the last chunk that a candidate got."""
        self._resigned = ""
        """Why this replica gave up leading, until a leader is known."""
        self._has_met_leader = False
        """Whether a leader has spoken in this life; the first one is assumed to lead before it does."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads, as far as it knows."""
        return self.role is Role.LEADER

    @property
    def ballot(self) -> int:
        """The ballot promised; a leadership has one of its own, so a change of it shows here."""
        return self._journal.promised

    @property
    def committed(self) -> int:
        """Slots below are committed and delivered."""
        return self._log.committed

    @property
    def in_flight(self) -> int:
        """Slots proposed here and not committed yet."""
        return len(self._leadership.flights) if self._leadership else 0

    def propose(self, value: bytes) -> bool:
        """Put a value into the log; False when not the leader, or a limit is reached.

        A proposal is no promise: it may be lost when the leadership is. The owner sees it
        delivered, or asks again.
        """
        if not 0 < len(value) <= VALUE_BYTES_MAX:
            raise LocalError(f"consensus: a value must have 1 to {VALUE_BYTES_MAX} bytes, not {len(value)}")
        return self._leadership is not None and self._leadership.propose(value)

    def barrier(self) -> Barrier | None:
        """What a read that comes now must wait for; None when not the leader."""
        return self._leadership.barrier() if self._leadership else None

    def passes(self, barrier: Barrier) -> bool | None:
        """Whether a read that waits for this may be answered now; None if it must go to another leader."""
        if self._leadership is None or self._leadership.ballot != barrier.ballot:
            return None
        return self._leadership.passes(barrier)

    def explain(self) -> Explanation:
        """The state of this replica and what it waits for, oldest first."""
        state: dict[str, str | int] = {
            "role": self.role.value,
            "leader": "unknown" if self.leader is None else self.leader,
            "ballot": self.ballot,
            "committed": self.committed,
            "slots kept": len(self._journal.entries),
        }
        if self._resigned:
            state["gave up leading"] = self._resigned
        waits, behind = self._waits()
        return Explanation(state, tuple(sorted(waits, key=lambda wait: wait.since)), behind)

    def _waits(self) -> tuple[list[Wait], str]:
        """What this replica waits for, and what it lacks if it is behind."""
        if self._leadership:
            return self._leadership.waits(), ""
        waits = self._catchup.waits(self.leader)
        if self._recovery:
            return self._recovery.waits() + waits, "its memory"
        lost = self.leader is None or not self._has_met_leader
        behind = "a leader" if lost else waits[0].subject if waits else ""
        if active := self._election or self._canvassing:
            waits += active.waits()
        elif self.leader is None:
            waits.append(Wait("leadership", "a leader; none is known", self._vigil.since))
        return waits, behind

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or go on from what an earlier life saved."""
        owner = self._log.owner
        if owner.transfers and self._journal.is_lost(saved):
            self.role = ROLES.after(self.role, RoleEvent.FORGET)
            self._recovery = Recovery(self._log, self._catchup.download)
            self._recovery.ask()
            return
        if not owner.durable:
            self._journal.mark(lost=True)
        restarted, state = self._journal.restore(saved)
        self._log.restore(state)
        self._await_leader()
        if not restarted:
            self.leader = self._group.peers[0]
            if self._group.index == 0:
                self._lead(self.kinds.leadership(self._log, 0, {}))

    def on_timer(self, name: str) -> None:
        """Time for a heartbeat, to look whether there is a leader, or to ask for what is missing."""
        if self._recovery:
            self._recovery.ask()
        elif name == "tick":
            self._tick()
        elif name == "fetch":
            self._catchup.on_timer(self.leader)

    def on_message(self, source: NodeId, message: Message) -> None:
        """A message of consensus arrived."""
        index = self._group.index_of(source)
        if type(message) is not Accepted:  # which counts only for a slot that is in flight
            self._limits.check(source, message, max(self._seen, self._journal.promised))
        if self._recovery:
            if self._recovery.on_message(source, message):
                self._return(self._recovery)
            return
        match message:
            case Accept():
                self._on_accept(source, message)
            case Accepted() if self._leadership:
                self._leadership.on_accepted(index, message)
            case Commit():
                self._on_commit(source, message)
            case Prepare():
                self._on_prepare(source, message)
            case Promise() if self._election:
                self._vigil.heard |= self._election.on_promise(source, message)
                self._conclude(self._election)
            case Canvass():
                self._on_canvass(source, message)
            case Support() if self._canvassing:
                self._on_support(source, message, self._canvassing)
            case Reject():
                self._on_reject(message)
            case Fetch() | Want() | Recover():
                self._catchup.answer(source, message, self._leadership.end if self._leadership else None)
            case Learn() | Chunk() if self.role is not Role.LEADER:
                if self._catchup.on_lesson(source, message):
                    self._solicit()
            case Confirm():
                if self._follow(source, message.ballot):
                    self.env.send(source, Confirmed(message.ballot, message.round))
            case Confirmed() if self._leadership:
                self._leadership.on_confirmed(index, message)
            case Heard() if self._leadership:
                self._leadership.on_heard(index, message)

    def _on_accept(self, source: NodeId, message: Accept) -> None:
        if not self._follow(source, message.ballot):
            return
        # A committed slot keeps its record: what is chosen need not be accepted again.
        if message.slot < self._log.reach:
            if message.slot >= self._log.committed:
                self._journal.accept(message.slot, message.ballot, message.value)
            self.env.send(source, Accepted(message.ballot, message.slot))
        self._catchup.heed(message.ballot, message.committed)

    def _on_commit(self, source: NodeId, message: Commit) -> None:
        if not self._follow(source, message.ballot):
            return
        self._catchup.heed(message.ballot, message.committed)
        self._journal.truncate(message.floor)
        if message.asks:
            self.env.send(source, Heard(message.ballot, self._journal.stable))

    def _follow(self, source: NodeId, ballot: int) -> bool:
        """Take the sender of a phase 2 message for the leader; False if its ballot is outdated."""
        if self._group.owner(ballot) != source:
            return False
        if ballot < self._journal.promised:
            self.env.send(source, Reject(self._journal.promised))
            return False
        self._journal.promise(ballot)
        self._step_down()
        self.leader = source
        self._resigned = ""
        self._vigil.heard = True
        self._has_met_leader = True
        if self._vigil.elections:
            self._vigil.elections = 0
            self._await_leader()
        return True

    def _on_canvass(self, source: NodeId, message: Canvass) -> None:
        """Support who hears no leader, if none is heard here either; a canvasser hears none."""
        if self.role is Role.LEADER or not (self._canvassing or self._vigil.is_silent()):
            return
        if message.committed < self._log.committed:
            self._catchup.teach(source, message.committed)
        else:
            self.env.send(source, Support(message.ballot, self._journal.promised))

    def _on_support(self, source: NodeId, message: Support, canvassing: Canvassing) -> None:
        self._seen = max(self._seen, message.promised)
        if message.ballot == canvassing.ballot:
            canvassing.on_support(source)
            if canvassing.won():
                self._stand()

    def _on_prepare(self, source: NodeId, message: Prepare) -> None:
        if self._group.owner(message.ballot) != source:
            return
        self._journal.know_lives(message.known_lives())
        if message.ballot < self._journal.promised:
            self.env.send(source, Reject(self._journal.promised))
        elif message.committed < self._log.committed:
            self._catchup.teach(source, message.committed)
        else:
            if message.ballot > self._journal.promised:
                self._journal.promise(message.ballot)
                self._step_down()
                self.leader = None
                self._vigil.elections += 1
                self._await_leader()
            # A candidate that only repeats itself, because it hears nobody, is no reason to wait.
            elif (message.ballot, message.start) > self._reported:
                self._vigil.heard = True
            self._reported = max(self._reported, (message.ballot, message.start))
            self.env.send(source, self.kinds.report(self._log, message))

    def _on_reject(self, message: Reject) -> None:
        self._seen = max(self._seen, message.ballot)
        active = self._election or self._leadership
        if active and message.ballot > active.ballot:
            self._step_down()
            self.leader = None

    def _step_down(self) -> None:
        if self.role is not Role.FOLLOWER:
            self.role = ROLES.after(self.role, RoleEvent.STEP_DOWN)
            self._canvassing = self._election = self._leadership = None
            self._await_leader()

    def _await_leader(self) -> None:
        self._vigil.begin()
        self._arm()

    def _arm(self) -> None:
        """Set the timer, at which a leader sends heartbeats, and all others look whether they hear any."""
        asking = self.role in (Role.CANVASSER, Role.CANDIDATE)
        period = self._options.retry_ns if asking else self._options.heartbeat_ns
        self.env.set_timer("tick", period if self._leadership else self._vigil.next_step(period))

    def _tick(self) -> None:
        if self._leadership and self._leadership.is_unheard():
            self._resign()
        elif self._leadership:
            self._leadership.tick()
        elif self._vigil.look():
            self._lose_patience()
        else:
            self._solicit()
        self._arm()

    def _solicit(self) -> None:
        """Repeat the questions of a canvasser or a candidate."""
        if active := self._election or self._canvassing:
            active.solicit()

    def _resign(self) -> None:
        """Give up leading: this replica may be cut off, and others must be free to elect another."""
        beats = self._options.unanswered_max
        self._resigned = f"no majority answered {beats} heartbeats in ballot {self.ballot}"
        self._step_down()
        self.leader = None

    def _lose_patience(self) -> None:
        """No leader is heard, or an election leads to nothing: ask who would take part in a new one."""
        if self.role is Role.CANDIDATE:
            self._step_down()
        self._vigil.begin()
        if self._canvassing is None:
            self.role = ROLES.after(self.role, RoleEvent.CANVASS)
            self.leader = None
            self._canvassing = Canvassing(self._log, self._next_ballot())
        self._canvassing.solicit()
        if self._canvassing.won():  # a group of one
            self._stand()

    def _next_ballot(self) -> int:
        return self._group.ballot_above(max(self._seen, self._journal.promised))

    def _stand(self) -> None:
        self.role = ROLES.after(self.role, RoleEvent.STAND)
        self._canvassing = None
        self._vigil.elections += 1
        self._election = self.kinds.election(self._log, self._next_ballot())
        self._election.solicit()
        self._await_leader()
        self._conclude(self._election)

    def _conclude(self, election: Election) -> None:
        if election.won():
            self._election = None
            self._lead(self.kinds.leadership(self._log, election.ballot, election.values()))

    def _lead(self, leadership: Leadership) -> None:
        self.role = ROLES.after(self.role, RoleEvent.LEAD)
        self._catchup.stop()
        self._leadership = leadership
        self._vigil.elections = 0
        self.leader = self.env.me
        self._resigned = ""
        self._tick()

    def _return(self, recovery: Recovery) -> None:
        """The memory that was lost is made up for: take part again."""
        self._recovery = None
        self.returned_at, self.leader = recovery.end, recovery.leader
        self.role = ROLES.after(self.role, RoleEvent.RETURN)
        self._await_leader()

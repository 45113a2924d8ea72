"""A replica of a shard of Granola: gives requests a timestamp in the log, votes, and runs what is due."""

from ordercast.components.consensus import Barrier
from ordercast.components.execution import unpack_call
from ordercast.components.execution.messages import place_of_stamp
from ordercast.components.logged_service.logged_replica import LoggedReplica, Place
from ordercast.components.logged_service.messages import Redirect
from ordercast.components.logged_service.proposer import Proposer
from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Groups,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Stamp,
    Wait,
    message_name,
    message_sender,
    named,
)
from ordercast.transactions.granola.entries import (
    Entry,
    Forget,
    Propose,
    Subject,
    Verdict,
    pack_entry,
    unpack_entry,
)
from ordercast.transactions.granola.messages import Ask, Enquiry, Reading, Request, State, Told, Vote
from ordercast.transactions.granola.options import GranolaOptions
from ordercast.transactions.granola.schedule import Ran, Record, Schedule, Stage
from ordercast.transactions.granola.voting import Voting


class GranolaServer(LoggedReplica):
    """One replica of one shard."""

    def __init__(
        self,
        env: Env,
        place: Place,
        options: GranolaOptions,
        members: dict[GroupId, tuple[NodeId, ...]],
    ) -> None:
        """`members` are the replicas of all shards."""
        super().__init__(env, place, options)
        self._ahead_ns = options.ahead_ns
        self._shards = members
        self._homes = {node: group for group, nodes in members.items() for node in nodes}
        self.schedule = Schedule(
            self.executor, place.group, len(members), options.conflicts_max, self._on_ran
        )
        self._proposer = Proposer(self.log, options)
        self._asked: dict[MessageId, None] = {}
        """Calls that were handed to the leader, and are answered here too; the oldest first."""
        self._enquiries: list[tuple[Barrier, NodeId, Ask | None]] = []
        """What others want to know for certain: which timestamps this shard has told, or what became of a
        transaction."""
        self.voting = Voting(env, place.group, members, self.schedule, self.executor, options, self._order)

    # State

    def snapshot(self) -> bytes:
        """The records, and the state of the shard."""
        return self.schedule.snapshot()

    def restore_state(self, state: bytes) -> None:
        """Take over such a state."""
        self.schedule.restore(state)

    def place_reached(self, slot: int) -> Stamp:
        """Behind what ran last: all else has a higher timestamp."""
        return Stamp(self.schedule.last, self._group)

    # Messages

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A request, a vote, or a question."""
        match message:
            case Request():
                self._on_request(source, message)
            case Vote() if source in self._homes:
                self._on_vote(source, message)
            case Ask() if source in self._homes and source not in self.members:
                self._on_ask(source, message)
            case Redirect() if source in self._homes and source not in self.members:
                self.voting.on_leader(self._homes[source], message.leader)
            case Enquiry() if source not in self._homes:
                self._make_certain(source, None)
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a replica")

    def _check_groups(self, groups: Groups) -> None:
        known = self._shards.keys() >= set(groups)
        if not known or self._group not in groups or list(groups) != sorted(set(groups)):
            raise RemoteError(f"shard {self._group} was sent a transaction of shards {groups}")

    def _check_time(self, timestamp: int) -> None:
        """Refuse what would put the timestamps of this shard far ahead."""
        if timestamp > self.env.now + self._ahead_ns:
            raise RemoteError(f"timestamp {timestamp} is too far ahead of {self.env.now}")

    def _on_request(self, source: NodeId, request: Request) -> None:
        self._check_groups(request.groups)
        self._check_time(request.seen)
        call = unpack_call(request.call, None if source in self.members else source)
        if call.client in self._homes:
            raise RemoteError(f"node {source} sent a request of node {call.client}, which is no client")
        subject = Subject(call.first)
        if not self.log.is_leader:
            self._hand_on(source, request, call.first)
            return
        known = self.executor.find(call.first, call.client)
        standing = self.schedule.standing(subject, request.attempt)
        if known is not None:
            self._tell_results(call.first, known.results, known.stamp)
        elif standing is not None and standing.verdict is not Verdict.COMMIT:
            self._tell_state(call.first, request.attempt, State.CONFLICT)
        elif standing is not None or self.executor.knows(call.first, call.client):
            self._tell_state(call.first, request.attempt, State.WAITING)
        elif self._has_room(1):
            time = max(self.env.now, request.seen + 1)
            # Reads keep no results that could be told again, so each shard answers them by itself.
            groups = (self._group,) if call.read else request.groups
            self._order(Propose(subject, request.attempt, groups, time, request.call, request.done))

    def _hand_on(self, source: NodeId, request: Request, first: MessageId) -> None:
        """Another replica leads: hand a request to it, and answer it too when it has run."""
        leader = self.log.leader
        if leader is None or leader == self.env.me or source in self.members:
            return
        self.env.send(leader, request)
        self.env.send(source, Redirect(leader))
        self._asked[first] = None
        if len(self._asked) > self._options.queue:
            del self._asked[next(iter(self._asked))]

    def _on_vote(self, source: NodeId, vote: Vote) -> None:
        self._check_time(vote.timestamp)
        home = self._homes[source]
        if vote.group == self._group or (home not in (vote.group, self._group)):
            raise RemoteError(f"node {source} sent a vote of shard {vote.group}")
        if not vote.settled and vote.timestamp % len(self._shards) != vote.group:
            raise RemoteError(f"shard {vote.group} may not propose timestamp {vote.timestamp}")
        leader = self.log.leader
        if self.log.is_leader or home == self._group:
            self.voting.on_vote(vote)
        elif leader is not None and leader != self.env.me:
            self.env.send(leader, vote)
            self.env.send(source, Redirect(leader))

    def _on_ask(self, source: NodeId, ask: Ask) -> None:
        self._check_groups(ask.groups)
        if self._homes[source] not in ask.groups:
            raise RemoteError(f"node {source} asked about a transaction of shards {ask.groups}")
        if not ask.subject.ends and not ask.settled and unpack_call(ask.call).first != ask.subject.first:
            raise RemoteError(f"node {source} asked about a call with another name")
        if self.voting.on_ask(source, ask):
            return
        leader = self.log.leader
        if self.log.is_leader and ask.settled:
            self._make_certain(source, ask)
        elif self.log.is_leader:
            if self._has_room(len(self._shards)):
                self._order(Propose(ask.subject, ask.attempt, ask.groups, self.env.now, ask.call))
        elif leader is not None and leader != self.env.me:
            self.env.send(source, Redirect(leader))

    def _has_room(self, shards: int) -> bool:
        """Whether less is on record than so many shards may take from clients, with what is on its way there.
        What other shards have taken must be taken here too, for they wait for it."""
        under_way = len(self.schedule.records) + self._proposer.under_way
        return under_way < shards * self._options.queue

    def _make_certain(self, source: NodeId, ask: Ask | None) -> None:
        """Answer when this replica is known to have run all that was in the log before."""
        barrier = self.log.barrier()
        if barrier is not None and len(self._enquiries) < self._options.queue:
            self._enquiries.append((barrier, source, ask))

    def _answer_enquiries(self) -> None:
        enquiries, self._enquiries = self._enquiries, []
        for barrier, source, ask in enquiries:
            passes = self.log.passes(barrier)
            if passes is False:
                self._enquiries.append((barrier, source, ask))
            elif passes and ask is not None:
                self.voting.on_settled(source, ask)
            elif passes:
                self.env.send(source, Reading(self.schedule.high))

    def _order(self, entry: Entry) -> None:
        """Put an entry into the log, unless it is on its way."""
        if self.log.is_leader:
            self._proposer.add(_name(entry), pack_entry(entry))

    # What the log decides

    def run_entry(self, packed: bytes, place: Stamp) -> None:
        """Run an entry, tell other shards the vote, and clients what has become of their calls."""
        entry = unpack_entry(packed)
        self._proposer.done(_name(entry))
        self.schedule.run(entry)
        for done in self.executor.take_released():
            if self.log.is_leader:
                self._tell_results(done.first, done.results, done.stamp)
        if self.log.is_leader:
            self._tell_outcome(entry)

    def _tell_outcome(self, entry: Entry) -> None:
        """Other shards hear what was voted, and the client of a conflict."""
        subject = entry.subject
        if isinstance(entry, Propose):
            self.voting.tell(subject, entry.attempt, entry.groups)
        else:
            self.voting.drop(subject)
        if isinstance(entry, Forget):
            return
        standing = self.schedule.standing(subject, entry.attempt)
        if standing is not None and standing.verdict is Verdict.CONFLICT and not subject.ends:
            self._tell_state(subject.first, entry.attempt, State.CONFLICT)

    def _on_ran(self, ran: Ran) -> None:
        """Deliver what was run, and what became of locks, and answer."""
        certain, call, done = self.is_certain(ran.stamp), ran.call, ran.done
        if call is not None and done is not None and done.fresh:
            self.deliver_call(call, ran.groups, ran.stamp)
        elif certain and ran.notices:
            self._note_delivered(ran.stamp.clock)
        for notice in ran.notices if certain else ():
            self.env.deliver(notice)
        if call is None:
            return
        asked = self._asked.pop(call.first, self) is None
        if done is not None and done.finished and (asked or self.log.is_leader):
            self._tell_results(call.first, done.results, done.stamp)

    def _tell_results(self, first: MessageId, results: bytes, stamp: Stamp) -> None:
        self.env.send(message_sender(first), Told(first, 0, State.EXECUTED, results, place_of_stamp(stamp)))

    def _tell_state(self, first: MessageId, attempt: int, state: State) -> None:
        lacks: Groups = ()
        if state is State.WAITING:
            lacks = self.voting.lacks(Subject(first)) or self._lacks_first()
        self.env.send(message_sender(first), Told(first, attempt, state, b"", None, lacks))

    def _lacks_first(self) -> Groups:
        """The shards for whose votes all wait here that have a higher timestamp."""
        first = self.schedule.waits_for()
        return () if first is None else self.voting.lacks(first)

    # The end of an event

    def on_own_timer(self, name: str) -> None:
        """Ask for votes that are missing."""
        self.voting.on_timer(leads=self.log.is_leader)

    def conclude(self) -> None:
        """Put entries into the log that wait for a slot."""
        self._proposer.push()
        super().conclude()
        if self._enquiries:
            self._answer_enquiries()
        self.voting.arm()

    def explain_own(self) -> Explanation:
        """How far this replica is, and what waits for votes of which shards."""
        state: dict[str, str | int] = {
            "role": "replica",
            "group": self._group,
            "mode": "locking" if self.schedule.is_locking else "timestamp",
            "calls executed": self.executor.executed,
            "transactions known": len(self.schedule.records),
            "entries queued": len(self._proposer),
        }
        if self._refused:
            state["entries refused"] = self._refused
        under_way = self.voting.under_way()
        waits = [self._wait(subject, record, since) for subject, record, since in under_way]
        for transaction, groups, since in self.voting.open():
            what = f"general transaction {message_name(transaction)}"
            waits.append(Wait(what, "its client to conclude it", since, groups=groups))
        return Explanation(state, tuple(waits))

    def _wait(self, subject: Subject, record: Record, since: Nanos) -> Wait:
        """What a transaction waits for here."""
        lacks = self.voting.lacks(subject)
        if lacks:
            blocker = f"a vote of shard {', '.join(map(str, lacks))}"
        elif record.stage is Stage.PENDING:
            blocker = "a majority of this shard to settle it"
        else:
            blocker, lacks = "transactions with lower timestamps", self._lacks_first()
        what = "end of general transaction" if subject.ends else "call"
        on = tuple(node for group in lacks for node in self._shards[group])
        return Wait(
            f"{what} {message_name(subject.first)}",
            blocker,
            since,
            unpack_call(record.call).bundle if record.call else None,
            groups=record.groups,
            on=on,
        )


def _name(entry: Entry) -> tuple[type[Entry], Subject, int]:
    """What tells an entry from others."""
    return type(entry), entry.subject, 0 if isinstance(entry, Forget) else entry.attempt

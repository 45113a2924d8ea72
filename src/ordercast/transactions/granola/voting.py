"""The votes of other shards: the part of a shard that its state machine does not have.

The leader of a shard tells the other shards of a transaction what its log says, and gathers what they say.
When it has all votes, or one that is against, it puts the outcome into its log. Votes come from logs, so they
never change: who leads next asks for them again. A shard that lacks a vote asks for it, and sends the request
along, for the other shard may never have got it.

A general transaction that nobody has concluded for `lock_ns` is ended by its shards. That is a transaction of
its own, with a timestamp: if its client concludes it at the same time, the lower one counts in all shards.
"""

from collections.abc import Callable, Iterator, Mapping

from ordercast.components.execution import Executor
from ordercast.core import Env, GroupId, Groups, MessageId, Nanos, NodeId
from ordercast.transactions.granola.entries import Entry, Forget, Propose, Settle, Subject, Verdict
from ordercast.transactions.granola.messages import Ask, Vote
from ordercast.transactions.granola.options import GranolaOptions
from ordercast.transactions.granola.schedule import Record, Schedule, Stage

Attempted = tuple[Subject, int]
"""A transaction, and which attempt of its client."""
ASKS_MAX = 64
"""About so many transactions a leader asks in one go. While a shard is away there may be very many."""
OPEN = -1
"""In the place of an attempt: a general transaction that waits for its end."""


class Voting:
    """What one replica knows of the votes of other shards."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        schedule: Schedule,
        executor: Executor,
        options: GranolaOptions,
        order: Callable[[Entry], None],
    ) -> None:
        """`order` puts an entry into the log of the own shard, if this replica leads."""
        self._env = env
        self._group = group
        self._members = members
        self._schedule = schedule
        self._executor = executor
        self._options = options
        self._order = order
        self._leaders = {one: nodes[0] for one, nodes in members.items() if nodes}
        self._votes: dict[Subject, dict[GroupId, Vote]] = {}
        """What other shards have said last, also of what has not come here yet; the oldest first."""
        self._since: dict[Attempted, Nanos] = {}
        """Since when this replica knows of what is on record or open."""
        self._armed = False
        self._asked = 0
        """Of the transactions on record, the first so many have been asked about in this round."""

    # Votes

    def tell(self, subject: Subject, attempt: int, groups: Groups) -> None:
        """This shard has voted: tell the others, and see what they have said."""
        for group in groups:
            vote = self._vote(subject, attempt) if group != self._group else None
            if vote is not None:
                self._env.send(self._leaders[group], vote)
        self._count(subject, attempt)

    def _vote(self, subject: Subject, attempt: int) -> Vote | None:
        standing = self._schedule.standing(subject, attempt)
        return None if standing is None else Vote(subject, attempt, self._group, *standing)

    def on_vote(self, vote: Vote) -> None:
        """Another shard has voted. It may have got the request before this one."""
        standing = self._schedule.standing(vote.subject, vote.attempt)
        on_record = vote.subject in self._schedule.records
        if standing is not None and standing.settled and not (on_record and vote.settled):
            return
        votes = self._votes.setdefault(vote.subject, {})
        if vote.group not in votes or votes[vote.group].attempt <= vote.attempt:
            votes[vote.group] = vote
        if len(self._votes) > 2 * self._options.queue:
            del self._votes[next(iter(self._votes))]
        self._count(vote.subject, vote.attempt)

    def _count(self, subject: Subject, attempt: int) -> None:
        """If all that this shard waits for is there, put the outcome into the log."""
        record = self._schedule.records.get(subject)
        if record is None or record.attempt != attempt:
            return
        known = list(self._known(subject, record).values())
        everybody = len(known) == len(record.groups) - 1
        if record.stage is Stage.PENDING:
            verdict = max((vote.verdict for vote in known), default=Verdict.COMMIT)
            if everybody or verdict is not Verdict.COMMIT or any(vote.settled for vote in known):
                timestamp = max([record.timestamp, *(vote.timestamp for vote in known)])
                self._order(Settle(subject, attempt, verdict, timestamp))
        elif record.stage is Stage.RAN and everybody and all(vote.settled for vote in known):
            self._order(Forget(subject))

    def _known(self, subject: Subject, record: Record) -> dict[GroupId, Vote]:
        """The votes of the other shards."""
        votes = self._votes.get(subject, {})
        return {
            group: vote
            for group, vote in votes.items()
            if group in record.groups and vote.attempt == record.attempt
        }

    def on_ask(self, source: NodeId, ask: Ask) -> bool:
        """Another shard wants a vote; False if this replica does not know of one."""
        vote = self._vote(ask.subject, ask.attempt)
        if vote is not None:
            self._env.send(source, vote)
        return vote is not None

    def on_settled(self, source: NodeId, ask: Ask) -> None:
        """Another shard knows all votes, so this one has voted. If that is on record no more, this shard has
        settled it too, and forgotten that. All that was in the log when it was asked has run here."""
        if not self.on_ask(source, ask):
            self._env.send(source, Vote(ask.subject, ask.attempt, self._group, Verdict.COMMIT, 0, True))

    def on_leader(self, group: GroupId, leader: NodeId) -> None:
        """Another shard has another leader than was thought."""
        if leader in self._members[group]:
            self._leaders[group] = leader

    def lacks(self, subject: Subject) -> Groups:
        """The shards whose votes are missing here."""
        record = self._schedule.records.get(subject)
        if record is None or record.stage is not Stage.PENDING:
            return ()
        known = self._known(subject, record)
        return tuple(group for group in record.groups if group not in known and group != self._group)

    # Time

    def arm(self) -> None:
        """Look again in a while, if anything is on record or open."""
        if not self._armed and (self._schedule.records or self._open):
            self._armed = True
            self._env.set_timer("votes", self._options.vote_ns)

    @property
    def _open(self) -> Mapping[MessageId, Groups]:
        shard = self._executor.shard
        return {} if shard is None else shard.pending

    def open(self) -> Iterator[tuple[MessageId, Groups, Nanos]]:
        """The general transactions that nobody has concluded, and since when this replica knows that."""
        for transaction, groups in self._open.items():
            yield transaction, groups, self._since.get((Subject(transaction, True), OPEN), self._env.now)

    def under_way(self) -> Iterator[tuple[Subject, Record, Nanos]]:
        """What has not run here, and since when this replica knows that."""
        for subject, record in self._schedule.records.items():
            if record.stage is not Stage.RAN:
                yield subject, record, self._since.get((subject, record.attempt), self._env.now)

    def on_timer(self, *, leads: bool) -> None:
        """Ask for votes, and end what nobody concludes."""
        self._armed = False
        now, records, opened = self._env.now, self._schedule.records, self._open
        known = [(subject, record.attempt) for subject, record in records.items()]
        known += [(Subject(transaction, True), OPEN) for transaction in opened]
        self._since = {one: self._since.get(one, now) for one in known}
        if not leads:
            return
        for subject in self._turns():
            record = records[subject]
            self._ask(subject, record, now - self._since[subject, record.attempt])
        for transaction, groups in opened.items():
            subject = Subject(transaction, True)
            if subject not in records and now - self._since[subject, OPEN] >= self._options.lock_ns:
                self._order(Propose(subject, 0, groups, now))

    def _turns(self) -> list[Subject]:
        """The transactions to ask about now: the one that holds up the others, and some more in turn."""
        subjects, first = list(self._schedule.records), self._schedule.waits_for()
        start = self._asked if self._asked < len(subjects) else 0
        self._asked = start + ASKS_MAX
        turns = subjects[start : self._asked]
        return turns if first is None or first in turns else [first, *turns]

    def _ask(self, subject: Subject, record: Record, age: Nanos) -> None:
        """Ask the shards that have not voted; or, much later, those that have not said that they know all."""
        settled = record.stage is not Stage.PENDING
        if age < (self._options.lock_ns if settled else self._options.vote_ns):
            return
        votes = self._known(subject, record)
        call = b"" if settled else record.call
        ask = Ask(subject, record.attempt, record.groups, call, settled)
        for group in record.groups:
            vote = votes.get(group)
            if group == self._group or (vote is not None and (vote.settled or not settled)):
                continue
            if age >= 4 * self._options.vote_ns:
                self._env.multicast(self._members[group], ask)
            else:
                self._env.send(self._leaders[group], ask)
        self._count(subject, record.attempt)

    def drop(self, subject: Subject) -> None:
        """These votes have done what they are for."""
        self._votes.pop(subject, None)

"""Ends what clients have left behind: the part of a shard's leader that asks the other shards.

Each replica notes since when it knows of a call that is under way, or of a general transaction that is open.
The leader of a shard looks after those that are older than `lock_ns`. It has them frozen or halted in all
their shards, and when all have answered, it has the outcome put into all their logs. The leaders of several
shards may do so at the same time: what is frozen everywhere has one outcome, whoever asks.
"""

from collections.abc import Callable, Iterator, Mapping

from ordercast.components.execution import Executor
from ordercast.core import Env, GroupId, Groups, MessageId, Nanos, NodeId
from ordercast.transactions.lock_store.commands import Command, Order, State, Told, Verb, pack_command
from ordercast.transactions.lock_store.ledger import Ledger
from ordercast.transactions.lock_store.options import LockStoreOptions

Subject = tuple[Verb, MessageId, int]
"""What is ended: by which question, its name, and the attempt."""


class Ending:
    """What one replica of a shard knows of calls that are too old."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        ledger: Ledger,
        executor: Executor,
        options: LockStoreOptions,
        order: Callable[[Command], None],
    ) -> None:
        """`order` puts a command into the log of the own shard."""
        self._env = env
        self._group = group
        self._members = members
        self._ledger = ledger
        self._executor = executor
        self._lock_ns = options.lock_ns
        self._again_ns = max(options.calls.retry_ns, options.lock_ns // 4)
        self._order = order
        self._leaders = {one: nodes[0] for one, nodes in members.items() if nodes}
        self._since: dict[Subject, Nanos] = {}
        """Since when this replica knows of what is under way."""
        self._answers: dict[Subject, dict[GroupId, State]] = {}
        """What the shards have said of what is too old."""
        self._armed = False

    def arm(self) -> None:
        """Look again in a while, if anything is under way."""
        if not self._armed and (self._ledger.records or self._open):
            self._armed = True
            self._env.set_timer("locks", self._again_ns)

    @property
    def _open(self) -> Mapping[MessageId, Groups]:
        shard = self._executor.shard
        return {} if shard is None else shard.pending

    def _subjects(self) -> dict[Subject, Groups]:
        """What is under way, with its shards."""
        found: dict[Subject, Groups] = {}
        for first, record in self._ledger.records.items():
            found[Verb.FREEZE, first, record.attempt] = record.groups
        for transaction, groups in self._open.items():
            found[Verb.HALT, transaction, 0] = groups
        return found

    def under_way(self) -> Iterator[tuple[str, MessageId, Groups, Nanos, bytes]]:
        """What holds locks, and since when this replica knows that; of a call also the call."""
        for (verb, first, _), groups in self._subjects().items():
            record = self._ledger.records.get(first)
            if verb is Verb.HALT:
                since = self._since.get((verb, first, 0), self._env.now)
                yield "general transaction", first, groups, since, b""
            elif record is not None and record.state is not State.COMMITTED:
                since = self._since.get((verb, first, record.attempt), self._env.now)
                yield "call", first, groups, since, record.call

    def on_timer(self, *, leads: bool) -> None:
        """Ask about what is too old."""
        self._armed = False
        now, subjects = self._env.now, self._subjects()
        self._since = {subject: self._since.get(subject, now) for subject in subjects}
        self._answers = {one: told for one, told in self._answers.items() if leads and one in subjects}
        if leads:
            for subject, groups in subjects.items():
                if now - self._since[subject] >= self._lock_ns:
                    self._ask(subject, groups)

    def _ask(self, subject: Subject, groups: Groups) -> None:
        """Ask the shards that have not answered; a shard that is unsettled is asked again."""
        answers = self._answers.setdefault(subject, {})
        verb, first, attempt = subject
        for group in groups:
            if answers.get(group, State.UNSETTLED) is State.UNSETTLED:
                self._send(group, Command(verb, first, attempt, groups))
        self._decide(subject, groups)

    def _send(self, group: GroupId, command: Command) -> None:
        """Have a command put into the log of a shard."""
        if group == self._group:
            self._order(command)
        else:
            order = Order(pack_command(command))
            leader = self._leaders[group]
            self._env.send(leader, order)
            if self._env.now - self._since.get(command.name, self._env.now) >= 2 * self._lock_ns:
                self._env.multicast([one for one in self._members[group] if one != leader], order)

    def on_leads(self, group: GroupId, leader: NodeId) -> None:
        """Another shard has another leader than was thought."""
        if leader in self._members[group]:
            self._leaders[group] = leader

    def on_told(self, group: GroupId, told: Told) -> None:
        """A shard says what it has found."""
        subject = (told.verb, told.first, told.attempt)
        answers = self._answers.get(subject)
        groups = self._subjects().get(subject)
        if answers is not None and groups is not None and group in groups:
            answers[group] = told.state
            self._decide(subject, groups)

    def _decide(self, subject: Subject, groups: Groups) -> None:
        """When all shards have answered, have the outcome put into all their logs."""
        answers = self._answers[subject]
        states = [answers.get(group, State.UNSETTLED) for group in groups]
        if State.UNSETTLED in states:
            return
        question, first, attempt = subject
        if question is Verb.HALT:
            verb = Verb.END
        elif State.COMMITTED not in states:
            verb = Verb.CANCEL
        else:  # then all had locked it: who has no lock has committed it, and forgotten that
            verb = Verb.APPLY if State.FROZEN in states else Verb.FORGET
        for group in groups:
            self._send(group, Command(verb, first, attempt, groups))
        del self._answers[subject]

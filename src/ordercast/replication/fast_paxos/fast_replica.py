"""One replica of a log in which replicas vote by themselves for what clients send them (Fast Paxos).

It is a replica of Multi-Paxos with another way to choose. A replica votes for a call in the first slot in
which it has not voted in this ballot. It may do so from the slot on that the leader has *opened*: below,
something may have been chosen in earlier ballots, and the leader proposes what that is.
"""

from collections.abc import Callable

from ordercast.components.consensus import ConsensusOptions, Replica
from ordercast.components.consensus.kinds import Kinds
from ordercast.components.consensus.messages import Accept, Recover
from ordercast.components.consensus.roles import Role
from ordercast.core import Env, Message, NodeId, RemoteError
from ordercast.replication.fast_paxos.fast_election import FastElection, fast_report
from ordercast.replication.fast_paxos.fast_journal import FastJournal, digest_of
from ordercast.replication.fast_paxos.fast_leadership import FastLeadership
from ordercast.replication.fast_paxos.messages import FastCommit, FastVote, Open

CLOSED = -1


class FastReplica(Replica):
    """One replica of the log."""

    kinds = Kinds(FastJournal, FastElection, FastLeadership, fast_report)

    def __init__(
        self,
        env: Env,
        peers: tuple[NodeId, ...],
        options: ConsensusOptions,
        accepted: Callable[[bytes], None],
        displaced: Callable[[bytes], None],
        *,
        snapshot: Callable[[], bytes],
        restore: Callable[[bytes], None],
        transfers: bool,
        durable: bool,
    ) -> None:
        """`accepted` is told of values that the leader proposes, and `displaced` of those for which this
        replica had voted in their slots."""
        super().__init__(
            env, peers, options, snapshot=snapshot, restore=restore, transfers=transfers, durable=durable
        )
        self._accepted = accepted
        self._displaced = displaced
        self._opened = CLOSED
        """The ballot in which this replica may vote by itself."""
        self._next = 0

    def place(self, value: bytes) -> bool:
        """Give a value the next slot; False when not the leader, or a limit is reached."""
        leadership = self._leadership
        return isinstance(leadership, FastLeadership) and leadership.place(value)

    def vote(self, value: bytes) -> bool:
        """Vote for a value in the next slot of this replica; False if it may not vote by itself."""
        ballot, log = self.ballot, self._log
        if self.role is not Role.FOLLOWER or self._opened != ballot or self.leader is None:
            return False
        slot = max(self._next, log.committed)
        while self._has_voted(slot):
            slot += 1
        if slot >= min(log.committed + self._options.window, log.reach):
            return False
        self._fast_journal.vote(slot, ballot, value)
        self._next = slot + 1
        life = self._journal.lives[self._group.index]
        self.env.send(self.leader, FastVote(ballot, slot, digest_of(value), life))
        return True

    def is_voted_for(self, value: bytes) -> bool:
        """Whether this replica has a vote for a value in a slot that is not decided."""
        committed = self._log.committed
        return any(v == value for slot, (_, v) in self._journal.entries.items() if slot >= committed)

    @property
    def _fast_journal(self) -> FastJournal:
        assert isinstance(self._journal, FastJournal)
        return self._journal

    def _has_voted(self, slot: int) -> bool:
        """Whether there is a vote in a slot in this ballot: there may not be a second one."""
        known = self._journal.entries.get(slot)
        return known is not None and known[0] == self.ballot

    def on_message(self, source: NodeId, message: Message) -> None:
        """A message of Fast Paxos or of consensus."""
        index = self._group.indices.get(source)
        if isinstance(message, FastVote | FastCommit | Open):
            if index is not None and self._recovery is None:
                self._check(source, message)
                self._on_fast(source, index, message)
            return
        leadership = self._leadership
        if isinstance(message, Recover) and index is not None and isinstance(leadership, FastLeadership):
            leadership.forget_votes(index)
        super().on_message(source, message)

    def _check(self, source: NodeId, message: FastVote | FastCommit | Open) -> None:
        """Refuse ballots and slots that cannot be, as `Limits` does for the messages of consensus."""
        self._limits.check_ballot(source, message.ballot, max(self._seen, self._journal.promised))
        ends = {FastVote: "slot", FastCommit: "committed", Open: "start"}
        self._limits.check_slots(source, getattr(message, ends[type(message)]))
        if isinstance(message, FastCommit) and message.start + len(message.digests) > message.committed:
            raise RemoteError(f"node {source} tells the values of slots that it has not committed")

    def _on_fast(self, source: NodeId, index: int, message: FastVote | FastCommit | Open) -> None:
        match message:
            case FastVote() if isinstance(self._leadership, FastLeadership):
                self._leadership.on_vote(index, message)
            case FastCommit() if self._follow(source, message.ballot):
                for slot, digest in enumerate(message.digests, message.start):
                    self._fast_journal.confirm(slot, message.ballot, digest)
                self._catchup.heed(message.ballot, message.committed)
            case Open() if self._follow(source, message.ballot) and self._opened != message.ballot:
                self._opened = message.ballot
                self._next = message.start

    def _on_accept(self, source: NodeId, message: Accept) -> None:
        journal = self._fast_journal
        before = journal.entries.get(message.slot) if message.slot in journal.fast else None
        super()._on_accept(source, message)
        after = journal.entries.get(message.slot)
        self._accepted(message.value)
        if before is not None and after is not None and before[1] != after[1]:
            self._displaced(before[1])

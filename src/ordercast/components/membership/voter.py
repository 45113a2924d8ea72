"""How a node answers the coordinator of a change: by a promise, a vote, or a newer view or ballot.

A node that receives nothing answers too, but its answers are no votes.
"""

from ordercast.components.membership.journal import VoteJournal
from ordercast.components.membership.messages import Agreed, Install, Outbid, Proposal, Stopped
from ordercast.core import Env, Groups, NodeId


class Voter:
    """The acceptor of a node."""

    __slots__ = ("_env", "_journal")

    def __init__(self, env: Env, journal: VoteJournal) -> None:
        self._env = env
        self._journal = journal

    def follows(self, source: NodeId, base: int, ballot: int) -> bool:
        """Whether a coordinator is up to date; one that is not is told so."""
        journal = self._journal
        if base < journal.record.number:
            self._env.send(source, Install(journal.record))
        elif base == journal.record.number and ballot < journal.promised:
            self._env.send(source, Outbid(base, journal.promised))
        return base == journal.record.number and ballot >= journal.promised

    def promise(
        self, source: NodeId, ballot: int, wishes: Groups | None, received: tuple[int, ...] | None
    ) -> None:
        """Promise a ballot, and say what this node has and wants."""
        journal = self._journal
        journal.promise(ballot)
        answer = Stopped(
            journal.record.number,
            ballot,
            journal.incarnation,
            self._may_vote,
            wishes,
            journal.accepted_ballot,
            journal.accepted,
            received,
        )
        self._env.send(source, answer)

    def accept(self, source: NodeId, message: Proposal) -> None:
        """Accept a value; the caller has checked that the coordinator is up to date."""
        if self._may_vote:
            self._journal.accept(message.ballot, message.value)
            self._env.send(source, Agreed(self._journal.record.number, message.ballot))

    @property
    def _may_vote(self) -> bool:
        return self._env.me in self._journal.record.voters and not self._journal.abstains

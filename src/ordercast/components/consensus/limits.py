"""What a replica may claim: ballots and slots that a correct one can have reached.

A slot lives until the snapshots of all replicas cover it, and a leader keeps at most `log_limit` slots. So no
correct replica knows a slot that is `log_limit` or more above the own snapshot, however far behind this one
is. Of ballots only a rough bound is known: each takes an election, and there have not been so many. A claim
beyond is refused before it changes anything: a slot far ahead would have to be reached by no-ops, and a
ballot at the end of all numbers would leave none for later leaders.
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import (
    Accept,
    Canvass,
    Commit,
    Fetch,
    Heard,
    Learn,
    Prepare,
    Promise,
    Reject,
    Support,
)
from ordercast.core import Message, NodeId, RemoteError

BALLOTS_AHEAD_MAX = 1 << 32
"""More elections than a replica can have missed: at one each millisecond they take seven weeks."""


class Limits:
    """The bounds on what comes from others, as this replica knows them."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    def check(self, source: NodeId, message: Message, seen: int) -> None:
        """Raise `RemoteError` if a message claims what cannot be; `seen` is the highest ballot heard of.

        The ballot and the slot of an answer are those of a question, or the answer has no effect.
        """
        match message:
            case Accept():
                self._check_ballot(source, message.ballot, seen)
                self._check_slots(source, max(message.slot + 1, message.committed))
            case Commit():
                self._check_ballot(source, message.ballot, seen)
                self._check_slots(source, message.committed)
                self._check_floor(source, message.floor)
            case Prepare():
                self._check_ballot(source, message.ballot, seen)
                self._check_slots(source, max(message.start, message.committed))
            case Promise():
                self._check_promise(source, message)
            case Reject():
                self._check_ballot(source, message.ballot, seen)
            case Support():
                self._check_ballot(source, max(message.ballot, message.promised), seen)
            case Canvass():
                self._check_ballot(source, message.ballot, seen)
                self._check_slots(source, message.committed)
            case Fetch():
                self._check_slots(source, message.start)
            case Learn():
                self._check_slots(source, max(message.start + len(message.values), message.committed))
            case Heard():
                self._check_slots(source, message.stable)

    def _check_ballot(self, source: NodeId, ballot: int, seen: int) -> None:
        if ballot - seen > BALLOTS_AHEAD_MAX:
            raise RemoteError(f"ballot {ballot} from node {source} is too high; the highest so far is {seen}")

    def _check_slots(self, source: NodeId, end: int) -> None:
        limit = self._log.journal.stable + self._log.options.log_limit
        if end > limit:
            raise RemoteError(f"node {source} claims slot {end - 1}, but no log is longer than {limit} slots")

    def _check_floor(self, source: NodeId, floor: int) -> None:
        stable = self._log.journal.stable
        if floor > stable:
            raise RemoteError(
                f"node {source} says that all snapshots cover {floor} slots; this replica's covers {stable}"
            )

    def _check_promise(self, source: NodeId, message: Promise) -> None:
        """An accepted slot has a ballot that its replica had promised by then."""
        ends = [slot + 1 for slot, _, _ in message.entries]
        self._check_slots(source, max([message.start, message.following, *ends]))
        if any(ballot > message.ballot for _, ballot, _ in message.entries):
            raise RemoteError(f"node {source} accepted a value in a ballot above {message.ballot}")

"""What a replica may claim: ballots and slots that a correct one can have reached.

A leader keeps at most `log_limit` slots. Where snapshots are not sent, a slot lives until those of all
replicas cover it. So no correct replica knows a slot that is `log_limit` or more above the own snapshot,
however far behind this one is. Where snapshots are sent, a slot is held against what its sender says that it
has committed. Of that, and of ballots, only a rough bound is known: each ballot takes an election, and there
have not been so many. A claim beyond is refused before it changes anything: a slot far ahead would have to be
reached by no-ops, and a ballot at the end of all numbers would leave none for later leaders.
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import (
    Accept,
    Canvass,
    Chunk,
    Commit,
    Confirm,
    Fetch,
    Heard,
    Learn,
    Prepare,
    Promise,
    Recovered,
    Reject,
    Support,
)
from ordercast.core import Message, NodeId, RemoteError

BALLOTS_AHEAD_MAX = 1 << 32
"""More elections than a replica can have missed: at one each millisecond they take seven weeks."""


SLOTS_AHEAD_MAX = 1 << 40
"""More slots than a replica can have missed: at a million each second they take twelve days."""

SNAPSHOT_BYTES_MAX = 1 << 32
"""The largest snapshot that is taken from others."""


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
                self.check_ballot(source, message.ballot, seen)
                self.check_slots(source, max(message.slot + 1, message.committed))
                self._check_span(source, message.slot, message.committed)
            case Commit():
                self.check_ballot(source, message.ballot, seen)
                self.check_slots(source, message.committed)
                self._check_floor(source, message.floor, message.committed)
            case Prepare():
                self.check_ballot(source, message.ballot, seen)
                self.check_slots(source, max(message.start, message.committed))
                self._check_lives(source, message.known_lives())
            case Promise():
                self._check_promise(source, message)
            case Reject() | Confirm():
                self.check_ballot(source, message.ballot, seen)
            case Support():
                self.check_ballot(source, max(message.ballot, message.promised), seen)
            case Canvass():
                self.check_ballot(source, message.ballot, seen)
                self.check_slots(source, message.committed)
            case Fetch():
                self.check_slots(source, message.start)
            case Learn():
                self._check_lesson(source, message)
            case Heard():
                self.check_slots(source, message.stable)
            case Chunk():
                self.check_slots(source, message.index)
                self._check_chunk(source, message)
            case Recovered():
                self.check_ballot(source, message.ballot, seen)
                self.check_slots(source, message.end)
                self._check_lives(source, message.lives)

    def check_ballot(self, source: NodeId, ballot: int, seen: int) -> None:
        """Refuse a ballot that is too far above the highest one heard of."""
        if ballot - seen > BALLOTS_AHEAD_MAX:
            raise RemoteError(f"ballot {ballot} from node {source} is too high; the highest so far is {seen}")

    def check_slots(self, source: NodeId, end: int) -> None:
        """Refuse slots that are too far ahead of the own snapshot."""
        log = self._log
        ahead = SLOTS_AHEAD_MAX if log.owner.transfers else log.options.log_limit
        limit = log.journal.stable + ahead
        if end > limit:
            raise RemoteError(f"node {source} claims slot {end - 1}, but no log is longer than {limit} slots")

    def _check_lesson(self, source: NodeId, message: Learn) -> None:
        """Nobody teaches slots beyond those that it says are committed."""
        self.check_slots(source, message.committed)
        end = message.start + len(message.values)
        if message.values and end > message.committed:
            raise RemoteError(f"node {source} teaches slot {end - 1}, but has committed {message.committed}")

    def _check_span(self, source: NodeId, slot: int, committed: int) -> None:
        if self._log.owner.transfers and slot - committed >= self._log.options.log_limit:
            raise RemoteError(f"node {source} proposes slot {slot}, but has committed only {committed}")

    def _check_lives(self, source: NodeId, lives: tuple[int, ...]) -> None:
        if lives and len(lives) != len(self._log.group.peers):
            raise RemoteError(f"node {source} knows the lives of {len(lives)} replicas")

    def _check_chunk(self, source: NodeId, chunk: Chunk) -> None:
        if chunk.offset + len(chunk.data) > chunk.size or chunk.size > SNAPSHOT_BYTES_MAX:
            raise RemoteError(f"node {source} sends a snapshot of {chunk.size} bytes with too many bytes")
        if not chunk.data and chunk.size:
            raise RemoteError(f"node {source} sends a part of a snapshot without any bytes")

    def _check_floor(self, source: NodeId, floor: int, committed: int) -> None:
        stable = self._log.journal.stable
        if self._log.owner.transfers:
            if floor > committed:
                raise RemoteError(f"node {source} has snapshots of slots that are not committed")
        elif floor > stable:
            raise RemoteError(
                f"node {source} says that all snapshots cover {floor} slots; this replica's covers {stable}"
            )

    def _check_promise(self, source: NodeId, message: Promise) -> None:
        """An accepted slot has a ballot that its replica had promised by then."""
        ends = [slot + 1 for slot, _, _ in message.entries]
        self.check_slots(source, max([message.start, message.following, *ends]))
        self._check_lives(source, message.known_lives())
        log = self._log
        # A promise of another ballot is late, and has no effect: this replica may have lost its memory since.
        if log.owner.transfers and message.ballot == log.journal.promised:
            # After a restart either side may have to commit again what lies behind its snapshot.
            limit = log.committed + log.options.log_limit + 2 * log.options.checkpoint
            if any(end > limit for end in ends):
                raise RemoteError(f"node {source} accepted slot {max(ends) - 1}, but has committed less")
        if any(ballot > message.ballot for _, ballot, _ in message.entries):
            raise RemoteError(f"node {source} accepted a value in a ballot above {message.ballot}")

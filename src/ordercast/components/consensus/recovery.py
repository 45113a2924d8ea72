"""The way back of a replica that lost its memory (Viewstamped Replication's recovery, made safe).

Such a replica may have promised a ballot and accepted values, and it does not know them. If it voted again, a
majority could decide a slot a second time. So it takes no part until it has learned enough:

- It begins a *life* with a number above those of all its earlier lives, and asks all others. Who answers
  remembers the life, and from then on counts no promise of an earlier one.
- It needs answers from so many others that each majority has one of them (for 2f+1 replicas: f+1). The
  highest ballot among the answers is at least as high as any ballot that was led with its help.
- It needs the answer of the leader of this highest ballot, and takes over what that leader has proposed. All
  that may have been chosen with its earlier votes is there: the leader's majority reported it.

A promise of an earlier life may be with a candidate who gave no answer, or still be on its way. That
candidate cannot use it: to lead it needs the promise of a replica that did answer, and promises carry the
known lives. A candidate that learns of a new life throws the promise of the old one away. (Michael, Ports,
Sharma and Szekeres, "Recovering Shared Objects Without Stable Storage", show what goes wrong without this.)
An acceptance of an earlier life may be counted at any time: its slot was proposed before this life began, so
it is among what the leader of that ballot, or of a later one, hands over.

The group loses nothing while fewer than half of its replicas are down or without memory at the same time. If
more lose it, those that are left decide nothing more: nobody can tell what was decided.
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Chunk, Recover, Recovered
from ordercast.components.consensus.options import BACKOFF_MAX
from ordercast.components.consensus.transfer import Download
from ordercast.core import Message, NodeId, Wait


def remind(log: Log, source: NodeId, asked: Recover, end: int | None) -> None:
    """Tell a replica without memory what it may have voted for; its earlier lives count no more.

    `end` is that of a leader which has proposed all that it found in phase 1.
    """
    journal = log.journal
    journal.know_life(log.group.indices[source], asked.life)
    told = (asked.life, journal.promised, journal.lives_told())
    if end is None:
        log.env.send(source, Recovered(*told))
        return
    start = max(asked.start, journal.base)
    chunk = journal.accepted_from(start, log.options.chunk_bytes, end)
    log.env.send(source, Recovered(*told, True, end, start, *chunk))


class Recovery:
    """What a replica without memory has been told."""

    __slots__ = (
        "_ballots",
        "_cursor",
        "_download",
        "_entries",
        "_log",
        "_since",
        "ballot",
        "end",
        "leader",
        "life",
    )

    def __init__(self, log: Log, download: Download) -> None:
        self.life = max(1, log.env.now)
        self.ballot = -1
        """The highest ballot whose leader has answered."""
        self.leader: NodeId | None = None
        self.end = 0
        """Slots below may have been delivered by an earlier life."""
        self._log = log
        self._download = download
        self._since = log.env.now
        self._ballots: dict[NodeId, int] = {}
        self._cursor = 0
        self._entries: dict[int, bytes] = {}
        log.journal.mark(lost=True)
        log.journal.know_life(log.group.index, self.life)

    def ask(self) -> None:
        """Ask all others, again and again: a leader may have to be elected first."""
        if self._download.active:
            self._download.ask_again()
        else:
            self._log.env.multicast(self._log.group.others, Recover(self.life, self._cursor))
            if self._download.refused:
                self._download.ask_another()
        silent = self._download.silent if self._download.active else 0
        self._log.env.set_timer("tick", self._log.options.retry_ns << min(silent, BACKOFF_MAX))

    def on_message(self, source: NodeId, message: Message) -> bool:
        """Take an answer and ask for more; whether this replica may vote again."""
        if isinstance(message, Chunk) and self._download.on_chunk(source, message):
            self._cursor = max(self._cursor, self._log.committed)
            self.ask()
        elif isinstance(message, Recovered) and message.life == self.life:
            self._on_answer(source, message)
            if self._is_over():
                self._download.stop()
                self._log.journal.return_with(self.ballot, self._found())
                return True
        return False

    def waits(self) -> list[Wait]:
        """Who has not answered, or what is missing."""
        silent = tuple(node for node in self._log.group.others if node not in self._ballots)
        needed = self._needed() - len(self._ballots)
        if needed > 0:
            blocker = f"answers from {needed} of the nodes {', '.join(map(str, silent))}"
        elif self.ballot < max(self._ballots.values()):
            silent, blocker = (), f"the leader of ballot {max(self._ballots.values())} or of a later one"
        else:
            silent = () if self.leader is None else (self.leader,)
            blocker = f"slots {self._cursor} to {self.end - 1} from node {self.leader}"
        return [Wait("its lost memory", blocker, self._since, on=silent)]

    def _on_answer(self, source: NodeId, message: Recovered) -> None:
        self._log.journal.know_lives(message.lives)
        self._ballots[source] = max(message.ballot, self._ballots.get(source, 0))
        if message.leads and message.ballot > self.ballot:
            self._follow(source, message)
        if message.leads and message.ballot == self.ballot and message.start == self._cursor:
            self._take(message)

    def _follow(self, source: NodeId, message: Recovered) -> None:
        """A leader answers for the first time: what it proposes later was not seen by any earlier life."""
        self.ballot, self.leader, self.end = message.ballot, source, message.end
        self._entries.clear()
        self._cursor = self._log.committed

    def _take(self, message: Recovered) -> None:
        self._entries |= {slot: value for slot, _, value in message.entries if slot < self.end}
        self._cursor = message.following or max(message.end, self._cursor)
        if self._cursor < self.end:
            assert self.leader is not None
            self._log.env.send(self.leader, Recover(self.life, self._cursor))

    def _needed(self) -> int:
        """So many others that each majority has one of them."""
        group = self._log.group
        return len(group.peers) - group.majority + 1

    def _is_over(self) -> bool:
        told = self._ballots.values()
        return len(told) >= self._needed() and self.ballot == max(told) and self._cursor >= self.end

    def _found(self) -> dict[int, bytes]:
        """What the leader has proposed, from the end of the snapshot on."""
        committed = self._log.committed
        return {slot: value for slot, value in self._entries.items() if slot >= committed}

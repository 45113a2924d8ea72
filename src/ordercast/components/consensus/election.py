"""Phase 1 at a candidate: promises collected, and the values they oblige a leader to propose.

A candidate repeats its questions until a majority has promised or somebody rejects it. If nobody answers any
more, it asks again who would vote for it, before it takes another ballot (see `canvassing`).
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Prepare, PrepareAmongLives, Promise, PromiseAmongLives
from ordercast.core import NodeId, Wait


def report(log: Log, asked: Prepare) -> Promise:
    """The promise of a voter, with a chunk of what it has accepted."""
    chunk = log.journal.accepted_from(asked.start, log.options.chunk_bytes)
    promise = (asked.ballot, asked.start, *chunk)
    lives = log.journal.lives_told()
    return PromiseAmongLives(*promise, lives) if lives else Promise(*promise)


class Election:
    """One candidacy: which replicas promised what, chunk by chunk."""

    __slots__ = ("_best", "_cursors", "_lives", "_log", "_since", "ballot")

    def __init__(self, log: Log, ballot: int) -> None:
        self.ballot = ballot
        self._log = log
        self._since = log.env.now
        self._cursors = dict.fromkeys(log.group.others, log.committed)
        """Replicas that have not reported everything yet, and the slot to ask each from."""
        self._lives = list(log.journal.lives)
        """In which life each replica reports. The promise of a life whose memory is lost is worth nothing."""
        self._best: dict[int, tuple[int, bytes]] = {}
        log.journal.promise(ballot)

    def solicit(self) -> None:
        """Ask all that have not reported everything yet."""
        for peer in self._cursors:
            self._ask(peer)

    def on_promise(self, source: NodeId, message: Promise) -> bool:
        """Take a chunk of what a replica accepted and ask for the next; False for a duplicate."""
        if message.ballot != self.ballot or not self._is_current(source, message):
            return False
        if self._cursors.get(source) != message.start:
            return False
        self._take(source, message)
        if message.following:
            self._cursors[source] = message.following
            self._ask(source)
        else:
            del self._cursors[source]
        return True

    def won(self) -> bool:
        """Whether a majority has promised and reported everything."""
        group = self._log.group
        return len(group.peers) - len(self._cursors) >= group.majority

    def values(self) -> dict[int, bytes]:
        """What the new leader must propose, for slots not committed yet."""
        for slot, (ballot, value) in self._log.journal.entries.items():
            self._report(slot, ballot, value)
        committed = self._log.committed
        return {slot: value for slot, (_, value) in self._best.items() if slot >= committed}

    def waits(self) -> list[Wait]:
        """Whose promise is missing."""
        asked = tuple(self._cursors)
        blocker = f"a promise from nodes {', '.join(map(str, asked))}"
        return [Wait(f"election in ballot {self.ballot}", blocker, self._since, on=asked)]

    def _ask(self, peer: NodeId) -> None:
        log = self._log
        asked = (self.ballot, self._cursors[peer], log.committed)
        lives = log.journal.lives_told()
        log.env.send(peer, PrepareAmongLives(*asked, lives) if lives else Prepare(*asked))

    def _is_current(self, source: NodeId, message: Promise) -> bool:
        """Take note of lives; whether the promise is one to this candidacy, of a life that goes on."""
        log = self._log
        told = message.known_lives() or (0,) * len(log.group.peers)
        log.journal.know_lives(told)
        known = log.journal.lives
        for peer, old, new in zip(log.group.peers, self._lives, known, strict=True):
            if old < new:
                self._cursors[peer] = log.committed
        self._lives = list(known)
        return all(told[i] == known[i] for i in (log.group.index, log.group.indices[source]))

    def _take(self, source: NodeId, message: Promise) -> None:
        for slot, ballot, value in message.entries:
            self._report(slot, ballot, value)

    def _report(self, slot: int, ballot: int, value: bytes) -> None:
        best = self._best.get(slot)
        if best is None or ballot > best[0]:
            self._best[slot] = (ballot, value)

"""Phase 1 at a candidate: promises collected, and the values they oblige a leader to propose.

A candidate repeats its questions until a majority has promised or somebody rejects it. If nobody answers any
more, it asks again who would vote for it, before it takes another ballot (see `canvassing`).
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Prepare, Promise
from ordercast.core import NodeId, Wait


class Election:
    """One candidacy: which replicas promised what, chunk by chunk."""

    __slots__ = ("_best", "_cursors", "_log", "_promised", "_since", "ballot")

    def __init__(self, log: Log, ballot: int) -> None:
        self.ballot = ballot
        self._log = log
        self._since = log.env.now
        self._cursors = dict.fromkeys(log.group.others, log.committed)
        """Replicas that have not reported everything yet, and the slot to ask each from."""
        self._promised = 1
        self._best: dict[int, tuple[int, bytes]] = {}
        log.journal.promise(ballot)

    def solicit(self) -> None:
        """Ask all that have not reported everything yet."""
        for peer in self._cursors:
            self._ask(peer)

    def on_promise(self, source: NodeId, message: Promise) -> bool:
        """Take a chunk of what a replica accepted and ask for the next; False for a duplicate."""
        if message.ballot != self.ballot or self._cursors.get(source) != message.start:
            return False
        for slot, ballot, value in message.entries:
            self._report(slot, ballot, value)
        if message.following:
            self._cursors[source] = message.following
            self._ask(source)
        else:
            del self._cursors[source]
            self._promised += 1
        return True

    def won(self) -> bool:
        """Whether a majority has promised and reported everything."""
        return self._promised >= self._log.group.majority

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
        self._log.env.send(peer, Prepare(self.ballot, self._cursors[peer], self._log.committed))

    def _report(self, slot: int, ballot: int, value: bytes) -> None:
        best = self._best.get(slot)
        if best is None or ballot > best[0]:
            self._best[slot] = (ballot, value)

"""How a replica that does not lead follows the committed prefix, and gets what it missed.

A commit notice names a ballot, and only what was accepted in that very ballot is committed by it:
the leader of a ballot proposes one value for a slot and counts in its own ballot alone. A record of
another ballot may hold another value, so it is fetched, in chunks, each asked for after the one
before. A replica that is behind the truncated log gets a snapshot instead (see `transfer`).
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Chunk, Fetch, Learn, Recover, Want
from ordercast.components.consensus.options import BACKOFF_MAX
from ordercast.components.consensus.recovery import remind
from ordercast.components.consensus.transfer import Download, Shelf
from ordercast.core import Nanos, NodeId, Wait


class Catchup:
    """The last commit notice, and the fetching of what is missing below it."""

    __slots__ = (
        "_asked",
        "_ballot",
        "_goal",
        "_log",
        "_reached",
        "_shelf",
        "_since",
        "download",
        "fetching",
    )

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ballot = 0
        self._goal = 0
        self._since: Nanos = 0
        self.fetching = False
        self._asked = 0
        """Questions in a row without an answer."""
        self._reached = -1
        self._shelf = Shelf(log)
        self.download = Download(log)

    def heed(self, ballot: int, committed: int) -> None:
        """A commit notice: apply what was accepted in its ballot, and arrange to fetch the rest."""
        log = self._log
        self._goal = max(committed, self._goal) if ballot == self._ballot else committed
        self._ballot = ballot
        while log.committed < self._goal:
            if not log.journal.is_certain(log.committed, ballot):
                break
            log.deliver_next()
        if log.committed < self._goal:
            # Not at once: on a network that reorders, what is missing may be about to arrive.
            self._fetch_later()

    def on_timer(self, leader: NodeId | None) -> None:
        """Ask the leader for what is missing, until nothing is; and others if its snapshot was refused."""
        log = self._log
        self.fetching = log.committed < self._goal or self.download.active
        if self.fetching:
            self._asked = self._asked + 1 if log.committed == self._reached else 0
            self._reached = log.committed
            if self.download.active:
                self.download.ask_again()
            elif leader is not None:
                teacher = self.download.next_other() if self.download.refused else leader
                log.env.send(teacher, Fetch(log.committed))
            log.env.set_timer("fetch", log.options.retry_ns << min(self._asked, BACKOFF_MAX))

    def stop(self) -> None:
        """This replica leads now: what it lacks it proposes."""
        self.fetching = False
        self.download.stop()
        self._log.env.cancel_timer("fetch")

    def on_lesson(self, source: NodeId, message: Learn | Chunk) -> bool:
        """Apply what is learned; whether this replica may ask for votes again, if it had asked too early."""
        if isinstance(message, Learn):
            return self._on_learn(source, message)
        return self._on_chunk(source, message)

    def answer(self, source: NodeId, asked: Fetch | Want | Recover, end: int | None) -> None:
        """Help a replica that is behind, or without memory; `end` is that of a leader."""
        if isinstance(asked, Fetch):
            self.teach(source, asked.start)
        elif isinstance(asked, Want):
            self._shelf.give(source, asked)
        else:
            remind(self._log, source, asked, end)
            if end is not None and asked.start < self._log.journal.base:
                self._shelf.offer(source)

    def _on_learn(self, source: NodeId, message: Learn) -> bool:
        """Apply what was learned; whether that was all that the sender has."""
        log = self._log
        before = log.committed
        if message.start <= before:
            for value in message.values[before - message.start :]:
                log.journal.learn(log.committed, value)
                log.deliver_next()
            self.heed(self._ballot, self._goal)
        # Without progress it was a duplicate, and asking again would multiply it.
        if before < log.committed < message.committed:
            log.env.send(source, Fetch(log.committed))
        return log.committed >= message.committed

    def _on_chunk(self, source: NodeId, chunk: Chunk) -> bool:
        """Take a part of a snapshot; whether the whole of it is in place now."""
        installed = self.download.on_chunk(source, chunk)
        if installed:
            self.heed(self._ballot, self._goal)
        elif self.download.active:
            self._fetch_later()
        return installed

    def teach(self, source: NodeId, start: int) -> None:
        """Send a chunk of committed values, or of a snapshot, to a replica that is behind."""
        log = self._log
        if start < log.journal.base:
            self._shelf.offer(source)
        elif start < log.committed:
            values = log.journal.values_from(start, log.committed, log.options.chunk_bytes)
            log.env.send(source, Learn(start, values, log.committed))

    def waits(self, leader: NodeId | None) -> list[Wait]:
        """What is missing here, and since when."""
        if self.download.active:
            return self.download.waits()
        if not self.fetching or self._log.committed >= self._goal:
            return []
        source = (
            "a leader; none is known" if leader is None else f"node {leader}, which has not sent them yet"
        )
        subject = f"slots {self._log.committed} to {self._goal - 1}, which this replica lacks"
        return [Wait(subject, source, self._since, on=() if leader is None else (leader,))]

    def _fetch_later(self) -> None:
        if not self.fetching:
            self.fetching = True
            self._since = self._log.env.now
            self._log.env.set_timer("fetch", self._log.options.retry_ns)

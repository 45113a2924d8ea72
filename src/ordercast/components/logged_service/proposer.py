"""The queue in front of a leader's log.

A call takes a slot at once while few slots are in flight. Beyond, calls wait and share slots, so that a busy
leader sends fewer messages. The same call may come again while it waits or is in flight; it is proposed once
in a leadership. That only saves work: what is executed twice is decided when calls are executed, by the
client table that all replicas share.
"""

from collections import deque
from collections.abc import Hashable

from ordercast.components.consensus import Replica
from ordercast.components.logged_service.messages import pack_batch
from ordercast.components.logged_service.options import BatchOptions
from ordercast.core.message import PAYLOAD_BYTES_MAX

NO_BALLOT = -1


class Proposer:
    """The calls that wait for a slot, and those that have one."""

    __slots__ = ("_ballot", "_log", "_options", "_proposed", "_queue")

    def __init__(self, log: Replica, options: BatchOptions) -> None:
        self._log = log
        self._options = options
        self._ballot = NO_BALLOT
        self._queue: deque[bytes] = deque()
        self._proposed: set[Hashable] = set()
        """The names of the calls in the queue or in flight."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def under_way(self) -> int:
        """How many wait or are in flight."""
        return len(self._proposed)

    def leads(self) -> bool:
        """Whether this replica leads. What an earlier leadership had is gone; clients call again."""
        ballot = self._log.ballot if self._log.is_leader else NO_BALLOT
        if ballot != self._ballot:
            self._ballot = ballot
            self._queue.clear()
            self._proposed.clear()
        return ballot != NO_BALLOT

    def add(self, name: Hashable, packed: bytes) -> None:
        """Put a call into the log, unless it is on its way."""
        if self.leads() and name not in self._proposed and len(self._queue) < self._options.queue:
            self._proposed.add(name)
            self._queue.append(packed)

    def done(self, name: Hashable) -> None:
        """A call has come out of the log."""
        self._proposed.discard(name)

    def push(self) -> None:
        """Propose what waits, as far as the log takes it."""
        if not self.leads():
            return
        while self._queue and self._log.in_flight < self._options.in_flight:
            batch = self._next_batch()
            if not self._log.propose(pack_batch(batch)):
                return
            for _ in batch:
                self._queue.popleft()

    def _next_batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        for packed in self._queue:
            size += len(packed)
            if len(batch) == self._options.batch or (batch and size > PAYLOAD_BYTES_MAX):
                break
            batch.append(packed)
        return batch

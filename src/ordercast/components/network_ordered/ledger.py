"""The execution of a log: what was executed of it, and the states to go back to.

A leader executes each call at once, so it may have executed calls that never become certain. It then goes
back to the last state that it kept, and executes the log again up to where it is certain. Others execute only
what is certain.

A *checkpoint* is taken after the same calls at all replicas. It counts, and the log before it is forgotten,
once the certain part of the log has passed it.
"""

from typing import NamedTuple

from ordercast.components.execution import Call, Execution, Executor, unpack_call
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.place import LogEntry, LogPlace, Rank
from ordercast.core import RemoteError


class Taken(NamedTuple):
    """A state that was kept."""

    place: LogPlace
    state: bytes
    digest: tuple[int, int]


class Ledger:
    """The executor of a replica, beside its log."""

    def __init__(self, log: SlotLog, executor: Executor, every: int) -> None:
        self._log = log
        self._every = every
        self.executor = executor
        self.executed = 0
        """So many entries of the log are executed."""
        self.state = self.pack(executor.snapshot())
        """The state at the base of the log."""
        self.outcomes: list[tuple[Call | None, Execution | None]] = []
        """What became of those, entry by entry."""
        self._taken: list[Taken] = []

    def pack(self, state: bytes) -> bytes:
        """What is kept of a state, and given to others."""
        return state

    def unpack(self, packed: bytes) -> bytes:
        """The state in that."""
        return packed

    def execute(self, stop: int) -> None:
        """Execute the log up to this many entries."""
        for entry in self._log.entries[self.executed : stop]:
            self.executed += 1
            call, done = self._run(entry)
            self.outcomes.append((call, done))
            if done is not None and done.fresh and self.executor.is_checkpoint(self._every):
                state, digest = self.executor.checkpoint()
                place = self._log.place_at(self.executed)
                self._taken.append(Taken(place, self.pack(state), digest))

    def _run(self, entry: LogEntry) -> tuple[Call | None, Execution | None]:
        """Execute an entry: its call, if it is one, and what became of it."""
        call = call_of(entry)
        return call, None if call is None else self.executor.execute(call, entry.stamp)

    def roll_back(self, stop: int) -> None:
        """Undo what was executed beyond this many entries, state and client table."""
        if self.executed > stop:
            self.executor.restore(self.unpack(self.state))
            self.executed = 0
            self.outcomes.clear()
            self._taken.clear()
            self.execute(stop)

    def next_checkpoint(self) -> Taken | None:
        """The first checkpoint that has become certain, if there is one."""
        if self._taken and self._taken[0].place.rank <= self._log.synced_rank:
            return self._taken.pop(0)
        return None

    def rebase(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Let the log begin at a checkpoint; returns the entries that are forgotten."""
        gone = self._log.rebase(place)
        self.state = state
        self.executed -= len(gone)
        del self.outcomes[: len(gone)]
        return gone

    def restore(self, place: LogPlace, state: bytes) -> list[LogEntry]:
        """Take over the state of another replica, beyond what is certain here; returns the entries that are
        forgotten. `LocalError` if it is no state at that place; then nothing changes."""
        self.executor.restore(self.unpack(state), place.rank)
        gone = self._log.rebase(place)
        self._log.synced = 0
        self.state = state
        self.executed = 0
        self.outcomes.clear()
        self._taken.clear()
        return gone

    @property
    def rank(self) -> Rank:
        """The rank of the last entry that was executed."""
        return self._log.entries[self.executed - 1].rank if self.executed else self._log.base.rank


def call_of(entry: LogEntry) -> Call | None:
    """The call in an entry; None if no correct client made it."""
    try:
        return unpack_call(entry.payload, entry.client)
    except RemoteError:
        return None

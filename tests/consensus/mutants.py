"""The log broken on purpose: what keeps it safe when memory is lost and when leaders change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ordercast.components.consensus import transfer
from ordercast.components.consensus.election import Election
from ordercast.components.consensus.journal import Journal
from ordercast.components.consensus.leadership import Barrier, Leadership
from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Chunk
from ordercast.components.consensus.recovery import Recovery
from ordercast.components.consensus.transfer import Download, Name, Shelf
from tests.consensus.test_reads import deposed_leader, late_answer, new_leader
from tests.consensus.test_recovery import (
    outdated_leader,
    outdated_majority,
    promise_of_an_earlier_life,
    proposals_forgotten,
)
from tests.consensus.test_transfer import (
    absent_replica,
    damaged_chunk,
    lagging_replica,
    stale_values,
    two_snapshots,
)


def _vote_without_memory(self: Journal, saved: Any) -> bool:
    return False


def _ask_one(self: Recovery) -> int:
    return 1


def _any_leader(self: Recovery) -> bool:
    return len(self._ballots) >= self._needed() and self.ballot >= 0 and self._cursor >= self.end


def _no_proposals(self: Recovery) -> dict[int, bytes]:
    return {}


def _old_lives_count(self: Election, source: int, message: Any) -> bool:
    return True


def _one_slot_late(self: Log, index: int, state: bytes) -> None:
    self.journal.install(index + 1, state)
    self.restore(state)


def _one_slot_early(self: Shelf, to: int, snapshot: Any, offset: int, _send: Any = Shelf._send) -> None:
    (slot, digest), state = snapshot
    _send(self, to, ((slot - 1, digest), state), offset)


def _no_digest(state: bytes) -> bytes:
    return bytes(16)


def _old_values_stay(self: Journal, index: int, state: bytes) -> None:
    self.checkpoint(index, state)


def _of_all(self: Leadership) -> int:
    return min(self.stable)


def _always_confirmed(self: Leadership) -> int:
    return 1 << 60


def _nothing_inherited(self: Leadership, _barrier: Callable[..., Barrier] = Leadership.barrier) -> Barrier:
    return _barrier(self)._replace(slot=0)


def _shared_round(self: Leadership) -> Barrier:
    """A read that comes while a round is under way takes part in it."""
    if self._confirmed() >= self._round:
        self._begin_round()
    return Barrier(self.ballot, self._round, max(self._log.committed, self._inherited))


def _any_chunk(self: Download, source: int, chunk: Chunk) -> bool:
    """Takes chunks of all snapshots for parts of one, and checks nothing at the end."""
    if chunk.index <= self._log.committed or chunk.offset != len(self._data):
        return False
    self._data += chunk.data
    self._donor, self._name = source, self._name or Name(chunk.index, chunk.digest)
    if len(self._data) < chunk.size:
        self._ask()
        return False
    state = bytes(self._data)
    self.stop()
    self._log.install(chunk.index, state)
    return True


@dataclass(frozen=True)
class Mutant:
    """What is broken, and the scene that shows it."""

    name: str
    owner: Any
    method: str
    broken: Any
    scene: Callable[[], None]


MUTANTS = (
    Mutant("a vote without memory", Journal, "is_lost", _vote_without_memory, proposals_forgotten),
    Mutant("a recovery that asks one replica", Recovery, "_needed", _ask_one, outdated_leader),
    Mutant("a recovery from an outdated leader", Recovery, "_is_over", _any_leader, outdated_majority),
    Mutant("nothing of the leader's proposals", Recovery, "_found", _no_proposals, proposals_forgotten),
    Mutant("old lives count", Election, "_is_current", _old_lives_count, promise_of_an_earlier_life),
    Mutant("a snapshot taken for a later slot", Log, "install", _one_slot_late, lagging_replica),
    Mutant("a snapshot sent for an earlier slot", Shelf, "_send", _one_slot_early, lagging_replica),
    Mutant("chunks of two snapshots mixed", Download, "on_chunk", _any_chunk, two_snapshots),
    Mutant("a snapshot is not checked", transfer, "digest_of", _no_digest, damaged_chunk),
    Mutant("values below a snapshot stay on record", Journal, "install", _old_values_stay, stale_values),
    Mutant("all snapshots are waited for", Leadership, "_floor", _of_all, absent_replica),
    Mutant("a read of a deposed leader", Leadership, "_confirmed", _always_confirmed, deposed_leader),
    Mutant("a read in a round that began before", Leadership, "barrier", _shared_round, late_answer),
    Mutant("a read before earlier ballots", Leadership, "barrier", _nothing_inherited, new_leader),
)

"""Snapshots on their way to a replica that lags behind the truncated log.

A snapshot goes in chunks, each asked for after the one before, and is named by its slot and the digest of all
its bytes. All replicas make the same snapshot at the same slot, so any of them may send the next chunk: a
replica that gets no answer asks another one and goes on where it stopped. Chunks of two snapshots are never
put together. The digest is checked at the end. A snapshot that does not match, or that the owner cannot
take, is thrown away, and other replicas are asked for theirs, one after the other.

What has come is not given up soon. A donor that makes a snapshot itself, or waits for a processor, is silent
for a while, and a large snapshot would never be complete if each silence meant to begin anew.

A donor keeps the snapshot that was last asked for, besides its newest one. Otherwise a log that grows quickly
would take the snapshot away from under every transfer that takes a while.
"""

from hashlib import blake2b
from typing import NamedTuple

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Chunk, Want
from ordercast.core import NodeId, RemoteError, Wait

DIGEST_BYTES = 16
PATIENCE = 16
"""After so many questions in a row without an answer, another snapshot is taken than the one on its way."""


class Name(NamedTuple):
    """Which snapshot it is."""

    slot: int
    digest: bytes


def digest_of(state: bytes) -> bytes:
    """What proves that all chunks are there and belong together."""
    return blake2b(state, digest_size=DIGEST_BYTES).digest()


class Shelf:
    """The snapshots that this replica can send to others."""

    __slots__ = ("_asked", "_log", "_newest")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._newest: tuple[Name, bytes] | None = None
        self._asked: tuple[Name, bytes] | None = None
        """The snapshot that was last asked for."""

    def offer(self, to: NodeId) -> None:
        """Send the first chunk of the newest snapshot, from which the other learns its name."""
        newest = self._find_newest()
        if newest is not None:
            self._send(to, newest, 0)

    def give(self, to: NodeId, wanted: Want) -> None:
        """Send the chunk that was asked for, or the beginning of a newer snapshot."""
        name = Name(wanted.index, wanted.digest)
        known = self._asked
        if known is None or known[0] != name:
            known = self._find_newest()  # whose digest takes a while
        if known is None:
            return
        if known[0] == name and wanted.offset <= len(known[1]) - bool(known[1]):
            self._send(to, known, wanted.offset)
        elif known[0].slot >= name.slot:
            self._send(to, known, 0)

    def _find_newest(self) -> tuple[Name, bytes] | None:
        journal = self._log.journal
        if journal.state is not None and (self._newest is None or self._newest[0].slot != journal.stable):
            self._newest = (Name(journal.stable, digest_of(journal.state)), journal.state)
        return self._newest

    def _send(self, to: NodeId, snapshot: tuple[Name, bytes], offset: int) -> None:
        self._asked = snapshot
        (index, digest), state = snapshot
        data = state[offset : offset + self._log.options.chunk_bytes]
        self._log.env.send(to, Chunk(index, digest, len(state), offset, data))


class Download:
    """The snapshot that comes to this replica, if one does."""

    __slots__ = ("_bad", "_came", "_data", "_donor", "_giver", "_log", "_name", "_since", "refused", "silent")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._name: Name | None = None
        self._donor: NodeId = log.env.me
        """Who was asked last."""
        self._giver: NodeId = log.env.me
        """Who has sent the last chunk."""
        self._came = False
        """Whether a chunk has come since it was last time to ask again."""
        self.silent = 0
        """Questions in a row without a new chunk."""
        self._data = bytearray()
        self._since = 0
        self.refused = 0
        """Snapshots in a row that could not be taken."""
        self._bad: Name | None = None
        """The last one that the owner could not take: whoever sends it, it is the same."""

    @property
    def active(self) -> bool:
        """Whether a snapshot is on its way, and this replica still needs it."""
        if self._name is not None and self._name.slot <= self._log.committed:
            self.stop()
        return self._name is not None

    def on_chunk(self, source: NodeId, chunk: Chunk) -> bool:
        """Take a chunk and ask for the next; whether the snapshot is complete and in place. `RemoteError` if
        it is complete and cannot be taken."""
        name = Name(chunk.index, chunk.digest)
        if name.slot <= self._log.committed or name == self._bad:
            return False
        if not self.active or (name != self._name and self._is_replaced(source, chunk)):
            self._begin(source, name)
        if name != self._name or chunk.offset != len(self._data):
            return False
        self._data += chunk.data
        self._donor = self._giver = source
        self._came = True
        self.silent = 0
        if len(self._data) < chunk.size:
            self._ask()
            return False
        return self._install(name)

    def ask_again(self) -> None:
        """It is time to. If nothing came, go on with the next replica, which may have the snapshot as well.

        If nobody has it any more, the transfer is over, and a leader will offer another snapshot.
        """
        if self._came:
            self._came = False
            return
        others = self._log.group.others
        if self.silent >= PATIENCE + len(others):
            self.stop()
            return
        self.silent += 1
        self._donor = self.next_other()
        self._ask()

    def next_other(self) -> NodeId:
        """Another replica than the one that was asked last."""
        others = self._log.group.others
        self._donor = others[(others.index(self._donor) + 1) % len(others)]
        return self._donor

    def ask_another(self) -> None:
        """Ask the next replica for its newest snapshot, whatever that is."""
        self._log.env.send(self.next_other(), Want(0, bytes(DIGEST_BYTES), 0))

    def stop(self) -> None:
        """No snapshot is needed any more."""
        self._name = None
        self._data = bytearray()

    def waits(self) -> list[Wait]:
        """What is missing of the snapshot, and who is asked for it."""
        if self._name is None:
            return []
        subject = f"the snapshot after slot {self._name.slot - 1}, of which {len(self._data)} bytes are here"
        return [Wait(subject, f"its next part from node {self._donor}", self._since, on=(self._donor,))]

    def _is_replaced(self, source: NodeId, chunk: Chunk) -> bool:
        """Whether another is to be taken: who gave this one begins with another, or is silent for long."""
        assert self._name is not None
        counts = source == self._donor and (source == self._giver or self.silent > PATIENCE)
        return counts and chunk.offset == 0 and chunk.index >= self._name.slot

    def _begin(self, source: NodeId, name: Name) -> None:
        self.stop()
        self._name = name
        self._donor = self._giver = source
        self.silent = 0
        self._since = self._log.env.now

    def _ask(self) -> None:
        assert self._name is not None
        self._log.env.send(self._donor, Want(*self._name, len(self._data)))

    def _install(self, name: Name) -> bool:
        state = bytes(self._data)
        self.stop()
        self.refused += 1
        if digest_of(state) != name.digest:
            raise RemoteError(f"a snapshot of {len(state)} bytes does not match its digest")
        self._bad = name
        self._log.install(name.slot, state)
        self.refused = 0
        return True

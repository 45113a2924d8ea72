"""What a replica of Fast Paxos remembers: which of its votes are of its own making.

A *classic* vote is for what the leader of the ballot proposed. A *fast* vote is for a call that came to this
replica from its client. In one ballot a slot gets one fast vote at most, and a classic one may replace it:
only the value that the leader has voted for can be chosen, so the other vote was in vain.
"""

from collections.abc import Mapping
from hashlib import blake2b
from struct import Struct

from ordercast.components.consensus.journal import SLOT, Journal
from ordercast.core import Env

_HEAD = Struct("<Q")
_FAST = 1 << 63
"""Marks a fast vote in the saved ballot."""


def digest_of(value: bytes) -> bytes:
    """What stands for a value in votes."""
    return blake2b(value, digest_size=16).digest()


class FastJournal(Journal):
    """The records of a replica, some of which are fast votes."""

    __slots__ = ("fast",)

    def __init__(self, env: Env, peers: int, *, durable: bool, keeps_state: bool) -> None:
        super().__init__(env, peers, durable=durable, keeps_state=keeps_state)
        self.fast: set[int] = set()
        """Slots whose records are fast votes."""

    def restore(self, saved: Mapping[str, bytes]) -> tuple[bool, bytes | None]:
        """Read an earlier life."""
        found = super().restore(saved)
        for slot, (ballot, value) in self.entries.items():
            if ballot & _FAST:
                self.entries[slot] = (ballot ^ _FAST, value)
                self.fast.add(slot)
        return found

    def vote(self, slot: int, ballot: int, value: bytes) -> None:
        """Remember a fast vote; the caller has checked that there is no vote in this ballot."""
        self.entries[slot] = (ballot, value)
        self.fast.add(slot)
        self._save(f"{SLOT}{slot}", _HEAD.pack(ballot | _FAST) + value)

    def accept(self, slot: int, ballot: int, value: bytes) -> None:
        """Remember a classic vote, in place of a fast one if there is one."""
        if slot in self.fast:
            self.fast.discard(slot)
            del self.entries[slot]
        super().accept(slot, ballot, value)

    def confirm(self, slot: int, ballot: int, digest: bytes) -> None:
        """The leader of a ballot says what was chosen: a fast vote for it is as good as a classic one."""
        if slot in self.fast:
            voted, value = self.entries[slot]
            if voted == ballot and digest_of(value) == digest:
                self.fast.discard(slot)

    def is_certain(self, slot: int, ballot: int) -> bool:
        """Whether the record of a slot is what the leader of a ballot proposed in it."""
        return slot not in self.fast and super().is_certain(slot, ballot)

    def _forget(self, slot: int) -> None:
        self.fast.discard(slot)
        super()._forget(slot)

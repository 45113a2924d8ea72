"""Which storage a host has, and whether the others know it by that storage.

The storage of a host has a random name, made at its first start (`StorageClaim`). Hosts tell it to each other
when they prove that they are alive (`session.py`), and remember it. A host that comes with another storage
under its old name has lost what it saved: it does not know what it delivered, promised or sent. The others do
not let it in, and it stops. A host may say that it comes back as a new member; then the others forget its
earlier storage for good. The storage also counts the lives of its host, so an old copy of it is recognised.

A host takes nothing from a peer before the peer has said how it knows the host (`Verdict`). So a receiver
without its memory cannot deliver anything from a peer that has met it before.
"""

from enum import IntEnum
from typing import NamedTuple, Protocol

from ordercast.core import HostId

STORAGE_BYTES = 16


class StorageClaim(NamedTuple):
    """What a host says about its storage."""

    storage: bytes
    """Its random name."""
    life: int
    """How many lives of the host have begun with it."""
    as_new: bool
    """Whether the host was told to come back as a new member with it."""


class Verdict(IntEnum):
    """How a host knows the storage of another."""

    UNKNOWN = 0
    """It has never met the host."""
    KNOWN = 1
    OTHER = 2
    """It knows the host by another storage."""
    REPLACED = 3
    """It knows that the host came back as new after it had this storage."""
    OLDER = 4
    """It knows a later life of the same storage: this one is a copy."""

    def refuses(self, claim: StorageClaim) -> bool:
        """Whether a host with this claim must not go on."""
        return self in (Verdict.REPLACED, Verdict.OLDER) or (self is Verdict.OTHER and not claim.as_new)


class Acquaintance(Protocol):
    """What a host says about its own storage, and what it knows about those of others."""

    @property
    def claim(self) -> StorageClaim:
        """The storage of this host."""

    def judge(self, host: HostId, claim: StorageClaim) -> Verdict:
        """How the storage of another host is known here."""

    def meet(self, host: HostId, claim: StorageClaim) -> bool:
        """Let another host in and remember its storage, or refuse it."""

    def refused(self, host: HostId, verdict: Verdict) -> None:
        """Another host does not let this one in."""


def admit(own: Acquaintance, host: HostId, claim: StorageClaim, verdict: Verdict) -> bool:
    """Whether a peer with this claim, which knows this host like this, may be listened to now.

    A peer that knows this host by an earlier storage learns of the new one by this host's own proof. It is
    asked again, and says something else then.
    """
    if verdict.refuses(own.claim):
        own.refused(host, verdict)
        return False
    return verdict is not Verdict.OTHER and own.meet(host, claim)


class Strangers:
    """Hosts without a memory: everybody is let in, and each life is a new one."""

    def __init__(self, storage: bytes) -> None:
        self.claim = StorageClaim(storage, 1, as_new=True)

    def judge(self, host: HostId, claim: StorageClaim) -> Verdict:
        """Nobody is known."""
        return Verdict.UNKNOWN

    def meet(self, host: HostId, claim: StorageClaim) -> bool:
        """Everybody may come in."""
        return True

    def refused(self, host: HostId, verdict: Verdict) -> None:
        """Go on: there is nothing that this host could have lost."""

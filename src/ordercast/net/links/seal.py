"""Seals: every datagram is encrypted and authenticated with the key of the cluster, or carries a checksum.

Each life of a host is a *session* with a random number and its own keys, which HKDF derives from the
cluster's key. The counter of a datagram is its nonce, so no nonce is ever used twice with a key; the header
is authenticated too. A fork of the process would use the same nonces again, so the child of a fork cannot
seal any more. A host that knows the cluster's key can speak for every other host: whoever has the key belongs
to the cluster.
"""

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from weakref import WeakSet
from zlib import crc32

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ordercast.core import HostId, LocalError
from ordercast.net.links.datagram import HEADER_BYTES, DatagramHeader, Rejected, write_header
from ordercast.net.links.keyring import Keyring
from ordercast.net.transports.transport import Datagram

_PURPOSE = b"ordercast session 1"
OPENERS_MAX = 1024
"""How many session keys are remembered, of sessions that sent something authentic."""


class Seal(ABC):
    """Closes datagrams of a host's own session, and opens those of others."""

    overhead: int
    """Bytes that it adds to the frames and the header of a datagram."""
    session: int
    """The number of this host's own life."""

    @abstractmethod
    def close(self, flags: int, counter: int, plain: bytes) -> bytes:
        """The datagram with these frames."""

    @abstractmethod
    def open(self, header: DatagramHeader, datagram: Datagram) -> bytes:
        """The frames of a datagram, or `Rejected`."""

    def renew(self, keys: Keyring) -> None:  # noqa: B027  (optional hook)
        """Use changed keys."""

    def key_ids(self) -> tuple[int, ...]:
        """The keys that are accepted; the first is the one that this host seals with."""
        return ()


class Sealed(Seal):
    """AES-256-GCM: a datagram is whole, from a holder of the key, and nobody else can read it."""

    overhead = 16

    def __init__(self, host: HostId, session: int, keys: Keyring) -> None:
        self._host = host
        self.session = session
        self._openers: OrderedDict[tuple[int, HostId, int], AESGCM] = OrderedDict()
        self._forked = False
        self.renew(keys)
        _in_use.add(self)

    def renew(self, keys: Keyring) -> None:
        """Seal with the active key from now on, and open with those that are accepted."""
        self._keys = keys
        self._key = keys.active.id
        self._closer = self._derive(keys.active.secret, self._host, self.session)
        for name in [name for name in self._openers if name[0] not in keys.accepted]:
            del self._openers[name]

    def key_ids(self) -> tuple[int, ...]:
        """The active one first."""
        return (self._key, *sorted(key for key in self._keys.accepted if key != self._key))

    def close(self, flags: int, counter: int, plain: bytes) -> bytes:
        """The datagram with these frames, which can be opened with the cluster's key only."""
        header = write_header(flags, self._key, self._host, self.session, counter)
        if self._forked:
            raise LocalError(
                "this process was forked after its parent joined a cluster: join again in this process"
            )
        return header + self._closer.encrypt(counter.to_bytes(12, "little"), plain, header)

    def open(self, header: DatagramHeader, datagram: Datagram) -> bytes:
        """The frames of a datagram, if it is authentic."""
        name = (header.key, header.host, header.session)
        opener = self._openers.get(name)
        known = opener is not None
        if opener is None:
            key = self._keys.accepted.get(header.key)
            if key is None:
                raise Rejected(
                    "key", f"datagram is sealed with key {header.key:08x}, which this host does not have"
                )
            opener = self._derive(key.secret, header.host, header.session)
        nonce, view = header.counter.to_bytes(12, "little"), memoryview(datagram)
        try:
            plain = opener.decrypt(nonce, view[HEADER_BYTES:], view[:HEADER_BYTES])
        except InvalidTag as error:
            raise Rejected("seal", "the seal of the datagram does not match its content") from error
        if not known:  # only now: bytes of a stranger may not fill the memory
            self._openers[name] = opener
            if len(self._openers) > OPENERS_MAX:
                self._openers.popitem(last=False)
        return plain

    def forked(self) -> None:
        """Seal nothing any more, because another process goes on with the same counters."""
        self._forked = True

    @staticmethod
    def _derive(secret: bytes, host: HostId, session: int) -> AESGCM:
        salt = host.to_bytes(4, "little") + session.to_bytes(8, "little")
        return AESGCM(HKDF(SHA256(), 32, salt, _PURPOSE).derive(secret))


_in_use: WeakSet[Sealed] = WeakSet()


def _after_fork() -> None:
    """In the child: the parent goes on counting, and no two datagrams may have the same counter."""
    for seal in _in_use:
        seal.forked()


os.register_at_fork(after_in_child=_after_fork)


class Unsealed(Seal):
    """A checksum against accidents, but no protection against attackers: only for trusted networks."""

    overhead = 4

    def __init__(self, host: HostId, session: int) -> None:
        self._host = host
        self.session = session

    def close(self, flags: int, counter: int, plain: bytes) -> bytes:
        """The datagram with these frames, in plaintext."""
        open_bytes = write_header(flags, 0, self._host, self.session, counter) + plain
        return open_bytes + crc32(open_bytes).to_bytes(4, "little")

    def open(self, header: DatagramHeader, datagram: Datagram) -> bytes:
        """The frames of a datagram, if it is whole."""
        if header.key:
            raise Rejected("key", "the datagram is sealed, but this cluster has no key")
        view = memoryview(datagram)
        if len(view) < HEADER_BYTES + self.overhead or crc32(view[:-4]) != int.from_bytes(
            view[-4:], "little"
        ):
            raise Rejected("seal", "the checksum of the datagram is wrong")
        return bytes(view[HEADER_BYTES:-4])

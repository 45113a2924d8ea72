"""The secret keys of a cluster: one key seals datagrams, all keys can open them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from ordercast.core import LocalError

KEYS_MAX = 16
"""A rotation needs two."""


@dataclass(frozen=True, slots=True)
class Key:
    """One secret, which its text form never shows."""

    id: int
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> "Key":
        """The key of a secret; its identity says nothing about it."""
        digest = hashlib.sha256(b"ordercast key id\0" + secret).digest()
        return cls(int.from_bytes(digest[:4], "little"), secret)


@dataclass(frozen=True, slots=True)
class Keyring:
    """The key to seal with, and all that are accepted, by identity."""

    active: Key
    accepted: dict[int, Key]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> "Keyring":
        """A ring of these keys; the first seals."""
        listed = list(keys)
        if not listed:
            raise LocalError("a keyring needs at least one key")
        if len({key.id for key in listed}) != len(listed):
            raise LocalError("a key is listed twice")
        if len(listed) > KEYS_MAX:
            raise LocalError(f"a keyring holds at most {KEYS_MAX} keys, not {len(listed)}")
        return cls(listed[0], {key.id: key for key in listed})

"""A check sum over all that a store holds, kept up to date with every change.

Each row has a digest, and the check sum has the sum of them all. So the order of the rows does not matter,
and a change costs the digests of the rows that it touches, however many others there are.
"""

from collections.abc import Mapping
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple, TypeAlias

from ordercast.core import Nanos, NodeId
from ordercast.net.links.acquaintance import STORAGE_BYTES

Key: TypeAlias = tuple[NodeId, str]

DIGEST_BYTES = 16

_ROW = Struct("<qI")
_HEAD = Struct(f"<qq{STORAGE_BYTES}s?q")
_LIMIT = 1 << (8 * DIGEST_BYTES)


class StoreHead(NamedTuple):
    """What a store knows about itself."""

    lives: int
    """How many lives have begun with it."""
    clock_ns: Nanos
    """A recent reading of the host's clock."""
    storage: bytes
    """A random name, made with the file: no two disks have the same."""
    as_new: bool
    """Whether the host was told to come back as a new member with this file."""
    commits: int
    """How often something was committed."""

    def encode(self, rows: int) -> bytes:
        """This head as bytes, with the check sum over it and over rows with this sum."""
        content = _HEAD.pack(*self)
        return content + _check_sum(content, rows)


def decode_head(written: bytes, rows: int) -> StoreHead | None:
    """The head in these bytes; None if its check sum, over rows with this sum too, is wrong."""
    content, digest = written[: _HEAD.size], written[_HEAD.size :]
    if len(content) != _HEAD.size or digest != _check_sum(content, rows):
        return None
    return StoreHead._make(_HEAD.unpack(content))


def _check_sum(content: bytes, rows: int) -> bytes:
    return blake2b(content + rows.to_bytes(DIGEST_BYTES, "little"), digest_size=DIGEST_BYTES).digest()


class RowSums:
    """The digests of all rows, and their sum."""

    def __init__(self) -> None:
        self._digests: dict[Key, int] = {}
        self.total = 0

    def add(self, key: Key, value: bytes) -> None:
        """Add a row that the store holds. A row that is there twice counts twice, which nobody saved."""
        digest = self._digests[key] = row_digest(key, value)
        self.total = (self.total + digest) % _LIMIT

    def total_after(self, changes: Mapping[Key, int | None]) -> int:
        """The sum after changes that `digests_of` made."""
        total, known = self.total, self._digests
        for key, digest in changes.items():
            total += (digest or 0) - known.get(key, 0)
        return total % _LIMIT

    def change(self, changes: Mapping[Key, int | None], total: int) -> None:
        """Note changes that are durable now, and the sum after them."""
        for key, digest in changes.items():
            if digest is None:
                self._digests.pop(key, None)
            else:
                self._digests[key] = digest
        self.total = total


def digests_of(saves: Mapping[Key, bytes | None]) -> dict[Key, int | None]:
    """The digest of each row that is saved, and None for each that is removed."""
    return {key: None if value is None else row_digest(key, value) for key, value in saves.items()}


def row_digest(key: Key, value: bytes) -> int:
    """The digest of a row."""
    node, name = key
    text = name.encode()
    content = b"".join((_ROW.pack(node, len(text)), text, value))
    return int.from_bytes(blake2b(content, digest_size=DIGEST_BYTES).digest(), "little")

"""The snapshot of a replica as bytes."""

from typing import TypeAlias, TypeVar

import msgspec

from ordercast.components.execution.asks import Packed as PackedAsks
from ordercast.components.execution.blocked import Packed as PackedBlocked
from ordercast.components.execution.client_table import PackedShared, PackedTable
from ordercast.core import MALFORMED, LocalError, Nanos

Place: TypeAlias = tuple[int, int, tuple[int, ...]]


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """Everything that a replica needs to go on."""

    fingerprint: str
    service: bytes
    table: PackedTable
    place: Place | None
    executed: int
    now_ns: Nanos
    shared: PackedShared = ()
    """Written only if there were calls to several groups."""


pack = msgspec.msgpack.Encoder().encode
_snapshot = msgspec.msgpack.Decoder(Snapshot)
_asking = msgspec.msgpack.Decoder(tuple[bytes, PackedAsks])
_shard = msgspec.msgpack.Decoder(tuple[bytes, PackedBlocked])
T = TypeVar("T")


def read_state(decoder: msgspec.msgpack.Decoder[T], packed: bytes) -> T:
    """A state, or a part of one, from its bytes; `LocalError` if it is none."""
    try:
        return decoder.decode(packed)
    except MALFORMED as error:
        raise LocalError(f"the state of a replica cannot be read: {error}") from error


def unpack_snapshot(packed: bytes) -> Snapshot:
    """All of it."""
    return read_state(_snapshot, packed)


def unpack_asking(packed: bytes) -> tuple[bytes, PackedAsks]:
    """The state of a service, and what it has asked of others."""
    return read_state(_asking, packed)


def unpack_shard(packed: bytes) -> tuple[bytes, PackedBlocked]:
    """The state of a shard, and the calls that wait for locks."""
    return read_state(_shard, packed)

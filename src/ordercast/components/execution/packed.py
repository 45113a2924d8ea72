"""The snapshot of a replica as bytes."""

from typing import TypeAlias

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
unpack_asking = msgspec.msgpack.Decoder(tuple[bytes, PackedAsks]).decode
unpack_shard = msgspec.msgpack.Decoder(tuple[bytes, PackedBlocked]).decode
_decoder = msgspec.msgpack.Decoder(Snapshot)


def unpack_snapshot(snapshot: bytes) -> Snapshot:
    """A snapshot from its bytes; `LocalError` if it is none."""
    try:
        return _decoder.decode(snapshot)
    except MALFORMED as error:
        raise LocalError(f"the snapshot of a replica cannot be read: {error}") from error

"""The state of a receiver at a slot of its group's log, as bytes."""

import msgspec

from ordercast.protocols.atomic_multicast.ledger import Ledger
from ordercast.protocols.atomic_multicast.queue import Entry


class Snapshot(msgspec.Struct):
    """All that the log led to, without what is delivered and settled.

    The place of the last delivery is not in it: that is saved at each delivery.
    """

    ledger: Ledger
    entries: list[Entry]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Snapshot)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """A snapshot to keep."""
    return _encoder.encode(snapshot)


def decode_snapshot(state: bytes) -> Snapshot:
    """A snapshot that was kept."""
    return _decoder.decode(state)

"""A call: what a client sends to the replicas of a service, as bytes.

A call is a bundle of operations, and is named by the identity of the first one. A client that gets no answer
sends the same bundle again. So replicas know a call by its client and its name, and run it once.

Layout, little-endian: flags (1 byte; 1: reads), the client's floor (8), and the bundle.
"""

from struct import Struct, error
from typing import NamedTuple

from ordercast.core import MessageId, NodeId, RemoteError, message_sender
from ordercast.core.bundle import MESSAGE_BYTES_MAX, bundle_span

_HEAD = Struct("<BQ")
HEAD_BYTES = _HEAD.size
_READ = 1
OPERATION_BYTES_MAX = MESSAGE_BYTES_MAX - HEAD_BYTES
"""The size of the largest operation, which fills a call alone."""


class Call(NamedTuple):
    """A bundle of operations of one client."""

    first: MessageId
    """The identity of its first operation, and its name."""
    floor: MessageId
    """The client waits for no answer to calls with a lower name."""
    read: bool
    """Whether its operations change nothing."""
    bundle: bytes

    @property
    def client(self) -> NodeId:
        """Who calls."""
        return message_sender(self.first)


def pack_call(floor: MessageId, bundle: bytes, *, read: bool = False) -> bytes:
    """The bytes of a call."""
    return _HEAD.pack(_READ if read else 0, floor) + bundle


def unpack_call(packed: bytes, client: NodeId | None = None) -> Call:
    """The call in some bytes of a client, or `RemoteError`. `client` is who sent them, if that is known."""
    try:
        flags, floor = _HEAD.unpack_from(packed)
    except error as short:
        raise RemoteError(f"call of {len(packed)} bytes is shorter than its head") from short
    bundle = packed[HEAD_BYTES:]
    first, count = bundle_span(bundle)
    sender = message_sender(first)
    if flags & ~_READ or not count or sender != message_sender(first + count - 1):
        raise RemoteError(f"call has an invalid head: flags {flags}, {count} operations from {first}")
    if floor > first or (floor and message_sender(floor) != sender):
        raise RemoteError(f"call {first} has a floor that is not its client's: {floor}")
    if client is not None and sender != client:
        raise RemoteError(f"node {client} sent a call in the name of node {sender}")
    return Call(first, floor, bool(flags & _READ), bundle)

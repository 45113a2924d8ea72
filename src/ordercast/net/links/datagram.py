"""The layout of datagrams, and of the frames in them.

A datagram is a header, frames, and a seal over both (`seal.py`). Header, little-endian, 28 bytes: magic (2),
version (1), flags (1), key (4), host of the sender (4), its session (8), counter (8). The counter grows with
each datagram of a session, for all receiving hosts together: a multicast sends the same sealed bytes to all.

A frame is its kind (1), the number of its destinations (1), a source (4), the length of its body (4), the
destinations (4 each) and the body. Frames with a protocol message name nodes. Frames by which hosts keep
their links (`ACK`, `CHALLENGE`, `PROOF`, `MISSING`) name no node and are for every host that reads them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from ordercast.core import HostId, NodeId, RemoteError
from ordercast.net.links.acquaintance import STORAGE_BYTES, StorageClaim, Verdict
from ordercast.net.transports.transport import Datagram

MAGIC = 0x6F63
VERSION = 2
DATAGRAM_BYTES_MAX = 65_000
"""The largest datagram that any transport takes."""

ACK_PLEASE = 1
"""Flag: the sender asks for an acknowledgement."""

DATA, FRAGMENT, ACK, CHALLENGE, PROOF, MISSING = 1, 2, 3, 4, 5, 6

HEADER = Struct("<HBBIIQQ")
HEADER_BYTES = HEADER.size
_FRAME = Struct("<BBII")
FRAME_BYTES = _FRAME.size
DESTINATION_BYTES = 4
DESTINATIONS_MAX = 255

_ACK = Struct("<IQQB")
_FRAGMENT_HEAD = Struct("<IHH")
FRAGMENT_HEAD_BYTES = _FRAGMENT_HEAD.size
FRAGMENTS_MAX = 0xFFFF
PLACES_MAX = 256
"""The largest number of fragments that one frame asks for."""
NONCE_BYTES = 16
_CHALLENGE = Struct(f"<{NONCE_BYTES}s{STORAGE_BYTES}sQB")
_PROOF = Struct(f"<{NONCE_BYTES}sQ{STORAGE_BYTES}sQBB")
_MESSAGE = Struct("<I")
_PLACE_BYTES = 2

_new = tuple.__new__  # half the cost of the named tuple's own constructor


class DatagramHeader(NamedTuple):
    """The header of a datagram: readable by everybody, but protected by the seal."""

    flags: int
    key: int
    host: HostId
    session: int
    counter: int


class Frame(NamedTuple):
    """One frame; `body` is part of the datagram that it came in."""

    kind: int
    source: NodeId
    destinations: tuple[NodeId, ...]
    body: memoryview


class Rejected(RemoteError):
    """A datagram is not for this host, not whole, or of another version; `reason` names the counter."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def read_header(datagram: Datagram) -> DatagramHeader:
    """The header of a datagram, or `Rejected`."""
    if len(datagram) < HEADER_BYTES:
        raise Rejected(
            "truncated", f"datagram has {len(datagram)} bytes; its header alone needs {HEADER_BYTES}"
        )
    if len(datagram) > DATAGRAM_BYTES_MAX:
        raise Rejected("oversized", f"datagram has {len(datagram)} bytes; the limit is {DATAGRAM_BYTES_MAX}")
    magic, version, flags, key, host, session, counter = HEADER.unpack_from(datagram)
    if magic != MAGIC or version != VERSION or flags & ~ACK_PLEASE:
        raise Rejected(
            "version", f"datagram has version {version} and flags {flags}; this host uses version {VERSION}"
        )
    return _new(DatagramHeader, (flags, key, host, session, counter))


def write_header(flags: int, key: int, host: HostId, session: int, counter: int) -> bytes:
    """The header of a datagram."""
    return HEADER.pack(MAGIC, VERSION, flags, key, host, session, counter)


def write_frame(kind: int, source: NodeId, destinations: bytes, count: int, body: bytes) -> bytes:
    """A frame to destinations that `write_destinations` wrote."""
    return b"".join((_FRAME.pack(kind, count, source, len(body)), destinations, body))


def write_destinations(nodes: Sequence[NodeId]) -> bytes:
    """Nodes as bytes, for `write_frame`."""
    return Struct(f"<{len(nodes)}I").pack(*nodes)


def read_frames(plain: bytes) -> Iterator[Frame]:
    """The frames of an opened datagram, or `RemoteError`; frames before a bad one count."""
    view, at, end = memoryview(plain), 0, len(plain)
    while at < end:
        if end - at < FRAME_BYTES:
            raise RemoteError(f"frame has {end - at} bytes; its head alone has {FRAME_BYTES}")
        kind, count, source, length = _FRAME.unpack_from(plain, at)
        start = at + FRAME_BYTES + DESTINATION_BYTES * count
        at = start + length
        if at > end:
            raise RemoteError(f"frame of kind {kind} is cut off; {at - end} bytes are missing")
        if count == 1:
            destinations: tuple[NodeId, ...] = _ONE.unpack_from(plain, start - DESTINATION_BYTES)
        else:
            destinations = Struct(f"<{count}I").unpack_from(plain, start - DESTINATION_BYTES * count)
        yield _new(Frame, (kind, source, destinations, view[start:at]))


_ONE = Struct("<I")


class Ack(NamedTuple):
    """A host received this datagram of a peer's session; `pressure` asks the peer to slow down."""

    host: HostId
    session: int
    counter: int
    pressure: int


def write_ack(ack: Ack) -> bytes:
    """An acknowledgement as a frame."""
    return write_frame(ACK, 0, b"", 0, _ACK.pack(*ack))


def read_ack(body: memoryview) -> Ack:
    """The acknowledgement in a frame, or `RemoteError`."""
    if len(body) != _ACK.size:
        raise RemoteError(f"acknowledgement has {len(body)} bytes instead of {_ACK.size}")
    return Ack(*_ACK.unpack(body))


class Challenge(NamedTuple):
    """A number that a host is to seal, and the storage of the host that asks for it."""

    nonce: bytes
    claim: StorageClaim


def write_challenge(host: HostId, challenge: Challenge) -> bytes:
    """A challenge to a host."""
    return write_frame(CHALLENGE, host, b"", 0, _CHALLENGE.pack(challenge.nonce, *challenge.claim))


def read_challenge(body: memoryview) -> Challenge:
    """The challenge in a frame, or `RemoteError`."""
    if len(body) != _CHALLENGE.size:
        raise RemoteError(f"challenge has {len(body)} bytes instead of {_CHALLENGE.size}")
    nonce, storage, life, as_new = _CHALLENGE.unpack(body)
    return Challenge(nonce, StorageClaim(storage, life, bool(as_new)))


class Proof(NamedTuple):
    """The answer to a challenge; datagrams up to the floor were for an earlier life of the challenger."""

    nonce: bytes
    floor: int
    claim: StorageClaim
    """The storage of the host that answers."""
    verdict: Verdict
    """How it knows the storage of the challenger."""


def write_proof(host: HostId, proof: Proof) -> bytes:
    """A proof to a host."""
    body = _PROOF.pack(proof.nonce, proof.floor, *proof.claim, proof.verdict)
    return write_frame(PROOF, host, b"", 0, body)


def read_proof(body: memoryview) -> Proof:
    """The proof in a frame, or `RemoteError`."""
    if len(body) != _PROOF.size:
        raise RemoteError(f"proof has {len(body)} bytes instead of {_PROOF.size}")
    nonce, floor, storage, life, as_new, verdict = _PROOF.unpack(body)
    if verdict > max(Verdict):
        raise RemoteError(f"proof has the unknown verdict {verdict}")
    return Proof(nonce, floor, StorageClaim(storage, life, bool(as_new)), Verdict(verdict))


class Fragment(NamedTuple):
    """A part of a protocol message that is larger than a datagram."""

    message: int
    place: int
    parts: int
    """The number of fragments of the message."""
    part: memoryview


def write_fragments(message: int, body: bytes, room: int) -> list[bytes]:
    """The bodies of the fragments of a message, none larger than `room`."""
    size = room - FRAGMENT_HEAD_BYTES
    parts = range(0, len(body), size)
    if len(parts) > FRAGMENTS_MAX:
        raise RemoteError(
            f"message of {len(body)} bytes in {len(parts)} fragments, the limit is {FRAGMENTS_MAX}"
        )
    return [
        _FRAGMENT_HEAD.pack(message, index, len(parts)) + body[start : start + size]
        for index, start in enumerate(parts)
    ]


def read_fragment(body: memoryview) -> Fragment:
    """The fragment in the body of a frame, or `RemoteError`."""
    if len(body) <= FRAGMENT_HEAD_BYTES:
        raise RemoteError(f"fragment has {len(body)} bytes; its head alone has {FRAGMENT_HEAD_BYTES}")
    message, index, count = _FRAGMENT_HEAD.unpack_from(body)
    if index >= count:
        raise RemoteError(f"fragment has place {index}, but its message has {count} fragments")
    return Fragment(message, index, count, body[FRAGMENT_HEAD_BYTES:])


class Missing(NamedTuple):
    """The fragments of a message that a host asks for again, by their places."""

    message: int
    places: tuple[int, ...]
    """In ascending order, each once."""


def write_missing(missing: Missing) -> bytes:
    """A request for fragments as a frame."""
    places = Struct(f"<{len(missing.places)}H").pack(*missing.places)
    return write_frame(MISSING, 0, b"", 0, _MESSAGE.pack(missing.message) + places)


def read_missing(body: memoryview) -> Missing:
    """The request in a frame, or `RemoteError`."""
    count, rest = divmod(len(body) - _MESSAGE.size, _PLACE_BYTES)
    if rest or not 0 < count <= PLACES_MAX:
        raise RemoteError(f"request of {len(body)} bytes for fragments must name 1 to {PLACES_MAX} places")
    places = Struct(f"<{count}H").unpack_from(body, _MESSAGE.size)
    if any(later <= earlier for earlier, later in pairwise(places)):
        raise RemoteError("request for fragments names a place twice, or not in ascending order")
    (message,) = _MESSAGE.unpack_from(body)
    return Missing(message, places)

"""Frames on their way out, packed into datagrams.

Frames to the same hosts share a datagram until it is full, the hosts change, or all datagrams are taken. A
message that is larger than a datagram goes in fragments, which are kept for a while in case some are lost.
"""

from collections.abc import Callable
from typing import TypeAlias

from ordercast.core import HostId, LocalError, Nanos, NodeId
from ordercast.net.links.datagram import (
    DATA,
    DESTINATION_BYTES,
    DESTINATIONS_MAX,
    FRAGMENT,
    FRAME_BYTES,
    Missing,
    write_fragments,
    write_frame,
)
from ordercast.net.links.repair import Fragmented

MESSAGES_MAX = 1 << 32

Outgoing: TypeAlias = tuple[tuple[HostId, ...], bytes]
"""Hosts, and the frames of a datagram to them, not sealed yet."""


class Outbox:
    """The datagrams of one host that have not left yet; the last one is open."""

    __slots__ = ("_clock", "_fragmented", "_frames", "_hosts", "_message", "_room", "_size", "closed")

    def __init__(self, room: int, clock: Callable[[], Nanos]) -> None:
        """`room` is the number of bytes that a datagram has for frames."""
        if room < 2 * FRAME_BYTES + DESTINATIONS_MAX * DESTINATION_BYTES:
            raise LocalError(f"datagrams are too small: only {room} bytes are left for messages")
        self.closed: list[Outgoing] = []
        """Datagrams that get no more frames."""
        self._room = room
        self._clock = clock
        self._message = 0
        self._fragmented = Fragmented()
        self._frames: list[bytes] = []
        self._size = 0
        self._hosts: tuple[HostId, ...] = ()

    @property
    def room(self) -> int:
        """The largest message to one destination that needs no fragments."""
        return self._room - FRAME_BYTES - DESTINATION_BYTES

    @property
    def is_open(self) -> bool:
        """Whether there are frames in the open datagram."""
        return bool(self._frames)

    def send(
        self, hosts: tuple[HostId, ...], source: NodeId, destinations: bytes, count: int, body: bytes
    ) -> None:
        """Put a message of a node to nodes of other hosts into datagrams."""
        if FRAME_BYTES + DESTINATION_BYTES * count + len(body) <= self._room:
            self.add(hosts, write_frame(DATA, source, destinations, count, body))
            return
        self._message = (self._message + 1) % MESSAGES_MAX
        room = self._room - FRAME_BYTES - DESTINATION_BYTES * count
        fragments = write_fragments(self._message, body, room)
        frames = [write_frame(FRAGMENT, source, destinations, count, fragment) for fragment in fragments]
        self._fragmented.keep(self._message, hosts, frames, self._clock())
        for frame in frames:
            self.add(hosts, frame)

    def add(self, hosts: tuple[HostId, ...], frame: bytes) -> None:
        """Put a frame into the open datagram, or into the next if it does not fit."""
        size = self._size + len(frame)
        if hosts != self._hosts or size > self._room:
            if self._frames:
                self._close()
            self._hosts = hosts
            size = len(frame)
        self._frames.append(frame)
        self._size = size

    def _close(self) -> None:
        frames = self._frames
        self.closed.append((self._hosts, frames[0] if len(frames) == 1 else b"".join(frames)))
        self._frames, self._size = [], 0

    def take_closed(self) -> list[Outgoing]:
        """The datagrams that get no more frames; the open one stays."""
        taken, self.closed = self.closed, []
        return taken

    def take(self) -> list[Outgoing]:
        """All datagrams."""
        if self._frames:
            self._close()
        taken, self.closed = self.closed, []
        return taken

    def asked(self, host: HostId, missing: Missing) -> list[bytes]:
        """The fragments that a host asks for again, as far as they are kept."""
        return self._fragmented.asked(host, missing, self._clock())

    def forget_old(self, now: Nanos) -> None:
        """Forget fragments that nobody has asked for in time."""
        self._fragmented.forget_old(now)

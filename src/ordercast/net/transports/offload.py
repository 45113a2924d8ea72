"""Many datagrams in one system call, if the kernel supports it: Linux's offload of UDP.

Segmentation: datagrams of one size to one address go to the kernel as one buffer, and the kernel or the
network card cuts it; the last datagram may be shorter. Coalescing: datagrams of one size from one address
come from the kernel as one buffer, with their size beside it. With small datagrams, system calls are the
largest cost.
"""

import socket
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, TypeAlias

SocketAddress: TypeAlias = tuple[Any, ...]
"""As the socket takes it: two parts for IPv4, four for IPv6."""

SEGMENTS_MAX = 64
SEGMENTED_BYTES_MAX = 65_000

_UDP = socket.IPPROTO_UDP
_UDP_SEGMENT = 103  # the names are not in the socket module
_UDP_GRO = 104
_SEGMENT_SIZE = Struct("=H")
_GRO_SIZE = Struct("=i")
ANCILLARY_BYTES = socket.CMSG_SPACE(_GRO_SIZE.size) if hasattr(socket, "CMSG_SPACE") else 0


def can_segment(udp: socket.socket) -> bool:
    """Whether the kernel supports segmentation on this socket."""
    try:
        udp.setsockopt(_UDP, _UDP_SEGMENT, 0)
    except OSError:
        return False
    return True


def enable_coalescing(udp: socket.socket) -> bool:
    """Turn coalescing on for this socket; False if the kernel does not support it."""
    try:
        udp.setsockopt(_UDP, _UDP_GRO, 1)
    except OSError:
        return False
    return True


def part_bytes(ancillary: Sequence[tuple[int, int, bytes]], length: int) -> int:
    """The size of the datagrams in a buffer of this length, from the data beside it."""
    for level, kind, data in ancillary:
        if level == _UDP and kind == _UDP_GRO and len(data) >= _GRO_SIZE.size:
            return int(_GRO_SIZE.unpack_from(data)[0]) or length
    return length


def runs(datagrams: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Split a sequence for the kernel: equal sizes, the last not larger, within the limits."""
    start = 0
    while start < len(datagrams):
        size = len(datagrams[start])
        room = max(1, min(SEGMENTS_MAX, SEGMENTED_BYTES_MAX // size)) if size else 1
        end = start + 1
        while end < len(datagrams) and end - start < room and len(datagrams[end]) == size:
            end += 1
        # A shorter one ends the run; an empty datagram would vanish in it.
        if end < len(datagrams) and end - start < room and 0 < len(datagrams[end]) < size:
            end += 1
        yield datagrams[start:end]
        start = end


class Segmenter:
    """Gathers datagrams by address, and sends those to one address with few calls."""

    def __init__(self, udp: socket.socket) -> None:
        self.losses = 0
        """Datagrams that the kernel did not take."""
        self.fallbacks = 0
        """Addresses for which segmentation failed (a smaller path, or a card without checksums)."""
        self._udp = udp
        self._waiting: dict[SocketAddress, list[bytes]] = {}
        self._plain: set[SocketAddress] = set()

    def add(self, address: SocketAddress, datagram: bytes) -> None:
        """Keep a datagram for the next flush; a full buffer is sent at once."""
        waiting = self._waiting.get(address)
        if waiting is None:
            self._waiting[address] = [datagram]
            return
        waiting.append(datagram)
        if len(waiting) >= SEGMENTS_MAX:
            del self._waiting[address]
            self._send(address, waiting)

    def flush(self) -> None:
        """Send all that waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for address, datagrams in waiting.items():
                self._send(address, datagrams)

    def _send(self, address: SocketAddress, datagrams: Sequence[bytes]) -> None:
        if len(datagrams) == 1 or address in self._plain:
            self._send_each(address, datagrams)
            return
        for run in runs(datagrams):
            if len(run) == 1 or address in self._plain:
                self._send_each(address, run)
            else:
                self._send_run(address, run)

    def _send_run(self, address: SocketAddress, run: Sequence[bytes]) -> None:
        size = [(_UDP, _UDP_SEGMENT, _SEGMENT_SIZE.pack(len(run[0])))]
        try:
            self._udp.sendmsg(run, size, 0, address)
        except BlockingIOError:
            self.losses += len(run)
        except OSError:
            # Cut by the kernel they do not pass; one by one they may, in fragments of IP or on another path.
            self.fallbacks += 1
            self._plain.add(address)
            self._send_each(address, run)

    def _send_each(self, address: SocketAddress, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            try:
                self._udp.sendto(datagram, address)
            except OSError:
                self.losses += 1

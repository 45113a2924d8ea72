"""UDP, one datagram to each host: the transport that works everywhere."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

from ordercast.core import HostId, LocalError
from ordercast.net.address import Address
from ordercast.net.transport import Receive, Transport

BURST = 32
"""Datagrams that are read before anything else has its turn."""
READ_BYTES = 1 << 16


def udp_socket(address: Address, buffer_bytes: int) -> socket.socket:
    """A bound socket that does not block, with buffers as large as the system allows."""
    try:
        family, kind, protocol, _, name = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise LocalError(f"no such address as {address.host}: {error.strerror or error}") from error
    sock.setblocking(False)
    for option, force in (("SO_RCVBUF", 33), ("SO_SNDBUF", 32)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, buffer_bytes)  # beyond the system's limit, for root
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, option), buffer_bytes)
    try:
        sock.bind(name)
    except OSError as error:
        sock.close()
        raise LocalError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from error
    return sock


class UdpTransport(Transport):
    """Sends each datagram by itself."""

    def __init__(
        self,
        host: HostId,
        addresses: Mapping[HostId, Address],
        datagram_max: int,
        buffer_bytes: int,
        busy_poll: bool = False,
    ) -> None:
        self.datagram_max = datagram_max
        self._address = addresses[host]
        self._buffer_bytes = buffer_bytes
        self._busy_poll = busy_poll
        self._targets: dict[HostId, Any] = {}
        self._addresses = addresses
        self._socket: socket.socket | None = None
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Bind the socket, and read it whenever there is something."""
        loop = asyncio.get_running_loop()
        self._socket = udp_socket(self._address, self._buffer_bytes)
        for host, address in self._addresses.items():
            found = await loop.getaddrinfo(
                address.host, address.port, family=self._socket.family, type=socket.SOCK_DGRAM
            )
            self._targets[host] = found[0][4]
        self._receive, self._drained = receive, drained
        if self._busy_poll:
            loop.call_soon(self._poll)
        else:
            loop.add_reader(self._socket.fileno(), self._on_readable)

    def send(self, host: HostId, datagram: bytes) -> None:
        """Hand it to the kernel; if that has no room it is lost."""
        if self._socket is None:
            return
        try:
            self._socket.sendto(datagram, self._targets[host])
        except OSError:
            self.losses += 1

    async def close(self) -> None:
        """Stop reading."""
        sock, self._socket = self._socket, None
        if sock is not None:
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()

    def _on_readable(self) -> None:
        sock, view, receive = self._socket, self._view, self._receive
        assert sock is not None
        try:
            for _ in range(BURST):
                size = sock.recv_into(view)
                receive(view[:size])
                if self._socket is None:
                    return
        except BlockingIOError:
            pass
        except OSError:  # an answer to a datagram that nobody wanted, for one
            self.losses += 1
        self._drained()

    def _poll(self) -> None:
        """Look for datagrams again and again, without ever going to sleep."""
        if self._socket is not None:
            self._on_readable()
            asyncio.get_running_loop().call_soon(self._poll)

"""UDP, one datagram to each host: the transport that works everywhere.

If datagrams are small, as on real networks, those of a turn to one address leave by one system call and come
in by few, if the kernel supports it (`offload.py`); otherwise each needs its own call.

A host starts even if the name of a peer cannot be resolved, because others may do without that peer. The name
is looked up again until it is found; datagrams to that peer are lost and counted meanwhile.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ordercast.core import HostId, LocalError
from ordercast.net.transports.address import Address
from ordercast.net.transports.offload import (
    ANCILLARY_BYTES,
    Segmenter,
    SocketAddress,
    can_segment,
    enable_coalescing,
    part_bytes,
)
from ordercast.net.transports.transport import Receive, Transport

BURST = 32
"""How many datagrams are read before other work gets a turn."""
SPARSE = 8
"""After this many datagrams that came alone, the next ones are expected to come alone too."""
READ_BYTES = 1 << 16
OFFLOAD_DATAGRAM_MAX = 16_000
"""Offload is not used for larger datagrams, because too few fit into one call."""
RESOLVE_S_MAX = 2.0
"""Seconds to look up the names of peers; then the host starts without the missing ones."""
RESOLVE_AGAIN_S = 1.0

_log = logging.getLogger("ordercast")


def udp_socket(address: Address, buffer_bytes: int) -> socket.socket:
    """A bound socket that does not block, with buffers as large as the system allows."""
    try:
        family, kind, protocol, _, name = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise LocalError(f"cannot find the address of {address.host}: {error.strerror or error}") from error
    sock.setblocking(False)
    set_buffers(sock, buffer_bytes)
    try:
        sock.bind(name)
    except OSError as error:
        sock.close()
        raise LocalError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from error
    return sock


def granted_buffer(buffer_bytes: int) -> int:
    """The receive buffer that the kernel grants for a requested size."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        set_buffers(sock, buffer_bytes)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def set_buffers(sock: socket.socket, buffer_bytes: int) -> None:
    """Set buffers of this size in both directions, as far as the system allows."""
    for option, force in (("SO_RCVBUF", 33), ("SO_SNDBUF", 32)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, buffer_bytes)  # beyond the system's limit, for root
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, option), buffer_bytes)


class UdpTransport(Transport):
    """The transport that sends and receives everything by one socket."""

    def __init__(
        self,
        host: HostId,
        addresses: Mapping[HostId, Address],
        datagram_max: int,
        buffer_bytes: int,
        busy_poll: bool = False,
        offload: bool = True,
    ) -> None:
        self.datagram_max = datagram_max
        self._address = addresses[host]
        self._buffer_bytes = buffer_bytes
        self._busy_poll = busy_poll
        self._wants_offload = offload and datagram_max <= OFFLOAD_DATAGRAM_MAX
        self._segmenter: Segmenter | None = None
        self._coalesced = False
        self._refused = 0
        self._targets: dict[HostId, SocketAddress] = {}
        self._addresses = dict(addresses)
        self._resolving: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._alone = 0
        """How many datagrams in a row came alone."""

    @property
    def losses(self) -> int:  # type: ignore[override]  # made of two counters
        """Datagrams that the kernel refused, or whose peer had no known address."""
        return self._refused + (self._segmenter.losses if self._segmenter is not None else 0)

    @property
    def offload(self) -> tuple[bool, bool]:
        """Whether the kernel supports segmentation, and whether it supports coalescing."""
        return self._segmenter is not None, self._coalesced

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Bind the socket, and read it whenever there is something."""
        self._receive, self._drained = receive, drained
        self._socket = sock = udp_socket(self._address, self._buffer_bytes)
        try:
            await self._resolve(self._addresses, sock.family)
            self._prepare(sock)
        except BaseException:
            await self.close()
            raise
        loop = asyncio.get_running_loop()
        missing = self._unresolved()
        if missing:
            names = ", ".join(str(self._addresses[host]) for host in missing)
            _log.warning("cannot find the addresses of these hosts yet: %s", names)
            self._resolving = loop.create_task(self._resolve_later(sock.family, RESOLVE_AGAIN_S))
        if self._busy_poll:
            loop.call_soon(self._poll)
        else:
            for each in self._sockets():
                loop.add_reader(each.fileno(), self._on_readable, each)

    def _unresolved(self) -> list[HostId]:
        return [host for host in self._addresses if host not in self._targets]

    async def _resolve(self, hosts: Iterable[HostId], family: int) -> None:
        """Look up hosts, all at once; hosts that cannot be found get no target."""
        await asyncio.gather(*(self._look_up(host, family) for host in hosts))

    async def _look_up(self, host: HostId, family: int) -> None:
        address, loop = self._addresses.get(host), asyncio.get_running_loop()
        if address is None:  # removed meanwhile
            return
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(RESOLVE_S_MAX):
                found = await loop.getaddrinfo(
                    address.host, address.port, family=family, type=socket.SOCK_DGRAM
                )
            if host in self._addresses:
                self._targets[host] = found[0][4]

    async def _resolve_later(self, family: int, pause_s: float) -> None:
        while missing := self._unresolved():
            await asyncio.sleep(pause_s)
            await self._resolve(missing, family)
            pause_s = RESOLVE_AGAIN_S
        _log.info("found the addresses of all hosts")

    def add_host(self, host: HostId, address: Address) -> None:
        """Look the host up, at once or with others that are missing."""
        self._addresses[host] = address
        if self._socket is not None and (self._resolving is None or self._resolving.done()):
            task = self._resolve_later(self._socket.family, 0.0)
            self._resolving = asyncio.get_running_loop().create_task(task)

    def remove_host(self, host: HostId) -> None:
        """Forget where it is."""
        self._addresses.pop(host, None)
        self._targets.pop(host, None)

    def _prepare(self, sock: socket.socket) -> None:
        """Set up what depends on the socket, before anything is read."""
        if self._wants_offload:
            self._segmenter = Segmenter(sock) if can_segment(sock) else None
            self._coalesced = enable_coalescing(sock)

    def _sockets(self) -> tuple[socket.socket, ...]:
        """All sockets that are read."""
        return (self._socket,) if self._socket is not None else ()

    def send(self, host: HostId, datagram: bytes) -> None:
        """Send a datagram, at once or with others of the turn; if the kernel has no room it is lost."""
        target = self._targets.get(host)
        if target is None:
            self._refused += 1
        else:
            self._send_to(target, datagram)

    def _send_to(self, address: SocketAddress, datagram: bytes) -> None:
        if self._segmenter is not None:
            self._segmenter.add(address, datagram)
        elif self._socket is not None:
            try:
                self._socket.sendto(datagram, address)
            except OSError:
                self._refused += 1

    def flush(self) -> None:
        """A turn is over."""
        if self._segmenter is not None:
            self._segmenter.flush()

    async def close(self) -> None:
        """Stop reading."""
        sockets = self._sockets()
        if self._resolving is not None:
            self._resolving.cancel()
            self._resolving = None
        self.flush()
        self._socket = None
        for sock in sockets:
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()

    def _on_readable(self, sock: socket.socket) -> None:
        try:
            self._read(sock)
        except BlockingIOError:
            pass
        except OSError:  # an answer to a datagram that nobody wanted, for one
            self._refused += 1
        if self._socket is not None:
            self._drained()

    def _read(self, sock: socket.socket) -> None:
        if self._coalesced:
            self._read_coalesced(sock)
            return
        view, receive = self._view, self._receive
        receive(view[: sock.recv_into(view)])
        # Where datagrams come one by one, looking for a second costs as much as reading the first: it is left
        # undone most of the time.
        self._alone += 1
        if SPARSE <= self._alone < 2 * SPARSE:
            return
        if self._alone >= 2 * SPARSE:
            self._alone = SPARSE - 1
        for _ in range(BURST - 1):
            if self._socket is None:
                return
            receive(view[: sock.recv_into(view)])
            self._alone = 0

    def _read_coalesced(self, sock: socket.socket, ignored: SocketAddress | None = None) -> None:
        """Read a burst of buffers, each with one or more datagrams; ignore those from one address."""
        view, receive, taken = self._view, self._receive, 0
        while taken < BURST and self._socket is not None:
            length, ancillary, _, source = sock.recvmsg_into([view], ANCILLARY_BYTES)
            if source == ignored:
                taken += 1
                continue
            size = part_bytes(ancillary, length) if ancillary else length
            for start in range(0, length, size or 1):
                receive(view[start : min(start + size, length)])
                taken += 1

    def _poll(self) -> None:
        """Poll for datagrams all the time, without sleeping."""
        if self._socket is not None:
            for sock in self._sockets():
                self._on_readable(sock)
            asyncio.get_running_loop().call_soon(self._poll)

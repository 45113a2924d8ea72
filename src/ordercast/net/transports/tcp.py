"""Datagrams over TCP, for hosts that others cannot reach by UDP.

A host listens on its address, and opens one connection to each peer that it sends to, at the first
datagram. Connections carry one direction only, so none needs to be agreed upon: what comes in on a
connection that was opened here is ignored. A record is a length (4 bytes, little-endian) and a datagram.

The promise is that of UDP: datagrams may be lost when a connection breaks, while a peer cannot be reached, or
when too many wait for a peer. `losses` counts those that were given up here; those that a broken connection
lost cannot be counted. Every queue has a limit.

Datagrams are authenticated by their seals. Anybody may open a connection, so one counts as a peer's only when
a datagram on it has proved that. Connections that have not proved themselves have a few places of their own
and little time. When a new one finds no place, the oldest goes, preferably one that has brought no sealed
datagram. So strangers take no place of a peer, however many they are and however slowly they send.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from struct import Struct

from ordercast.core import HostId, LocalError
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Origin, Receive, Transport

OUTGOING_BYTES_MAX = 8 << 20
"""How many bytes may wait for one peer; datagrams beyond that are dropped and counted."""

BACKOFF_S_MIN, BACKOFF_S_MAX = 0.01, 1.0
CONNECT_S_MAX = 2.0
UNACKNOWLEDGED_MS_MAX = 5_000
"""A connection is closed if the peer's kernel acknowledges nothing for this long."""

READ_BYTES = 256 << 10
UNPROVED_MAX = 16
"""Connections at a time that have not proved whose they are."""
UNPROVED_S_MAX = 3.0
"""Seconds that a connection has to prove whose it is."""
CONNECTIONS_PER_PEER = 2
"""A peer that opens another connection has lost the one before, but this host may not know that yet."""
_WRITE_BYTES = 64 << 10

_LENGTH = Struct("<I")


class TcpTransport(Transport):
    """All links of one host, by TCP."""

    def __init__(
        self,
        me: HostId,
        addresses: Mapping[HostId, tuple[str, int]],
        *,
        datagram_max: int,
        outgoing_bytes_max: int = OUTGOING_BYTES_MAX,
    ) -> None:
        self.datagram_max = datagram_max
        self.losses = 0
        self.refused_records = 0
        """Records with an impossible length; each ended its connection."""
        self.displaced = 0
        """Connections that were closed because there were too many, or they proved nothing in time."""
        self.connections = 0
        """Connections that were opened to peers."""
        self.failures = 0
        """Attempts to open one that failed."""
        self._address = addresses[me]
        self._bytes_max = outgoing_bytes_max
        self._closing: set[asyncio.Task[None]] = set()
        self._peers = {
            host: _Peer(self, address, outgoing_bytes_max)
            for host, address in addresses.items()
            if host != me
        }
        self._server: asyncio.Server | None = None
        self._unproved: dict[_Incoming, None] = {}  # the oldest first
        self._proved: dict[HostId, list[_Incoming]] = {host: [] for host in self._peers}
        self._dirty: list[_Peer] = []
        self._closed = False

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Listen; raises `LocalError` if the address is taken, or is not one of this machine."""
        loop = asyncio.get_running_loop()
        name, port = self._address
        try:
            self._server = await loop.create_server(lambda: _Incoming(self, receive, drained), name, port)
        except OSError as error:
            raise LocalError(f"cannot listen on {name}:{port}: {error.strerror or error}") from error

    def send(self, host: HostId, datagram: bytes) -> None:
        """Queue for the peer; it leaves with the next flush, or earlier if many bytes wait."""
        peer = self._peers.get(host)
        if peer is None:  # it was removed
            self.losses += 1
            return
        if not peer.queue:
            self._dirty.append(peer)
        peer.add(datagram)

    def add_host(self, host: HostId, address: Address) -> None:
        """Connect to it at the first datagram."""
        self._peers[host] = _Peer(self, address, self._bytes_max)
        self._proved[host] = []

    def remove_host(self, host: HostId) -> None:
        """Close the connections to it and from it."""
        peer = self._peers.pop(host)
        self._dirty = [other for other in self._dirty if other is not peer]
        task = asyncio.get_running_loop().create_task(peer.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        for incoming in [*self._proved[host]]:
            incoming.abort()
        del self._proved[host]

    def flush(self) -> None:
        """Write queued datagrams to the connections, and open missing connections."""
        if self._dirty:
            for peer in self._dirty:
                peer.flush()
            self._dirty.clear()

    async def close(self) -> None:
        """Close all connections; queued datagrams are lost."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for incoming in [*self._unproved, *(one for some in self._proved.values() for one in some)]:
            incoming.abort()
        for peer in self._peers.values():
            await peer.close()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def accepted(self, incoming: "_Incoming") -> None:
        """Take a new connection; if too many have proved nothing, close the one that is trusted least."""
        if self._closed:
            incoming.abort()
            return
        if len(self._unproved) >= UNPROVED_MAX:
            suspects = (one for one in self._unproved if not one.sealed)
            self.displace(next(suspects, next(iter(self._unproved))))
        self._unproved[incoming] = None

    def displace(self, incoming: "_Incoming") -> None:
        """Close a connection that has no place any more."""
        self.displaced += 1
        incoming.abort()

    def proved(self, incoming: "_Incoming", host: HostId) -> None:
        """Give a connection a place of its peer; the oldest connection of the peer may lose its place."""
        if incoming in self._unproved:
            del self._unproved[incoming]
            connections = self._proved[host]
            connections.append(incoming)
            if len(connections) > CONNECTIONS_PER_PEER:
                self.displace(connections[0])

    def gone(self, incoming: "_Incoming") -> None:
        """A connection ended."""
        self._unproved.pop(incoming, None)
        for connections in self._proved.values():
            if incoming in connections:
                connections.remove(incoming)


class _Peer:
    """The connection to one peer, and what waits for it."""

    def __init__(self, owner: TcpTransport, address: tuple[str, int], bytes_max: int) -> None:
        self.queue: list[bytes] = []
        self._queued_bytes = 0
        self._address = address
        self._owner = owner
        self._bytes_max = bytes_max
        self._outgoing: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._closed = False
        self._pause_s = 0.0  # before the next attempt
        self._opened_s = 0.0

    def add(self, datagram: bytes) -> None:
        """Queue a datagram, or drop it if too many bytes wait already."""
        size = _LENGTH.size + len(datagram)
        unsent = self._outgoing.get_write_buffer_size() if self._outgoing is not None else 0
        if unsent + self._queued_bytes + size > self._bytes_max:
            self._owner.losses += 1
            return
        self.queue += (_LENGTH.pack(len(datagram)), datagram)
        self._queued_bytes += size
        if self._queued_bytes >= _WRITE_BYTES and self._outgoing is not None:
            self.flush()

    def flush(self) -> None:
        """Write queued datagrams, or open the connection."""
        if self._outgoing is None:
            if self._connecting is None and self.queue and not self._closed:
                self._connecting = asyncio.get_running_loop().create_task(self._connect())
            return
        if self.queue:
            self._outgoing.write(b"".join(self.queue))  # one call of the kernel for many records
            self.queue.clear()
            self._queued_bytes = 0

    def lost(self) -> None:
        """Note that the connection ended; the next datagram opens another, at once if this one lived long."""
        self._outgoing = None
        if asyncio.get_running_loop().time() - self._opened_s > BACKOFF_S_MAX:
            self._pause_s = 0.0

    async def close(self) -> None:
        """End the connection and the attempts to make one."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError):
                await self._connecting
        if self._outgoing is not None:
            self._outgoing.abort()
            self._outgoing = None

    async def _connect(self) -> None:
        transport = None
        try:
            while transport is None:
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(max(BACKOFF_S_MIN, 2 * self._pause_s), BACKOFF_S_MAX)
                transport = await self._attempt()
        finally:
            self._connecting = None
        if not transport.is_closing():
            self._outgoing = transport
        self.flush()

    async def _attempt(self) -> asyncio.Transport | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                transport, _ = await loop.create_connection(lambda: _Outgoing(self), *self._address)
        except (OSError, TimeoutError):
            self._owner.failures += 1
            self._drop_queue()
            return None
        self._owner.connections += 1
        self._opened_s = loop.time()
        return transport

    def _drop_queue(self) -> None:
        # What waited for a peer that is away is of no use to it when it is back, and would fill the queue.
        self._owner.losses += len(self.queue) // 2
        self.queue.clear()
        self._queued_bytes = 0


class _Outgoing(asyncio.Protocol):
    """A connection that this host opened, to send."""

    def __init__(self, peer: _Peer) -> None:
        self._peer = peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS_MAX)

    def connection_lost(self, error: Exception | None) -> None:
        self._peer.lost()


class _Incoming(asyncio.BufferedProtocol):
    """A connection that a peer opened; datagrams are passed on from the buffer without a copy."""

    def __init__(self, owner: TcpTransport, receive: Receive, drained: Callable[[], None]) -> None:
        self._owner = owner
        self._receive = receive
        self._drained = drained
        self._datagram_max = owner.datagram_max
        self._buffer = memoryview(bytearray(max(READ_BYTES, 2 * (_LENGTH.size + owner.datagram_max))))
        self._end = 0  # of what has been read; records begin at the start of the buffer
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.sealed = False
        """Whether a holder of the key made a datagram that came here."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._deadline = asyncio.get_running_loop().call_later(UNPROVED_S_MAX, self._owner.displace, self)
        self._owner.accepted(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        self._owner.gone(self)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def abort(self) -> None:
        """End the connection at once."""
        self._stop_waiting()
        self._owner.gone(self)
        if self._transport is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        buffer, end = self._buffer, self._end + nbytes
        start, valid = 0, True
        while end - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if not 0 < length <= self._datagram_max:
                valid = False
                break
            following = start + _LENGTH.size + length
            if following > end:
                break
            origin = self._receive(buffer[start + _LENGTH.size : following])
            if origin is not None and self._deadline is not None:
                self._note(origin)
            start = following
        self._keep(start, end)
        if not valid:
            self._owner.refused_records += 1
            self.abort()
        self._drained()

    def _note(self, origin: Origin) -> None:
        """A holder of the key has spoken, and perhaps proved that it is a peer."""
        self.sealed = True
        if origin.proven:
            self._stop_waiting()
            self._owner.proved(self, origin.host)

    def _keep(self, start: int, end: int) -> None:
        # The beginning of a record whose end has not come moves to the front; at most one record does.
        if start and start < end:
            self._buffer[: end - start] = bytes(self._buffer[start:end])
        self._end = end - start

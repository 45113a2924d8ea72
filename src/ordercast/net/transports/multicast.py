"""UDP with IP multicast: one datagram for all hosts of a set that shares an address.

All hosts share one address, and the hosts of each group of the plan share another one: consecutive addresses
from the one that the cluster file names. A datagram to exactly such a set, without its sender, leaves once;
others are sent to each host. Only IPv4 is supported. Datagrams stay on the local network unless `hops` says
otherwise.
"""

import ipaddress
import socket
from collections.abc import Iterable, Mapping, Sequence

from ordercast.core import HostId, LocalError, Plan
from ordercast.net.transports.address import Address
from ordercast.net.transports.offload import SocketAddress, enable_coalescing
from ordercast.net.transports.udp import UdpTransport, set_buffers

SETS_MAX = 64
"""How many sets of hosts have their own address; switches hold a limited number of multicast groups."""
_CHOICES_MAX = 4096


def shared_sets(plan: Plan) -> tuple[frozenset[HostId], ...]:
    """All hosts, and the hosts of each group; the same in the same order at each host."""
    homes = {node.id: node.host for node in plan.nodes}
    everyone = frozenset(homes.values())
    groups = (frozenset(homes[node] for node in plan.groups[group]) for group in sorted(plan.groups))
    found = dict.fromkeys((everyone, *groups))
    return tuple(hosts for hosts in found if len(hosts) > 1)[:SETS_MAX]


def set_addresses(
    first: Address, sets: Sequence[frozenset[HostId]]
) -> dict[frozenset[HostId], SocketAddress]:
    """An address for each set: consecutive addresses from the first."""
    try:
        base = ipaddress.IPv4Address(first.host)
    except ipaddress.AddressValueError as error:
        raise LocalError(f"multicast needs an IPv4 address, and {first.host} is not one") from error
    if not base.is_multicast or not (base + len(sets)).is_multicast:
        raise LocalError(f"{first.host} and the next {len(sets)} addresses are not all multicast addresses")
    return {hosts: (str(base + number), first.port) for number, hosts in enumerate(sets)}


class MulticastTransport(UdpTransport):
    """UDP that sends once to a set of hosts."""

    def __init__(
        self,
        host: HostId,
        addresses: Mapping[HostId, Address],
        datagram_max: int,
        buffer_bytes: int,
        busy_poll: bool = False,
        offload: bool = True,
        *,
        sets: Iterable[frozenset[HostId]],
        first: Address,
        hops: int = 1,
        interface: str = "",
    ) -> None:
        super().__init__(host, addresses, datagram_max, buffer_bytes, busy_poll, offload)
        shared = set_addresses(first, tuple(sets))
        self._joined = [address for hosts, address in shared.items() if host in hosts]
        self._shared = {hosts - {host}: address for hosts, address in shared.items()}
        self._hops = hops
        self._interface = interface
        self._group_sockets: list[socket.socket] = []
        self._own: SocketAddress = ()
        self._choices: dict[tuple[HostId, ...], SocketAddress | None] = {}
        self.multicasts = 0
        """Datagrams that left once for several hosts."""

    def _prepare(self, sock: socket.socket) -> None:
        """Join the sets that this host belongs to, with a socket for each."""
        if sock.family != socket.AF_INET:
            raise LocalError("multicast needs IPv4 addresses")
        super()._prepare(sock)
        self._own = sock.getsockname()
        interface = socket.inet_aton(self._interface or self._own[0])
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._hops)
        # Other hosts may be on this machine; the copies for this host itself are ignored when they come.
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        for address in self._joined:
            self._join(address, interface)

    def _join(self, address: SocketAddress, interface: bytes) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._group_sockets.append(sock)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # hosts on this machine share the address
        set_buffers(sock, self._buffer_bytes)
        try:
            sock.bind(address)  # to the address itself: what is for other sets does not come here
            sock.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(address[0]) + interface
            )
        except OSError as error:
            raise LocalError(f"cannot join {address[0]}:{address[1]}: {error.strerror or error}") from error
        if self._coalesced:
            enable_coalescing(sock)

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        """Send once if these hosts share an address, else to each."""
        try:
            address = self._choices[hosts]
        except KeyError:
            address = self._choose(hosts)
        if address is None:
            super().send_many(hosts, datagram)
        else:
            self.multicasts += 1
            self._send_to(address, datagram)

    def _choose(self, hosts: tuple[HostId, ...]) -> SocketAddress | None:
        if len(self._choices) >= _CHOICES_MAX:
            self._choices.clear()
        address = self._shared.get(frozenset(hosts)) if len(hosts) > 1 else None
        self._choices[hosts] = address
        return address

    async def close(self) -> None:
        """Leave all sets, and stop reading."""
        await super().close()
        self._group_sockets.clear()

    def _sockets(self) -> tuple[socket.socket, ...]:
        return (*super()._sockets(), *self._group_sockets)

    def _read(self, sock: socket.socket) -> None:
        if sock is self._socket:
            super()._read(sock)
        else:
            self._read_coalesced(sock, ignored=self._own)

"""Two transports in one: TCP to the hosts that UDP does not reach, and UDP to the others."""

from collections.abc import Callable, Collection

from ordercast.core import HostId
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Receive, Transport


class SwitchedTransport(Transport):
    """Sends by the second transport to some hosts and by the first to all others; listens on both."""

    def __init__(
        self,
        usual: Transport,
        special: Transport,
        special_hosts: Collection[HostId],
        *,
        special_only: bool = False,
    ) -> None:
        """With `special_only`, hosts that come later are reached by the second transport too."""
        self.datagram_max = min(usual.datagram_max, special.datagram_max)
        self.usual = usual
        self.special = special
        self._special_hosts = frozenset(special_hosts)
        self._special_only = special_only

    @property
    def losses(self) -> int:  # type: ignore[override]  # counted where they happen
        """Datagrams that both transports gave up."""
        return self.usual.losses + self.special.losses

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Listen on both."""
        await self.usual.start(receive, drained)
        try:
            await self.special.start(receive, drained)
        except BaseException:
            await self.usual.close()
            raise

    def send(self, host: HostId, datagram: bytes) -> None:
        """Send by the transport of the host."""
        (self.special if host in self._special_hosts else self.usual).send(host, datagram)

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        """Send to each by its transport; those that share one go together."""
        special = self._special_hosts.intersection(hosts)
        if not special:
            self.usual.send_many(hosts, datagram)
            return
        usual = tuple(host for host in hosts if host not in special)
        if usual:
            self.usual.send_many(usual, datagram)
        self.special.send_many(tuple(host for host in hosts if host in special), datagram)

    def add_host(self, host: HostId, address: Address) -> None:
        """Reach it like most hosts: by the first transport, unless this host reaches nobody by that."""
        if self._special_only:
            self._special_hosts |= {host}
        self.usual.add_host(host, address)
        self.special.add_host(host, address)

    def remove_host(self, host: HostId) -> None:
        """Forget it in both."""
        self._special_hosts -= {host}
        self.usual.remove_host(host)
        self.special.remove_host(host)

    def flush(self) -> None:
        """End a turn on both."""
        self.usual.flush()
        self.special.flush()

    async def close(self) -> None:
        """Close both."""
        await self.usual.close()
        await self.special.close()


def hosts_by_tcp(me: HostId, marked: Collection[HostId], hosts: Collection[HostId]) -> frozenset[HostId]:
    """The peers that a host reaches by TCP, given the hosts that are marked to use TCP for all links."""
    return frozenset(host for host in hosts if host != me and (me in marked or host in marked))

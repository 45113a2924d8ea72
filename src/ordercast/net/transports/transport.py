"""The interface of transports, which carry sealed datagrams from host to host."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ordercast.core import HostId
from ordercast.net.transports.address import Address

Datagram: TypeAlias = bytes | bytearray | memoryview


class Origin(NamedTuple):
    """What a datagram shows about who sent it."""

    host: HostId
    """A holder of the key made it for this host."""
    proven: bool
    """That host sent it now: it is no recording."""


Receive: TypeAlias = Callable[[Datagram], Origin | None]
"""Called for each datagram, which is valid only during the call; returns None if it may be from anybody."""


class Transport(ABC):
    """Sends datagrams to hosts of a plan: best effort; never blocks, and raises no network errors."""

    datagram_max: int
    """The largest datagram that it takes."""
    losses: int = 0
    """Datagrams that the transport gave up, because a buffer was full or the host was not reachable."""

    @abstractmethod
    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Listen. `receive` is called for each datagram, `drained` after each burst of them."""

    @abstractmethod
    def send(self, host: HostId, datagram: bytes) -> None:
        """Send a datagram to a host."""

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        """Send the same datagram to several hosts."""
        for host in hosts:
            self.send(host, datagram)

    @abstractmethod
    def add_host(self, host: HostId, address: Address) -> None:
        """Send to one more host from now on."""

    @abstractmethod
    def remove_host(self, host: HostId) -> None:
        """Forget a host; datagrams to it are lost and counted."""

    def flush(self) -> None:  # noqa: B027  (optional hook)
        """End a turn: send the datagrams that were gathered."""

    @abstractmethod
    async def close(self) -> None:
        """Stop listening, and release all resources."""

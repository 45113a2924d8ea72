"""What carries sealed datagrams from host to host."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from ordercast.core import HostId

Datagram: TypeAlias = bytes | bytearray | memoryview
Receive: TypeAlias = Callable[[Datagram], None]
"""Called for each datagram, which is valid only during the call."""


class Transport(ABC):
    """Datagrams to hosts of a plan: best effort, never blocking, never raising for trouble of the network."""

    datagram_max: int
    """The largest datagram that it takes."""
    losses: int = 0
    """Datagrams that it gave up itself, because a buffer was full or nobody was there."""

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

    def flush(self) -> None:  # noqa: B027  (optional hook)
        """A turn is over: send what was kept back to go together."""

    @abstractmethod
    async def close(self) -> None:
        """Stop listening and let go of everything."""

"""What the tests of transports share: ears that hear, addresses that are free, waiting with a limit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ordercast.core import HostId
from ordercast.net.transports.address import Address, free_ports
from ordercast.net.transports.transport import Datagram, Origin, Transport
from tests.live.processes import PATIENCE_S

LOOPBACK = "127.0.0.1"


class Ear:
    """Hears what a transport receives."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.drains = 0
        self.heard_at_drain: list[int] = []

    def receive(self, datagram: Datagram) -> Origin | None:
        """Keep a copy, for it is valid only during the call."""
        self.heard.append(bytes(datagram))
        return None

    def drained(self) -> None:
        """A burst is over."""
        self.drains += 1
        self.heard_at_drain.append(len(self.heard))


def free_addresses(count: int, name: str = LOOPBACK) -> dict[HostId, Address]:
    """Addresses on which nobody listens, by UDP or by TCP."""
    return {host: Address(name, port) for host, port in enumerate(free_ports(count, name))}


async def until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for a condition; fails when it does not come about in time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, "waited in vain"
        await asyncio.sleep(0.002)


async def until_heard(ear: Ear, count: int) -> None:
    """Wait until so many datagrams came."""
    await until(lambda: len(ear.heard) >= count)


@asynccontextmanager
async def listening(*transports: Transport) -> AsyncIterator[list[Ear]]:
    """Started transports and the ear of each; closed at the end."""
    ears = [Ear() for _ in transports]
    started: list[Transport] = []
    try:
        for transport, ear in zip(transports, ears, strict=True):
            await transport.start(ear.receive, ear.drained)
            started.append(transport)
        yield ears
    finally:
        for transport in started:
            await transport.close()

"""What the tests of transports share: ears that hear, addresses that are free, waiting with a limit."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ordercast.core import HostId
from ordercast.net.cluster.address import Address
from ordercast.net.transports.transport import Datagram, Transport

LOOPBACK = "127.0.0.1"


class Ear:
    """Hears what a transport receives."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.drains = 0
        self.heard_at_drain: list[int] = []

    def receive(self, datagram: Datagram) -> None:
        """Keep a copy, for it is valid only during the call."""
        self.heard.append(bytes(datagram))

    def drained(self) -> None:
        """A burst is over."""
        self.drains += 1
        self.heard_at_drain.append(len(self.heard))


def free_addresses(count: int, name: str = LOOPBACK) -> dict[HostId, Address]:
    """Addresses on which nobody listens, by UDP or by TCP."""
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    held: list[socket.socket] = []
    addresses: dict[HostId, Address] = {}
    try:
        while len(addresses) < count:
            by_tcp = socket.socket(family, socket.SOCK_STREAM)
            by_udp = socket.socket(family, socket.SOCK_DGRAM)
            held += (by_tcp, by_udp)
            by_tcp.bind((name, 0))
            port = by_tcp.getsockname()[1]
            try:
                by_udp.bind((name, port))
            except OSError:
                continue
            addresses[len(addresses)] = Address(name, port)
    finally:
        for each in held:
            each.close()
    return addresses


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
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

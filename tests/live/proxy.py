"""A stranger on the network: a proxy between hosts that loses, doubles, delays, corrupts and replays.

Each host sends to the proxy's address of its peer instead of to the peer, and the proxy passes on what it is
in the mood to. `addresses_seen_by` gives the addresses to start a host with.
"""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from ordercast.core import HostId
from ordercast.net.transports.address import Address

BUFFER_BYTES = 4 << 20
RECORDS_MAX = 200_000


@dataclass
class Mood:
    """What the proxy does; probabilities of each datagram."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reorder_s: float = 0.005
    corruption: float = 0.0
    """Share of datagrams of which one bit is flipped."""
    replay: float = 0.0
    """Share of datagrams after which an earlier one, to anybody, is sent once more."""
    cut: set[HostId] = field(default_factory=set)
    """Hosts that nothing is passed on to."""


class Proxy:
    """Stands before each of some hosts."""

    def __init__(self, hosts: Mapping[HostId, Address], rng: Random, mood: Mood | None = None) -> None:
        self._hosts = dict(hosts)
        self._rng = rng
        self.mood = mood or Mood()
        self._fronts: dict[HostId, socket.socket] = {}
        self.fronts: dict[HostId, Address] = {}
        self.records: list[tuple[HostId, bytes]] = []
        self.passed = 0
        self.lost = 0
        self.corrupted = 0
        self.replayed = 0
        self._closed = False

    async def __aenter__(self) -> "Proxy":
        loop = asyncio.get_running_loop()
        for host, address in self._hosts.items():
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            front = socket.socket(family, socket.SOCK_DGRAM)
            front.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            front.setblocking(False)
            front.bind((address.host, 0))
            self._fronts[host] = front
            self.fronts[host] = Address(address.host, front.getsockname()[1])
            loop.add_reader(front.fileno(), self._on_readable, host)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        for front in self._fronts.values():
            asyncio.get_running_loop().remove_reader(front.fileno())
            front.close()

    def addresses_seen_by(self, host: HostId) -> dict[HostId, Address]:
        """Its own address as it is, and the proxy's for all others."""
        return {**self.fronts, host: self._hosts[host]}

    def move(self, host: HostId, address: Address) -> None:
        """A host listens elsewhere now."""
        self._hosts[host] = address

    def inject(self, host: HostId, datagram: bytes) -> None:
        """Send some bytes to a host, as a stranger would."""
        if not self._closed:
            try:
                self._fronts[host].sendto(datagram, self._hosts[host])
            except OSError:
                self.lost += 1

    def replay(self, host: HostId) -> int:
        """Send all that was recorded for a host once more; how many that were."""
        found = [datagram for target, datagram in self.records if target == host]
        for datagram in found:
            self.inject(host, datagram)
        return len(found)

    def _on_readable(self, host: HostId) -> None:
        try:
            for _ in range(64):
                self._decide(host, self._fronts[host].recv(1 << 16))
        except BlockingIOError:
            pass

    def _decide(self, host: HostId, datagram: bytes) -> None:
        rng, mood = self._rng, self.mood
        if len(self.records) < RECORDS_MAX:
            self.records.append((host, datagram))
        if host in mood.cut or rng.random() < mood.loss:
            self.lost += 1
            return
        if rng.random() < mood.corruption:
            self.corrupted += 1
            datagram = flipped(datagram, rng.randrange(8 * len(datagram)))
        for _ in range(1 + (rng.random() < mood.duplication)):
            self._pass_on(host, datagram)
        if rng.random() < mood.replay:
            self.replayed += 1
            self.inject(*rng.choice(self.records))

    def _pass_on(self, host: HostId, datagram: bytes) -> None:
        self.passed += 1
        if self._rng.random() < self.mood.reordering:
            delay_s = self._rng.uniform(0, self.mood.reorder_s)
            asyncio.get_running_loop().call_later(delay_s, self.inject, host, datagram)
        else:
            self.inject(host, datagram)


def flipped(datagram: bytes, bit: int) -> bytes:
    """The datagram with one bit changed."""
    changed = bytearray(datagram)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)

"""Impairs datagrams on purpose, for trials: loss, duplicates, delay, reordering and partitions.

A host has this only if it was started with --impair. The sending host draws what happens to each copy of a
datagram, from a seeded generator; the other host does so for the way back. So a partition between two hosts
must be set at both; set at one, it cuts one direction.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Annotated

import msgspec

from ordercast.core import MICROSECOND, SECOND, HostId, LocalError
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Receive, Transport

HELD_BYTES_MAX = 64 << 20
"""How many datagrams may be delayed at a time; more are lost and counted."""

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=60e6)]


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the datagrams that a host sends; the fields are named as the simulator's conditions."""

    loss: Probability = 0.0
    duplication: Probability = 0.0
    reordering: Probability = 0.0
    """Share of datagrams that get an additional delay, so that later ones overtake them."""
    reorder_us: Microseconds = 1000.0
    """The largest additional delay, in microseconds."""
    latency_us: Microseconds = 0.0
    """Delay of every datagram, in microseconds; the clock of the event loop counts in steps of about 1 ms."""
    blocked: tuple[HostId, ...] = ()
    """Hosts to which nothing is sent."""
    slowed: tuple[tuple[HostId, Microseconds], ...] = ()
    """Hosts to which datagrams take longer, and by how many microseconds."""


def read_impairment(settings: object) -> Impairment:
    """An impairment from JSON content, or `LocalError`."""
    try:
        return msgspec.convert(settings, Impairment)
    except msgspec.ValidationError as error:
        raise LocalError(f"impairment: {error}") from error


class ImpairedTransport(Transport):
    """A transport that loses, copies or delays some of its datagrams."""

    def __init__(self, inner: Transport, rng: Random, impairment: Impairment | None = None) -> None:
        self.datagram_max = inner.datagram_max
        self.inner = inner
        self.lost = 0
        self.blocked = 0
        self.duplicated = 0
        self.delayed = 0
        self.overflow = 0
        self._rng = rng
        self._held: list[tuple[float, int, HostId, bytes]] = []  # heap by due time
        self._held_count = 0  # of all datagrams ever held: equal times keep their order
        self._held_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.set_impairment(impairment or Impairment())

    @property
    def losses(self) -> int:  # type: ignore[override]  # made of two counters
        """Datagrams dropped for lack of room; `lost` and `blocked` count those lost on purpose."""
        return self.inner.losses + self.overflow

    def set_impairment(self, impairment: Impairment) -> None:
        """Change the impairment from now on; datagrams that are already delayed keep their time."""
        self.impairment = impairment
        self._calm = impairment == Impairment(reorder_us=impairment.reorder_us)
        self._blocked = frozenset(impairment.blocked)
        self._slowed = dict(impairment.slowed)

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Listen; incoming datagrams are not impaired, because their sender has done that."""
        await self.inner.start(receive, drained)

    def send(self, host: HostId, datagram: bytes) -> None:
        """Send a datagram, unless it is lost or delayed."""
        if self._calm or self._passes(host, datagram):
            self.inner.send(host, datagram)

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        """Send to several hosts; each copy is lost or delayed independently."""
        if self._calm:
            self.inner.send_many(hosts, datagram)
            return
        passing = tuple(host for host in hosts if self._passes(host, datagram))
        if passing:
            self.inner.send_many(passing, datagram)

    def add_host(self, host: HostId, address: Address) -> None:
        """Send to one more host."""
        self.inner.add_host(host, address)

    def remove_host(self, host: HostId) -> None:
        """Forget a host; what is held for it is lost."""
        self.inner.remove_host(host)

    def flush(self) -> None:
        """A turn is over."""
        self.inner.flush()

    async def close(self) -> None:
        """Close; delayed datagrams are lost."""
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        await self.inner.close()

    def _passes(self, host: HostId, datagram: bytes) -> bool:
        """Draw what happens to a datagram; True if it leaves at once, otherwise it is dealt with here."""
        rng, impairment = self._rng, self.impairment
        if host in self._blocked:
            self.blocked += 1
            return False
        if impairment.loss and rng.random() < impairment.loss:
            self.lost += 1
            return False
        if impairment.duplication and rng.random() < impairment.duplication:
            self.duplicated += 1
            # Also without a delay: it follows in the next turn.
            self._hold(host, datagram, self._delay_us(host))
        delay_us = self._delay_us(host)
        if not delay_us:
            return True
        self.delayed += 1
        self._hold(host, datagram, delay_us)
        return False

    def _delay_us(self, host: HostId) -> float:
        impairment = self.impairment
        delay_us = impairment.latency_us + self._slowed.get(host, 0.0)
        if impairment.reordering and self._rng.random() < impairment.reordering:
            return delay_us + self._rng.uniform(0, impairment.reorder_us)
        return delay_us

    def _hold(self, host: HostId, datagram: bytes, delay_us: float) -> None:
        if self._held_bytes + len(datagram) > HELD_BYTES_MAX:
            self.overflow += 1
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_us * MICROSECOND / SECOND
        if self._timer is None or due < self._held[0][0]:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._release)
        self._held_count += 1
        self._held_bytes += len(datagram)
        heappush(self._held, (due, self._held_count, host, datagram))

    def _release(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._held and self._held[0][0] <= now:
            _, _, host, datagram = heappop(self._held)
            self._held_bytes -= len(datagram)
            if host in self._blocked:  # a partition cuts what is under way too
                self.blocked += 1
            else:
                self.inner.send(host, datagram)
        self._timer = loop.call_at(self._held[0][0], self._release) if self._held else None
        self.inner.flush()

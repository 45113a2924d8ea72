"""Misfortune on purpose: loss, duplicates, delay, reordering and partitions in a live host, for trials.

A host has this only if it was started so. Fates are drawn where a datagram is sent, for each destination on
its own, from a seeded generator; what happens on the way back is the other host's to draw. A partition
between two hosts is therefore asked of both, and asked of one it cuts one direction.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Annotated

import msgspec

from ordercast.core import MICROSECOND, SECOND, HostId, LocalError
from ordercast.net.transports.transport import Receive, Transport

HELD_BYTES_MAX = 64 << 20
"""What may be held back at a time; datagrams beyond it are lost and counted."""

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=60e6)]


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What befalls the datagrams that a host sends; the same words as the simulator's conditions."""

    loss: Probability = 0.0
    duplication: Probability = 0.0
    reordering: Probability = 0.0
    """Share of datagrams that get an additional delay, and are overtaken by later ones."""
    reorder_us: Microseconds = 1000.0
    """The largest additional delay, in microseconds."""
    latency_us: Microseconds = 0.0
    """Delay of every datagram, in microseconds; the clock of the event loop counts in steps of about 1 ms."""
    blocked: tuple[HostId, ...] = ()
    """Hosts that nothing is sent to."""


def read_impairment(settings: object) -> Impairment:
    """Settings as they come from outside, or `LocalError`."""
    try:
        return msgspec.convert(settings, Impairment)
    except msgspec.ValidationError as error:
        raise LocalError(f"impairment: {error}") from error


class ImpairedTransport(Transport):
    """A transport that lets a part of what it is given come to harm."""

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
        """What was given up for want of room; what was lost on purpose is in `lost` and `blocked`."""
        return self.inner.losses + self.overflow

    def set_impairment(self, impairment: Impairment) -> None:
        """Change what befalls datagrams from now on; those held back already keep their time."""
        self.impairment = impairment
        self._calm = impairment == Impairment(reorder_us=impairment.reorder_us)
        self._blocked = frozenset(impairment.blocked)

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """Listen; what comes in has already had its fate."""
        await self.inner.start(receive, drained)

    def send(self, host: HostId, datagram: bytes) -> None:
        """Send, unless fate has something else in mind."""
        if self._calm or self._passes(host, datagram):
            self.inner.send(host, datagram)

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        """Send to several hosts; each copy has a fate of its own."""
        if self._calm:
            self.inner.send_many(hosts, datagram)
            return
        passing = tuple(host for host in hosts if self._passes(host, datagram))
        if passing:
            self.inner.send_many(passing, datagram)

    def flush(self) -> None:
        """A turn is over."""
        self.inner.flush()

    async def close(self) -> None:
        """Close; what is held back is gone."""
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        await self.inner.close()

    def _passes(self, host: HostId, datagram: bytes) -> bool:
        """Draw a fate; True if the datagram goes at once, else it has been dealt with."""
        rng, impairment = self._rng, self.impairment
        if host in self._blocked:
            self.blocked += 1
            return False
        if impairment.loss and rng.random() < impairment.loss:
            self.lost += 1
            return False
        if impairment.duplication and rng.random() < impairment.duplication:
            self.duplicated += 1
            self._hold(host, datagram, self._delay_us())  # also without a delay: it follows in the next turn
        delay_us = self._delay_us()
        if not delay_us:
            return True
        self.delayed += 1
        self._hold(host, datagram, delay_us)
        return False

    def _delay_us(self) -> float:
        impairment = self.impairment
        if impairment.reordering and self._rng.random() < impairment.reordering:
            return impairment.latency_us + self._rng.uniform(0, impairment.reorder_us)
        return impairment.latency_us

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

"""A machine: its CPU, through which every packet in and out must pass, and its processes."""

from collections import deque
from typing import Any

import msgspec

from ordercast.core import HostId, Nanos
from ordercast.sim.scheduler import Action, Scheduler


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What work costs on a host. Throughput and saturation come from here."""

    receive_ns: Nanos = 0
    """Service time of each packet that arrives."""
    send_ns: Nanos = 0
    """Service time of each packet that leaves."""
    save_ns: Nanos = 0
    """Service time of each durable save."""
    copies: bool = False
    """Whether a multicast costs one send a copy (unicast fan-out) or one in all (the network copies)."""
    queue_max: int = 100_000
    """Packets that may wait for the CPU; beyond that they are dropped, as a full socket buffer does."""


class Host:
    """Serves one piece of work at a time, first come, first served."""

    __slots__ = (
        "_scheduler", "busy_ns", "cpu", "free_at", "id", "overflowed", "queue", "up", "waking",
    )  # fmt: skip

    def __init__(self, host: HostId, cpu: Cpu, scheduler: Scheduler) -> None:
        self.id = host
        self._scheduler = scheduler
        self.cpu = cpu
        self.up = True
        self.free_at: Nanos = 0
        self.queue: deque[tuple[Nanos, Action, tuple[Any, ...]]] = deque()
        self.waking = False
        self.busy_ns: Nanos = 0
        self.overflowed = 0

    def occupy(self) -> None:
        """Let work that begins now not be charged to the past."""
        self.free_at = max(self.free_at, self._scheduler.now)

    def work(self, cost: Nanos, action: Action, *args: object) -> None:
        """Do something on the CPU: now if it is idle and that costs nothing, otherwise in turn."""
        if not self.up:
            return
        if cost or self.queue or self.free_at > self._scheduler.now:
            self.enqueue(cost, action, args)
        else:
            self.free_at = self._scheduler.now
            action(*args)

    def enqueue(self, cost: Nanos, action: Action, args: tuple[Any, ...]) -> None:
        """Let work wait for the CPU. Its cost counts from when the CPU is free for it."""
        if not self.up:
            return
        if len(self.queue) >= self.cpu.queue_max:
            self.overflowed += 1
            return
        self.queue.append((cost, action, args))
        if not self.waking:
            self.waking = True
            now = self._scheduler.now
            self._scheduler.at(max(self.free_at, now - cost) + cost, self._wake)

    def _wake(self) -> None:
        self.waking = False
        if not self.up or not self.queue:
            return
        now = self._scheduler.now
        cost, action, args = self.queue[0]
        if self.free_at + cost <= now:
            self.queue.popleft()
            self.busy_ns += cost
            self.free_at = now
            action(*args)
        if self.queue and not self.waking:
            self.waking = True
            self._scheduler.at(max(now, self.free_at + self.queue[0][0]), self._wake)

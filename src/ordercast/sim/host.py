"""A machine: its CPU, through which every packet in and out must pass, and its processes."""

from collections import deque
from typing import Any

import msgspec

from ordercast.core import HostId, Nanos
from ordercast.sim.scheduler import Action


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

    __slots__ = ("busy_ns", "cpu", "free_at", "id", "overflowed", "queue", "up", "waking")

    def __init__(self, host: HostId, cpu: Cpu) -> None:
        self.id = host
        self.cpu = cpu
        self.up = True
        self.free_at: Nanos = 0
        self.queue: deque[tuple[Nanos, Action, tuple[Any, ...]]] = deque()
        self.waking = False
        self.busy_ns: Nanos = 0
        self.overflowed = 0

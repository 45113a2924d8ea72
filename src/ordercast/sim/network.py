"""The network between hosts: a packet takes time, and may be lost, duplicated or overtaken."""

from abc import ABC, abstractmethod
from heapq import heappush
from random import Random
from typing import Any

import msgspec

from ordercast.core import MICROSECOND, HostId, Nanos
from ordercast.scenario.conditions import Conditions
from ordercast.sim.latency import Latency, Steady
from ordercast.sim.scheduler import Action, Scheduler


class Packet(msgspec.Struct, frozen=True):
    """A packet between two hosts. `action(*args)` is called when the target has served it."""

    link: tuple[HostId, HostId]
    """From, to."""
    size: int
    """In bytes, where the network needs it."""
    service_ns: Nanos
    """CPU time at its arrival."""
    action: Action
    args: tuple[Any, ...]


class Network(ABC):
    """Carries packets under the current conditions and partitions."""

    needs_size = False
    """Whether the size of packets matters; if not, drivers do not compute it."""

    def __init__(self, scheduler: Scheduler, rng: Random, conditions: Conditions) -> None:
        self.scheduler = scheduler
        self.rng = rng
        self.blocked: set[tuple[HostId, HostId]] = set()
        self.slowed: dict[tuple[HostId, HostId], Nanos] = {}
        """How much longer packets take on links that are slow."""
        self.lost = 0
        self.set_conditions(conditions)

    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""
        self.conditions = conditions
        self.calm = conditions.calm

    @abstractmethod
    def steady(self) -> None:
        """From now on, packets on the same way do not overtake each other."""

    def transmit(self, departure: Nanos, packet: Packet) -> bool:
        """Carry a packet that leaves at this time; False if it is already known to be lost."""
        if self.blocked and packet.link in self.blocked:
            self.lost += 1
            return False
        if self.slowed:
            departure += self.slowed.get(packet.link, 0)
        if self.calm:
            return self.carry(departure, packet)
        rng, conditions = self.rng, self.conditions
        if conditions.loss and rng.random() < conditions.loss:
            self.lost += 1
            return False
        if conditions.duplication and rng.random() < conditions.duplication:
            self.carry(departure + self._overtaken(), packet)
        return self.carry(departure + self._overtaken(), packet)

    def _overtaken(self) -> Nanos:
        if self.conditions.reordering and self.rng.random() < self.conditions.reordering:
            return int(self.rng.random() * self.conditions.reorder_us * MICROSECOND)
        return 0

    @abstractmethod
    def carry(self, departure: Nanos, packet: Packet) -> bool:
        """Carry one copy to the target; False if there is no path."""


class LatencyNetwork(Network):
    """Each packet gets its own delay, whatever else is under way."""

    def __init__(self, scheduler: Scheduler, rng: Random, conditions: Conditions, latency: Latency) -> None:
        super().__init__(scheduler, rng, conditions)
        self._draw = latency.draw
        self._heap, self._ties = scheduler.heap, scheduler.ties

    def steady(self) -> None:
        """From now on, each packet takes as long as the first one on the same way."""
        self._draw = Steady(self._draw).draw

    def carry(self, departure: Nanos, packet: Packet) -> bool:
        """Draw the delay and arrive after it."""
        source, target = packet.link
        delay = self._draw(source, target, self.rng)
        if delay < 0:
            self.lost += 1
            return False
        # Nearly every packet comes this way: pushing it here saves a call.
        due = departure + delay + packet.service_ns
        heappush(self._heap, (due, next(self._ties), packet.action, packet.args))
        return True

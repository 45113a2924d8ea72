"""Operations for a service, drawn at random: for simulations, benchmarks and trials."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ordercast.core import Service, ServiceType


class DrawnOperation(NamedTuple):
    """One operation as bytes."""

    payload: bytes
    read: bool


Generate = Callable[[Random, int, bool, int], tuple[str, tuple[object, ...]]]
"""Draws an operation: from a stream of random numbers, its own number, whether it reads, and how many bytes a
value should have. It returns the name of the operation and its arguments."""


class ServiceWorkload(NamedTuple):
    """A class of services, and how its operations are drawn."""

    service: type[Service]
    generate: Generate


class Operations:
    """Draws the operations of a workload."""

    def __init__(self, workload: ServiceWorkload, reads: float, size: int) -> None:
        """`reads` is the share of reads, `size` the bytes of a value."""
        self._type = ServiceType.of(workload.service)
        self._generate = workload.generate
        self._reads = reads
        self._size = size

    def draw_call(self, rng: Random, number: int) -> tuple[str, tuple[object, ...]]:
        """The name of an operation, and its arguments."""
        return self._generate(rng, number, rng.random() < self._reads, self._size)

    def draw(self, rng: Random, number: int) -> DrawnOperation:
        """An operation."""
        name, arguments = self.draw_call(rng, number)
        kind = self._type.find(name)
        return DrawnOperation(kind.pack(arguments, {}), kind.reads)

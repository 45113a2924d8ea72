"""What takes part in the comparison of services, and what is measured of it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

VALUE_BYTES = 64
REPLICAS = 3


class MeasureError(Exception):
    """A measurement that did not come about."""


class Figures(NamedTuple):
    """What one measurement gave."""

    operations_per_s: float
    p50_us: float
    p99_us: float
    violations: int


class Contender(ABC):
    """A replicated store."""

    name: str

    def missing(self) -> str:
        """What is not installed here, and how to get it; empty if nothing is."""
        return ""

    @abstractmethod
    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Let so many tasks write for so long, in a folder of its own; `MeasureError` if that fails."""

"""What takes part in the comparison of transactions, and what is measured of it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

from benchmarks.transactions.store import Drawn


class Figures(NamedTuple):
    """What one measurement gave."""

    transactions_per_s: float
    p50_us: float
    p99_us: float
    aborted: int
    """Attempts that a task had to repeat."""
    violations: int


class Session(ABC):
    """How one task reaches the store."""

    @abstractmethod
    async def run(self, drawn: Drawn) -> int:
        """Run a transaction until it is committed; how often it was aborted before."""

    @abstractmethod
    async def total(self, keys: list[str]) -> int:
        """The sum of the amounts of some keys."""

    def close(self) -> None:  # noqa: B027  (optional hook)
        """Let go."""


class Contender(ABC):
    """A store with transactions."""

    name: str

    def missing(self) -> str:
        """What is not installed here, and how to get it; empty if nothing is."""
        return ""

    @abstractmethod
    def measure(self, workload: str, tasks: int, seconds: float, folder: Path) -> Figures:
        """Let so many tasks run transactions for so long, in a folder of its own; `MeasureError` if that
        fails."""

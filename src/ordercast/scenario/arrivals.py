"""When a source submits: the times between one submission and the next."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from random import Random

from ordercast.core import SECOND, Nanos
from ordercast.scenario.arrival_file import read_arrivals
from ordercast.scenario.spec import Scenario
from ordercast.toml_file import about


class Arrivals(ABC):
    """The time between one submission of a source and the next."""

    @abstractmethod
    def gap(self, rng: Random) -> Nanos | None:
        """The next gap, or None when there is no more to come."""


class QuasiPeriodic(Arrivals):
    """A narrow normal distribution around an interval (hybrid paper, section 3)."""

    def __init__(self, interval_ns: Nanos, jitter: float = 0.01) -> None:
        self._interval_ns = interval_ns
        self._std = interval_ns * jitter

    def gap(self, rng: Random) -> Nanos:
        """About the interval."""
        gap = int(rng.gauss(self._interval_ns, self._std))
        return gap if gap > 0 else 0


class Poisson(Arrivals):
    """Independent arrivals: exponential gaps with a mean."""

    def __init__(self, interval_ns: Nanos) -> None:
        self._rate = 1 / interval_ns

    def gap(self, rng: Random) -> Nanos:
        """An exponential gap."""
        return round(rng.expovariate(self._rate))


class Recorded(Arrivals):
    """Arrivals that were observed somewhere, once through."""

    def __init__(self, times_ns: Sequence[Nanos]) -> None:
        ordered = sorted(times_ns)
        self._gaps = [now - before for before, now in zip([0, *ordered], ordered, strict=False)]
        self._next = 0

    def gap(self, rng: Random) -> Nanos | None:
        """The gap as it was recorded."""
        if self._next == len(self._gaps):
            return None
        self._next += 1
        return self._gaps[self._next - 1]


def arrivals_of(scenario: Scenario, senders: int) -> list[Arrivals]:
    """The arrivals at each of so many open-loop senders."""
    spec = scenario.workload
    interval = round(SECOND / spec.rate_per_s)
    if spec.kind == "periodic":
        return [QuasiPeriodic(interval, spec.jitter) for _ in range(senders)]
    if spec.kind == "poisson":
        return [Poisson(max(1, interval)) for _ in range(senders)]
    with about("workload.file"):
        times = read_arrivals(Path(spec.file))
    # Dealt out in turn, so that all senders together follow the recording.
    return [Recorded(times[index::senders]) for index in range(senders)]

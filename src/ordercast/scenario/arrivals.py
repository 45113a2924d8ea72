"""Arrivals: the times between one submission of a sender and the next."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from random import Random

from ordercast.core import MILLISECOND, SECOND, Nanos
from ordercast.scenario.arrival_file import read_arrivals
from ordercast.scenario.spec import Scenario, ScenarioError, WorkloadSpec
from ordercast.toml_file import about


class Arrivals(ABC):
    """The time between one submission of a source and the next."""

    @abstractmethod
    def gap(self, rng: Random) -> Nanos | None:
        """The next gap, or None if there are no more arrivals."""


class QuasiPeriodic(Arrivals):
    """A narrow normal distribution around an interval (hybrid paper, section 3)."""

    def __init__(self, interval_ns: Nanos, jitter: float = 0.01) -> None:
        self._interval_ns = interval_ns
        self._std = interval_ns * jitter

    def gap(self, rng: Random) -> Nanos:
        """A gap close to the interval."""
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
    """Recorded arrivals, played once."""

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


class Phased(Arrivals):
    """Arrivals whose rate changes with time.

    The distance to the next arrival is drawn in intervals, one on average, and shrinks at the current rate.
    So a new rate takes effect at once, and a source that was silent goes on where it stopped.
    """

    def __init__(self, draw: Callable[[Random], float], rates: Sequence[tuple[Nanos, float]]) -> None:
        self._draw = draw
        self._rates = [rate for _, rate in rates]
        self._ends = [*(float(start) for start, _ in rates[1:]), inf]
        self._phase = 0
        self._now = 0.0
        """Not rounded, so that high rates stay exact."""

    def gap(self, rng: Random) -> Nanos | None:
        """A gap at the rates that apply until then; None if the rate stays 0 for ever."""
        before, left = round(self._now), self._draw(rng)
        while True:
            rate, end = self._rates[self._phase], self._ends[self._phase]
            due = self._now + left * SECOND / rate if rate else inf
            if due < inf and due <= end:
                self._now = due
                return round(due) - before
            if end == inf:
                return None
            left = max(0.0, left - (end - self._now) * rate / SECOND)
            self._now = end
            self._phase += 1


def arrivals_of(scenario: Scenario, senders: int) -> list[Arrivals]:
    """The arrivals of each open-loop sender; `senders` is their number."""
    spec = scenario.workload
    if spec.phase:
        return [Phased(_intervals(spec), rates) for rates in _rates(spec, senders)]
    interval = round(SECOND / spec.rate_per_s)
    if spec.kind == "periodic":
        return [QuasiPeriodic(interval, spec.jitter) for _ in range(senders)]
    if spec.kind == "poisson":
        return [Poisson(max(1, interval)) for _ in range(senders)]
    with about("workload.file"):
        times = read_arrivals(Path(spec.file))
    # Dealt out in turn, so that all senders together follow the recording.
    return [Recorded(times[index::senders]) for index in range(senders)]


def _intervals(spec: WorkloadSpec) -> Callable[[Random], float]:
    """A function that draws the distance to the next arrival, in intervals."""
    if spec.kind == "poisson":
        return lambda rng: rng.expovariate(1.0)
    return lambda rng: max(0.0, rng.gauss(1.0, spec.jitter))


def _rates(spec: WorkloadSpec, senders: int) -> list[list[tuple[Nanos, float]]]:
    """For each sender, its rates with the times from which they apply."""
    rates: list[list[tuple[Nanos, float]]] = [[(0, spec.rate_per_s)] for _ in range(senders)]
    for index, phase in enumerate(spec.phase):
        rate = spec.rate_per_s if phase.rate_per_s is None else phase.rate_per_s
        for place in range(senders) if phase.senders is None else phase.senders:
            if place >= senders:
                unknown = f"there is no sender {place}; the {senders} senders are numbered from 0"
                raise ScenarioError(f"workload.phase[{index}].senders", unknown)
            rates[place].append((round(phase.at_ms * MILLISECOND), rate))
    return rates

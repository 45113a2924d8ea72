"""How a run settles, for all drivers.

A run goes on until all expected deliveries have come. If nothing comes for the scenario's settling time, the
network's loss, duplication and reordering are switched off, if there are any. If again nothing comes for that
time, the missing deliveries count as missing for good.
"""

from abc import ABC, abstractmethod

from ordercast.core import SECOND, Nanos
from ordercast.scenario.conditions import Conditions

TIME_MAX: Nanos = 24 * 3600 * SECOND


class Settling:
    """Watches the progress of a run, and says when to stop waiting. Time is an argument."""

    def __init__(self, now: Nanos, patience: Nanos, limit: Nanos = TIME_MAX) -> None:
        self._patience = patience
        self._since = now
        self._end = now + limit
        self._progress: object = None

    def see(self, now: Nanos, progress: object) -> None:
        """Take note of numbers that change whenever the run makes progress."""
        if progress != self._progress:
            self._progress, self._since = progress, now

    @property
    def quiet_at(self) -> Nanos:
        """When the patience ends, if nothing changes until then."""
        return self._since + self._patience

    def quiet(self, now: Nanos) -> bool:
        """Whether nothing has changed for as long as the patience lasts."""
        return now >= self.quiet_at

    def over(self, now: Nanos) -> bool:
        """Whether the time limit has passed, although something may still change."""
        return now > self._end


class SettlingRun(ABC):
    """A run whose workload has been submitted, as its driver sees it."""

    STEP: Nanos
    """How often to look."""
    LINGER: Nanos
    """How long to go on when everything has come, so that a stray duplicate shows."""
    LIMIT: Nanos = TIME_MAX

    @property
    @abstractmethod
    def now(self) -> Nanos:
        """The time of the driver."""

    @property
    @abstractmethod
    def arrived(self) -> int:
        """The number of deliveries and announced drops at all receivers together."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether all expected deliveries are known to have come."""

    @property
    @abstractmethod
    def calm(self) -> bool:
        """Whether the network loses, duplicates and delays no packet."""

    @abstractmethod
    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""

    @property
    def stuck(self) -> bool:
        """Whether nothing can happen any more."""
        return False

    @abstractmethod
    def go_on(self, until: Nanos) -> None:
        """Let the run go on up to a time."""

    def settle(self, patience: Nanos) -> bool:
        """Wait until the run settles, with a better network if needed; return whether that helped."""
        if self._wait(patience) or self.calm:
            return False
        before = self.arrived
        self.set_conditions(Conditions())
        self._wait(patience)
        return self.arrived > before

    def _wait(self, patience: Nanos) -> bool:
        """Wait until everything expected has come, or nothing comes for so long; return whether all came."""
        settling = Settling(self.now, patience, self.LIMIT)
        while not self.complete:
            now = self.now
            settling.see(now, self.arrived)
            if settling.quiet(now) or settling.over(now) or self.stuck:
                return False
            self.go_on(min(settling.quiet_at, now + self.STEP))
        self.go_on(self.now + self.LINGER)
        return True

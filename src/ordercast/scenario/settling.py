"""How a run comes to rest, whatever drives it.

A run goes on until everything expected has come. If nothing more comes for the scenario's settling time, the
network's loss, duplication and reordering stop, if there are any; if then again nothing comes for so long,
what is missing is taken as missing for good.
"""

from abc import ABC, abstractmethod

from ordercast.core import SECOND, Nanos
from ordercast.scenario.conditions import Conditions

TIME_MAX: Nanos = 24 * 3600 * SECOND


class Settling:
    """Watches how a run gets on, and says when it is time to stop waiting. Time is an argument."""

    def __init__(self, now: Nanos, patience: Nanos, limit: Nanos = TIME_MAX) -> None:
        self._patience = patience
        self._since = now
        self._end = now + limit
        self._progress: object = None

    def see(self, now: Nanos, progress: object) -> None:
        """Take note of figures that change whenever the run gets on."""
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
        """Whether all of it has taken too long, though something may still change."""
        return now > self._end


class SettlingRun(ABC):
    """A run that all has been submitted to, as its driver sees it."""

    STEP: Nanos
    """How often to look."""
    LINGER: Nanos
    """How long to go on when all has come, so that a stray duplicate shows."""
    LIMIT: Nanos = TIME_MAX

    @property
    @abstractmethod
    def now(self) -> Nanos:
        """The time of the driver."""

    @property
    @abstractmethod
    def arrived(self) -> int:
        """How much has been delivered or announced as dropped, at all receivers together."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether it is known that everything expected has come."""

    @property
    @abstractmethod
    def calm(self) -> bool:
        """Whether the network loses, doubles and delays nothing."""

    @abstractmethod
    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""

    @property
    def stuck(self) -> bool:
        """Whether nothing can happen any more, however long one waits."""
        return False

    @abstractmethod
    def go_on(self, until: Nanos) -> None:
        """Let the run go on up to a time."""

    def settle(self, patience: Nanos) -> bool:
        """Come to rest, with a better network if need be; whether something came only with that."""
        if self._wait(patience) or self.calm:
            return False
        before = self.arrived
        self.set_conditions(Conditions())
        self._wait(patience)
        return self.arrived > before

    def _wait(self, patience: Nanos) -> bool:
        """Go on until everything expected has come, or nothing has for so long; whether all has."""
        settling = Settling(self.now, patience, self.LIMIT)
        while not self.complete:
            now = self.now
            settling.see(now, self.arrived)
            if settling.quiet(now) or settling.over(now) or self.stuck:
                return False
            self.go_on(min(settling.quiet_at, now + self.STEP))
        self.go_on(self.now + self.LINGER)
        return True

"""When a peer has its rounds: apart from others, or together with them.

- *Apart*, the default: the first round is at a random time, and each further one a round's length after the
  one before, a little more or less. Deviations add up, so peers are never in step.
- *Together*, as in the simulator of EpTO's authors: rounds are at the multiples of a round's length on the
  peer's clock, each a little early or late. Deviations do not add up, so peers whose clocks agree stay in
  step.

Both draw the deviations of a round by its number. So a peer that sleeps through rounds has the later ones at
the same times as a peer that does not sleep.
"""

from abc import ABC, abstractmethod

from ordercast.components.sampling import below, draw, stream
from ordercast.core import Nanos

PERIODS = 2
"""The stream that says how long each round lasts."""
SLEPT_MAX = 64
"""A peer that sleeps through more rounds than this does not draw the length of each."""


class Rounds(ABC):
    """The rounds of one peer."""

    def __init__(self, seed: int, round_ns: Nanos, jitter_ns: Nanos, first: Nanos) -> None:
        self._seed = stream(seed, PERIODS)
        self._round_ns = round_ns
        self._jitter_ns = jitter_ns
        self.number = 0
        """The last round that the peer ran or slept through; the first is 1."""
        self.due = first
        """When the next round is."""

    @abstractmethod
    def run(self, now: Nanos) -> None:
        """The next round is now: count it, and say when the one after it is."""

    @abstractmethod
    def sleep(self, now: Nanos) -> None:
        """Count the rounds that were due before now and were not run."""

    def _deviation(self, number: int) -> Nanos:
        """By how much the wait after a round, or the time of the next one, is longer or later."""
        return below(draw(self._seed, number, 1), 2 * self._jitter_ns + 1) - self._jitter_ns


class RoundsApart(Rounds):
    """Rounds that begin at a random time."""

    def __init__(self, seed: int, round_ns: Nanos, jitter_ns: Nanos, now: Nanos) -> None:
        phase = below(draw(stream(seed, PERIODS), 0, 0), round_ns)
        super().__init__(seed, round_ns, jitter_ns, now + phase)

    def run(self, now: Nanos) -> None:
        """The next round is a round's length from now."""
        self.number += 1
        self.due = now + self._round_ns + self._deviation(self.number)

    def sleep(self, now: Nanos) -> None:
        """One by one, unless there are very many."""
        slept = 0
        while self.due < now and slept < SLEPT_MAX:
            slept += 1
            self.number += 1
            self.due += self._round_ns + self._deviation(self.number)
        if self.due < now:
            more = -((self.due - now) // self._round_ns)
            self.number += more
            self.due += more * self._round_ns


class RoundsTogether(Rounds):
    """Rounds at the multiples of their length on the peer's clock; the first is exactly at such a time."""

    def __init__(self, seed: int, round_ns: Nanos, jitter_ns: Nanos, now: Nanos) -> None:
        self._begin = -(-now // round_ns) * round_ns
        self._place = 0
        """How many multiples after the first round the next one is."""
        super().__init__(seed, round_ns, jitter_ns, self._begin)

    def run(self, now: Nanos) -> None:
        """The next round is at the next multiple of what the clock says, wherever the clock jumped to."""
        self.number += 1
        earliest = -(-(now - self._begin) // self._round_ns)
        self._move(min(max(self._place + 1, earliest), earliest + 1))

    def sleep(self, now: Nanos) -> None:
        """Go to the first round that is not before now; it may be a little before or after its multiple."""
        before = self._place
        if self.due < now:
            self._move(max(before + 1, (now - self._begin) // self._round_ns))
        while self.due < now:
            self._move(self._place + 1)
        self.number += self._place - before

    def _move(self, place: int) -> None:
        self._place = place
        self.due = self._begin + place * self._round_ns + self._deviation(place)

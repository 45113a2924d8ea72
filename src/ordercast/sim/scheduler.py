"""Virtual time: a heap of actions ordered by (time, tie), so that a run replays exactly."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ordercast.core import LocalError, Nanos
from ordercast.sim.collector import collector_paused

INSTANT_MAX = 3_000_000
"""Number of events at one instant at which a run counts as stuck (a timer of length 0 re-arms itself)."""

Action = Callable[..., None]


class Scheduler:
    """Actions in order of time; actions of one instant run in the order in which they were scheduled."""

    __slots__ = ("heap", "now", "ties")

    def __init__(self) -> None:
        self.heap: list[tuple[Nanos, int, Action, tuple[Any, ...]]] = []
        """Public for the network's fast path, which pushes without a call."""
        self.ties = count()
        self.now: Nanos = 0

    def at(self, time: Nanos, action: Action, *args: object) -> None:
        """Call `action(*args)` at a time that has not passed yet."""
        self.push(time, action, args)

    def push(self, time: Nanos, action: Action, args: tuple[Any, ...]) -> None:
        """The same as `at`, with the arguments as a tuple."""
        if time < self.now:
            raise LocalError(f"cannot schedule for {time} ns: it is already {self.now} ns")
        heappush(self.heap, (time, next(self.ties), action, args))

    def after(self, delay: Nanos, action: Action, *args: object) -> None:
        """Call `action(*args)` after a delay."""
        self.push(self.now + delay, action, args)

    def run(self, until: Nanos) -> None:
        """Run every action up to and including a time, then set the clock to that time."""
        heap = self.heap
        with collector_paused():
            while heap and heap[0][0] <= until:
                before = self.now
                for _ in range(INSTANT_MAX):
                    if not heap or heap[0][0] > until:
                        break
                    self.now, _, action, args = heappop(heap)
                    action(*args)
                else:
                    if self.now == before:
                        raise LocalError(f"{INSTANT_MAX} events at {before} ns: time does not advance")
        self.now = max(self.now, until)

    @property
    def next_ns(self) -> Nanos:
        """When the next action is due; the present time if there is none."""
        return self.heap[0][0] if self.heap else self.now

    @property
    def pending(self) -> int:
        """The number of actions that wait."""
        return len(self.heap)

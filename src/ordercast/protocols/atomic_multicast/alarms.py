"""Many deadlines on one timer: nothing is scanned, and a deadline that no longer matters costs a pop."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from ordercast.core import Env, Nanos

K = TypeVar("K", int, tuple[int, int, int])


class Alarms(Generic[K]):
    """Deadlines of things that have keys. The timer goes off at most once in `grain_ns`."""

    __slots__ = ("_armed", "_env", "_grain_ns", "_heap", "_timer")

    def __init__(self, env: Env, timer: str, grain_ns: Nanos) -> None:
        self._env = env
        self._timer = timer
        self._grain_ns = max(1, grain_ns)
        self._heap: list[tuple[Nanos, K]] = []
        self._armed: Nanos | None = None

    def add(self, after: Nanos, key: K) -> None:
        """Call for attention to `key` after a while."""
        due = self._env.now + after
        heappush(self._heap, (due, key))
        if self._armed is None or due + self._grain_ns < self._armed:
            self._arm(due)

    def due(self, limit: int) -> Iterator[K]:
        """The keys whose time has come, at most `limit` of them; call it when the timer goes off."""
        keys: list[K] = []
        now, heap = self._env.now, self._heap
        while heap and heap[0][0] <= now and len(keys) < limit:
            keys.append(heappop(heap)[1])
        self._armed = None
        if heap:
            self._arm(heap[0][0])
        return iter(keys)

    def _arm(self, due: Nanos) -> None:
        wait = max(due - self._env.now, self._grain_ns)
        self._armed = self._env.now + wait
        self._env.set_timer(self._timer, wait)

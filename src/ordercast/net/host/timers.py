"""The timers of all processes of a host, behind one timer of the event loop.

Protocols re-arm timers far more often than timers go off. So arming changes a dictionary entry, and the heap
gets a new entry only if an earlier one is needed; an entry that comes up too early is put back.
"""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

from ordercast.core import SECOND, Nanos, NodeId

TimerName = tuple[NodeId, str]
_NEVER: Nanos = 1 << 62


class Timers:
    """Named timers, on the machine's monotonic clock."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        fire: Callable[[NodeId, str], None],
        done: Callable[[], None],
        clock: Callable[[], Nanos] = time.monotonic_ns,
    ) -> None:
        self._loop = loop
        self._fire = fire
        self._done = done
        self._clock = clock
        self._due: dict[TimerName, Nanos] = {}
        self._listed: dict[TimerName, Nanos] = {}
        """The time of each timer's entry in the heap."""
        self._heap: list[tuple[Nanos, TimerName]] = []
        self._wake_at: Nanos = _NEVER
        self._handle: TimerHandle | None = None

    def set(self, node: NodeId, name: str, after: Nanos) -> None:
        """Set a timer to go off after this delay; replaces an earlier setting."""
        key = (node, name)
        due = self._due[key] = self._clock() + after
        if due < self._listed.get(key, _NEVER):
            self._listed[key] = due
            heappush(self._heap, (due, key))
            if due < self._wake_at:
                self._wake(due)

    def cancel(self, node: NodeId, name: str) -> None:
        """Forget a timer."""
        self._due.pop((node, name), None)

    def cancel_all(self) -> None:
        """Forget all timers."""
        self._due.clear()
        self._listed.clear()
        self._heap.clear()
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._wake_at = None, _NEVER

    def run(self) -> None:
        """Run the timers that are due."""
        heap, now, fired = self._heap, self._clock(), False
        while heap and heap[0][0] <= now:
            listed, key = heap[0]
            due = self._due.get(key)
            if self._listed.get(key) != listed or due is None:
                heappop(heap)
                if self._listed.get(key) == listed:
                    del self._listed[key]
            elif due > now:
                self._listed[key] = due
                heapreplace(heap, (due, key))
            else:
                heappop(heap)
                del self._listed[key], self._due[key]
                self._fire(*key)
                fired = True
        if fired:
            self._done()

    def _wake(self, at: Nanos) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._wake_at = at
        self._handle = self._loop.call_later(max(0, at - self._clock()) / SECOND, self._on_wake)

    def _on_wake(self) -> None:
        self._handle, self._wake_at = None, _NEVER
        self.run()
        if self._heap and self._heap[0][0] < self._wake_at:
            self._wake(self._heap[0][0])

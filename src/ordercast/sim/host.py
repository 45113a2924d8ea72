"""A simulated machine: a CPU that every incoming and outgoing packet must pass."""

from collections import deque
from typing import Any

from ordercast.core import HostId, Nanos
from ordercast.scenario.cpu import Cpu
from ordercast.sim.disk import SimDisk
from ordercast.sim.scheduler import Action, Scheduler


class Host:
    """Serves one piece of work at a time, first come, first served."""

    __slots__ = (
        "_scheduler", "_started_at", "_waking", "busy_ns", "cpu", "disk", "free_at", "id", "lives",
        "overflowed", "paused_ns", "queue", "serving", "up",
    )  # fmt: skip

    def __init__(self, host: HostId, cpu: Cpu, scheduler: Scheduler) -> None:
        self.id = host
        self._scheduler = scheduler
        self.cpu = cpu
        self.up = True
        self.free_at: Nanos = 0
        self.queue: deque[tuple[Nanos, Nanos, Action, tuple[Any, ...]]] = deque()
        self.busy_ns: Nanos = 0
        self.overflowed = 0
        self.serving = False
        self._waking = False
        self._started_at: Nanos = 0
        self.lives = 0
        """How often it has stopped."""
        self.paused_ns: Nanos = 0
        """How long it has been paused in total."""
        self.disk: SimDisk | None = None
        """Its disk, if something has happened to it."""

    def touched_disk(self) -> SimDisk:
        """Its disk, to which something happens."""
        if self.disk is None:
            self.disk = SimDisk(self.id)
        return self.disk

    def charge(self, cost: Nanos) -> Nanos:
        """Let the current work take longer; return when it will be over."""
        self.busy_ns += cost
        now = self._scheduler.now
        self.free_at = cost + (now if self.free_at < now else self.free_at)
        return self.free_at

    def work(self, cost: Nanos, action: Action, *args: object) -> None:
        """Do something on the CPU: now if the CPU is idle and the work costs nothing, otherwise in turn.

        Work that a handler asks for is done after the handler, never within it.
        """
        now = self._scheduler.now
        if cost or self.queue or self.serving or self.free_at > now:
            self._enqueue(now, cost, action, args)
        elif self.up:
            self.serve(0, action, args)

    def arrive(self, action: Action, *args: object) -> None:
        """Take a packet. Its service time is already over if the CPU was idle when it came."""
        cost, now = self.cpu.receive_ns, self._scheduler.now
        since = now - cost
        if self.free_at <= since and not self.queue:
            if self.up:
                self.serve(cost, action, args)
        elif since < self._started_at:  # it came while the host was down
            return
        elif len(self.queue) < self.cpu.queue_max:
            self._enqueue(since, cost, action, args)
        else:
            self.overflowed += 1

    def serve(self, cost: Nanos, action: Action, args: tuple[Any, ...]) -> None:
        """Do at once an action whose service time was `cost`."""
        now, before = self._scheduler.now, self.free_at
        self.busy_ns += cost
        if before < now:
            self.free_at = now
        self.serving = True
        action(*args)
        self.serving = False
        if not cost and self.free_at == now:
            # The action took no time, so a packet that is being served loses none.
            self.free_at = before

    def stop(self) -> None:
        """Stop the host, and forget all work."""
        self.up = self.serving = self._waking = False
        self.queue.clear()
        self.lives += 1

    def pause(self, duration: Nanos) -> None:
        """Do nothing for a while."""
        self.free_at = max(self.free_at, self._scheduler.now) + duration
        self.paused_ns += duration

    def start(self) -> None:
        """Start the host again, idle."""
        self.up = True
        self.free_at = self._started_at = self._scheduler.now

    def _enqueue(self, since: Nanos, cost: Nanos, action: Action, args: tuple[Any, ...]) -> None:
        """Let work wait for the CPU. Its service begins when it came, or when the CPU is free for it."""
        if not self.up:
            return
        self.queue.append((since, cost, action, args))
        if not self._waking:
            self._wake_at(max(self.free_at, since) + cost)

    def _wake_at(self, time: Nanos) -> None:
        self._waking = True
        self._scheduler.at(max(time, self._scheduler.now), self._wake, self.lives)

    def _wake(self, life: int) -> None:
        if life != self.lives:
            return
        self._waking = False
        since, cost, action, args = self.queue[0]
        if max(self.free_at, since) + cost <= self._scheduler.now:
            self.queue.popleft()
            self.serve(cost, action, args)
        if self.queue and not self._waking:
            since, cost, _, _ = self.queue[0]
            self._wake_at(max(self.free_at, since) + cost)

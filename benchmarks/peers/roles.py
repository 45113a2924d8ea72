"""What the publisher, the receivers and the clients do, whichever contender carries their messages.

Nothing here talks to a contender: its module asks a role what to send and tells it what arrived. Roles in
different processes see each other through `Shared`, plain memory that one process writes and others read.
"""

import time
from array import array
from collections.abc import Iterator
from multiprocessing.context import SpawnContext
from typing import Any

import numpy as np

from benchmarks.peers.account import Numbers

NUMBER_BYTES = 8
WARM_UP_NS = 500_000_000
QUIET_NS = 2_000_000_000
"""A receiver that heard nothing for so long after the last message was sent gives up on the rest."""

PAUSE_S = 0.0002
"""How long a publisher with a full window waits before it looks again."""


class Shared:
    """What processes of one measurement know of each other; each field has one writer."""

    def __init__(self, context: SpawnContext, receivers: int) -> None:
        self.ready: Any = context.RawArray("b", receivers)
        self.received: Any = context.RawArray("q", receivers)
        self.sent: Any = context.RawValue("q", -1)  # the number of all messages, once it is known

    @property
    def all_ready(self) -> bool:
        """Whether every receiver would get the next message."""
        return all(self.ready)

    @property
    def all_received(self) -> bool:
        """Whether every receiver has as many messages as were sent."""
        return bool(0 <= self.sent.value <= min(self.received))


class Recorder:
    """One receiver: keeps the order of what it gets, and when it had how much."""

    def __init__(self, index: int, shared: Shared) -> None:
        self.index = index
        self._shared = shared
        self._order = bytearray()
        self._marks = array("q")
        self._count = 0
        self._idle_since_ns = 0

    def ready(self) -> None:
        """Say that from now on every message will be received."""
        self._shared.ready[self.index] = 1

    def heard(self, payloads: list[bytes]) -> None:
        """Keep what was delivered, in its order."""
        self._idle_since_ns = 0
        self._order += b"".join([payload[:NUMBER_BYTES] for payload in payloads])
        self._count += len(payloads)
        self._marks.append(time.monotonic_ns())
        self._marks.append(self._count)
        self._shared.received[self.index] = self._count

    @property
    def finished(self) -> bool:
        """Whether everything arrived, or nothing more will."""
        sent = self._shared.sent.value
        if sent < 0 or self._count >= sent:
            return bool(sent >= 0)
        # Idle since the first question without a delivery in between, not since the last delivery: a process
        # that was not given the processor for long must look once more before it gives up.
        now_ns = time.monotonic_ns()
        self._idle_since_ns = self._idle_since_ns or now_ns
        return now_ns - self._idle_since_ns > QUIET_NS

    def result(self) -> dict[str, Numbers]:
        """The order and the marks."""
        return {
            "order": np.frombuffer(bytes(self._order), np.int64),
            "marks": np.array(self._marks, np.int64).reshape(-1, 2),
        }


class Source:
    """Whoever sends: numbers the messages and keeps the time of the measurement."""

    def __init__(self, shared: Shared, size: int, seconds: float) -> None:
        if size < NUMBER_BYTES:
            raise ValueError(f"a message has at least {NUMBER_BYTES} bytes, for its number")
        self.shared = shared
        self._filler = bytes(size - NUMBER_BYTES)
        self._seconds = seconds
        self._sent = 0
        self.start_ns = self.end_ns = 0

    def begin(self) -> None:
        """The measurement begins now, after a warm-up."""
        self.start_ns = time.monotonic_ns() + WARM_UP_NS
        self.end_ns = self.start_ns + int(self._seconds * 1e9)

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic_ns() >= self.end_ns

    def finish(self) -> None:
        """Tell the receivers how many messages there were."""
        self.shared.sent.value = self._sent

    def make(self, count: int) -> list[bytes]:
        """The next messages."""
        first = self._sent
        self._sent += count
        filler = self._filler
        return [number.to_bytes(NUMBER_BYTES, "little") + filler for number in range(first, self._sent)]

    def result(self) -> dict[str, Numbers]:
        """When the measurement was, and how many messages were sent."""
        return {"times": np.array([self.start_ns, self.end_ns, self._sent], np.int64)}


class Flow(Source):
    """The publisher that keeps the pipe full, at most a window ahead of the slowest receiver."""

    def __init__(self, shared: Shared, size: int, seconds: float, window: int) -> None:
        super().__init__(shared, size, seconds)
        self._window = window

    def take(self, limit: int) -> list[bytes]:
        """The messages to send now; none while the window is full."""
        room = self._window - (self._sent - min(self.shared.received))
        # A full batch or nothing: crumbs would cost the contender its batching.
        return self.make(limit) if room >= limit else []


class Rounds(Source):
    """Closed-loop clients in one process that is a receiver too; one message of each is under way."""

    def __init__(self, shared: Shared, size: int, seconds: float, clients: int, recorder: Recorder) -> None:
        super().__init__(shared, size, seconds)
        self.count = clients
        self._rounds = array("q")  # pairs: when it ended, how long it took
        self.recorder = recorder

    def note_round(self, began_ns: int, ended_ns: int) -> None:
        """A message of a client was delivered."""
        self._rounds.append(ended_ns)
        self._rounds.append(ended_ns - began_ns)

    def result(self) -> dict[str, Numbers]:
        """The rounds, besides."""
        return super().result() | {"rounds": np.array(self._rounds, np.int64).reshape(-1, 2)}


class Clients(Rounds):
    """Clients batched by hand: messages that become due together are handed over together."""

    def __init__(self, shared: Shared, size: int, seconds: float, clients: int, recorder: Recorder) -> None:
        super().__init__(shared, size, seconds, clients, recorder)
        self._began: dict[bytes, int] = {}

    def first(self) -> list[bytes]:
        """Begin: the first message of every client."""
        self.begin()
        return self._begin_rounds(self.count)

    def heard(self, payloads: list[bytes]) -> list[bytes]:
        """End the rounds of these messages; returns the messages of the next rounds."""
        self.recorder.heard(payloads)
        now_ns = time.monotonic_ns()
        ended = 0
        for payload in payloads:
            began_ns = self._began.pop(payload[:NUMBER_BYTES], None)
            if began_ns is not None:
                self.note_round(began_ns, now_ns)
                ended += 1
        if now_ns < self.end_ns:
            return self._begin_rounds(ended)
        if not self._began:
            self.finish()
        return []

    @property
    def finished(self) -> bool:
        """Whether all rounds ended, or those that are left never will."""
        if self.over and time.monotonic_ns() > self.end_ns + QUIET_NS:
            self.finish()
        return self.shared.sent.value >= 0 and self.recorder.finished

    def _begin_rounds(self, count: int) -> list[bytes]:
        payloads = self.make(count)
        now_ns = time.monotonic_ns()
        self._began.update((payload[:NUMBER_BYTES], now_ns) for payload in payloads)
        return payloads


def pause() -> None:
    """Give the processor to others while the window is full."""
    time.sleep(PAUSE_S)


def wait_until_received(shared: Shared) -> Iterator[None]:
    """Yields again and again while receivers lag: a sender may itself hold what they still lack."""
    deadline_ns = time.monotonic_ns() + 2 * QUIET_NS
    while not shared.all_received and time.monotonic_ns() < deadline_ns:
        time.sleep(PAUSE_S)
        yield


def wait_until_ready(shared: Shared, seconds: float = 20.0) -> Iterator[None]:
    """Yields again and again until every receiver is ready; the caller can do its chores meanwhile."""
    deadline = time.monotonic() + seconds
    while not shared.all_ready:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the receivers were not ready after {seconds:.0f} s")
        time.sleep(0.005)
        yield

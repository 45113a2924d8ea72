"""The load on a store that is not ours: tasks that write, each on its own key, and look in the end."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from benchmarks.services.contender import VALUE_BYTES, Figures, MeasureError

WARM_UP_S = 1.0
PATIENCE_S = 60.0


class Connection(ABC):
    """How one task reaches the store."""

    @abstractmethod
    async def put(self, key: str, value: str) -> None:
        """Write a value; returns when the store has answered."""

    @abstractmethod
    async def get(self, key: str) -> str | None:
        """The value of a key."""

    def close(self) -> None:  # noqa: B027  (optional hook)
        """Let the connection go."""


Connect = Callable[[], Awaitable[Connection]]


async def drive(connect: Connect, tasks: int, seconds: float) -> Figures:
    """Let tasks write, and sum up."""
    writers = [Writer(f"key-{index}", await connect()) for index in range(tasks)]
    begin = time.monotonic()
    try:
        async with asyncio.timeout(WARM_UP_S + seconds + PATIENCE_S):
            await asyncio.gather(*(writer.work(begin + WARM_UP_S + seconds) for writer in writers))
            wrong = sum(await asyncio.gather(*(writer.check() for writer in writers)))
    except (OSError, TimeoutError, EOFError) as error:
        raise MeasureError(f"{type(error).__name__}: {error}") from error
    finally:
        for writer in writers:
            writer.connection.close()
    times = [pair for writer in writers for pair in writer.times]
    return Figures(*summed_up(times, begin, seconds), wrong)


def summed_up(
    times: Sequence[tuple[float, float]], begin: float, seconds: float
) -> tuple[float, float, float]:
    """Answers per second after the warm-up, and the median and the 99th percentile of how long they took, in
    microseconds; `times` has when each came, and how long it took."""
    found = np.array(times).reshape(-1, 2)
    within = found[found[:, 0] >= begin + WARM_UP_S][:, 1] * 1e6
    if not len(within):
        raise MeasureError("nothing was answered")
    p50, p99 = (round(float(value), 1) for value in np.percentile(within, [50, 99]))
    return round(len(within) / seconds, 1), p50, p99


class Writer:
    """A task with a key of its own."""

    def __init__(self, key: str, connection: Connection) -> None:
        self._key = key
        self.connection = connection
        self._last = ""
        self.times: list[tuple[float, float]] = []
        """When each answer came, and how long it took."""

    async def work(self, end: float) -> None:
        """Write until the end."""
        number, put, key = 0, self.connection.put, self._key
        while (start := time.monotonic()) < end:
            number += 1
            self._last = f"{number:x}".ljust(VALUE_BYTES, ".")
            await put(key, self._last)
            now = time.monotonic()
            self.times.append((now, now - start))

    async def check(self) -> int:
        """1 if the key does not have the last value."""
        return int(await self.connection.get(self._key) != self._last)

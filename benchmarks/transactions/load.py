"""Tasks that run transactions, each as soon as its last one has ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.services import load
from benchmarks.services.contender import MeasureError
from benchmarks.transactions.contender import Figures, Session
from benchmarks.transactions.store import ALL_PAIRS, KEYS, Draws
from ordercast.core import OrdercastError
from ordercast.services.sharded import START

Open = Callable[[], Awaitable[Session]]


async def drive(open_session: Open, workload: str, tasks: int, seconds: float) -> Figures:
    """Let tasks run transactions, and sum up."""
    workers = [Worker(Draws(workload, task), await open_session()) for task in range(tasks)]
    begin = time.monotonic()
    try:
        async with asyncio.timeout(load.WARM_UP_S + seconds + load.PATIENCE_S):
            await asyncio.gather(*(worker.work(begin + load.WARM_UP_S + seconds) for worker in workers))
            total = await workers[0].session.total(ALL_PAIRS)
    except (OSError, TimeoutError, EOFError, OrdercastError) as error:
        raise MeasureError(f"{type(error).__name__}: {error}") from error
    finally:
        for worker in workers:
            worker.session.close()
    rate, p50, p99 = load.summed_up([pair for worker in workers for pair in worker.times], begin, seconds)
    aborted = sum(worker.aborted for worker in workers)
    return Figures(rate, p50, p99, aborted, int(total != KEYS * START))


class Worker:
    """A task."""

    def __init__(self, draws: Draws, session: Session) -> None:
        self._draws = draws
        self.session = session
        self.times: list[tuple[float, float]] = []
        """When each transaction ended, and how long it took."""
        self.aborted = 0

    async def work(self, end: float) -> None:
        """Run transactions until the end."""
        draw, run = self._draws.next, self.session.run
        drawn = draw()
        while (start := time.monotonic()) < end:
            self.aborted += await run(drawn)
            now = time.monotonic()
            self.times.append((now, now - start))
            drawn = draw()

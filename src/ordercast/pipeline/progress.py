"""Reports the progress of a Spark job to a callback while the job runs.

Spark knows how many tasks of each stage are done. The driver polls it in a separate thread, because the
thread that started the job waits for its end.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

from ordercast.core import LocalError

POLL_S = 0.5
GONE_S = 30.0
"""Seconds that a cluster may be without an executor before a job is given up."""


class Progress(NamedTuple):
    """The progress of a piece of work."""

    what: str
    done: int
    total: int
    elapsed_s: float

    @property
    def rate_per_s(self) -> float:
        """The average rate so far."""
        return self.done / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at this rate; unknown while nothing is done."""
        return (self.total - self.done) / self.rate_per_s if self.done else None


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report nothing."""


@contextmanager
def watched(context: SparkContext, what: str, total: int, report: Report) -> Iterator[None]:
    """Report the progress of the Spark jobs that this thread runs in here.

    `total` things are taken to be spread evenly over the tasks of the stage that has most of them.
    """
    group, start, over = f"ordercast-{uuid4()}", time.monotonic(), threading.Event()
    executors, abandoned = _Executors(context), threading.Event()

    def tell(done: int) -> None:
        report(Progress(what, done, total, time.monotonic() - start))

    def watch() -> None:
        while not over.wait(POLL_S):
            try:
                share = _share_done(context, group)
                if executors.gone():
                    abandoned.set()
                    context.cancelAllJobs()
                    return
            except (Py4JError, OSError):
                return  # Spark has gone, and the thread that waits for the job hears of it too
            if not over.is_set():
                tell(int(total * share))

    context.setJobGroup(group, what, interruptOnCancel=True)
    watcher = threading.Thread(target=watch, name=group, daemon=True)
    watcher.start()
    try:
        tell(0)
        yield
        over.set()
        watcher.join()
        tell(total)
    except Exception as error:
        if abandoned.is_set():
            raise LocalError(
                f"the cluster has had no executor for {GONE_S:.0f} s; give the same command again to continue"
            ) from error
        raise
    finally:
        over.set()
        watcher.join()


class _Executors:
    """Watches whether the cluster has executors. Spark itself would wait forever for new ones."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._seen = time.monotonic()

    def gone(self) -> bool:
        """Whether there has been no executor for long."""
        if str(self._context.master).startswith("local"):
            return False
        # The driver counts as one of them.
        if self._context._jsc.sc().getExecutorMemoryStatus().size() > 1:
            self._seen = time.monotonic()
        return time.monotonic() - self._seen > GONE_S


def _share_done(context: SparkContext, group: str) -> float:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    counts = [(stage.numTasks, stage.numCompletedTasks) for stage in stages if stage]
    tasks, done = max(counts, default=(0, 0))
    return done / tasks if tasks else 0.0

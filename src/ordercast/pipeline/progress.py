"""How far a Spark job is, told to a callback while the job runs.

Spark tells how many tasks of which stage are done. The driver asks it now and then in a thread of its own,
because the thread that started the job waits for its end.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

POLL_S = 0.5


class Progress(NamedTuple):
    """How far a piece of work is."""

    what: str
    done: int
    total: int
    elapsed_s: float

    @property
    def rate_per_s(self) -> float:
        """What was done in a second so far."""
        return self.done / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at this rate; unknown while nothing is done."""
        return (self.total - self.done) / self.rate_per_s if self.done else None


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """For those who do not want to know."""


@contextmanager
def watched(context: SparkContext, what: str, total: int, report: Report) -> Iterator[None]:
    """Report the progress of the Spark jobs that this thread runs in here.

    `total` things are taken to be spread evenly over the tasks of the stage that has most of them.
    """
    group, start, over = f"ordercast-{uuid4()}", time.monotonic(), threading.Event()

    def tell(done: int) -> None:
        report(Progress(what, done, total, time.monotonic() - start))

    def watch() -> None:
        while not over.wait(POLL_S):
            try:
                share = _share_done(context, group)
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
    finally:
        over.set()
        watcher.join()


def _share_done(context: SparkContext, group: str) -> float:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    counts = [(stage.numTasks, stage.numCompletedTasks) for stage in stages if stage]
    tasks, done = max(counts, default=(0, 0))
    return done / tasks if tasks else 0.0

"""Looks at processes from outside: whether they live, and whether something comes about."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 300.0
"""Far longer than anything takes, on a busy machine too: who waits in vain has failed."""


def until(holds: Callable[[], bool]) -> bool:
    """Whether something comes true before patience ends."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def beside(*jobs: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let jobs go on in threads, each until the event is set.

    What goes wrong in one is raised here at the end, unless the test itself has failed before: then that is
    what has to be told.
    """
    done = threading.Event()
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job, done) for job in jobs]
        try:
            yield
        finally:
            done.set()
    for job in running:
        job.result()


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"

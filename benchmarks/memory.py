"""Peak memory of this process and all below it, sampled while something runs."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD_S = 0.1


class Peak:
    """The largest sum seen, in bytes. Pages that processes share are counted once (proportional set size)."""

    bytes = 0


@contextmanager
def watched_memory() -> Iterator[Peak]:
    """Sample from /proc until the block ends."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(PERIOD_S):
            peak.bytes = max(peak.bytes, sum(map(_bytes_of, _family(os.getpid()))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _family(root: int) -> set[int]:
    """A process and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _bytes_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)

"""How much memory a task may still take: that of the machine, of its control group and of its process.

A worker that takes more is killed, and Spark says only that a worker died.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """The least of all limits; None if the system tells none."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    for line in _lines(MEMINFO):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
    limit, used = (_lines(CGROUP / name) for name in ("memory.max", "memory.current"))
    if limit and used and limit[0].isdigit():
        yield max(0, int(limit[0]) - int(used[0]))
    # Spark sets this one from `spark.executor.pyspark.memory`.
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _lines(STATM)
    if soft != resource.RLIM_INFINITY and taken:
        yield max(0, soft - int(taken[0].split()[0]) * resource.getpagesize())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

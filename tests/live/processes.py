"""Looks at processes from outside: whether they live, and whether something comes about."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 20.0


def until(holds: Callable[[], bool]) -> bool:
    """Whether something comes true before patience ends."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"

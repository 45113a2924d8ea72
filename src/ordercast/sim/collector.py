"""The garbage collector is paused where it would only waste time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect no cyclic garbage here: a run makes millions of small objects, keeps most and has few cycles.

    The collector would go through all that is kept again and again, for half of the time of a long run. The
    cycles that remain, those of the run itself, are collected after it.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()

"""An event loop whose timers are exact to microseconds.

The usual loop rounds waiting times up to milliseconds, because `epoll` counts in them; ordering protocols
wait for a tenth of that. `select` counts in microseconds and can wait for an `epoll`, so short waits use it.
"""

import asyncio
import gc
import select
import selectors
from typing import Any

SHORT_S = 0.001


class FineSelector(selectors.EpollSelector):
    """An `epoll` that can wait for less than a millisecond."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, but no longer than this."""
        if timeout is not None and 0 < timeout < SHORT_S:
            select.select((self.fileno(),), (), (), timeout)
            timeout = 0
        return super().select(timeout)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a live host."""
    return asyncio.SelectorEventLoop(FineSelector())


def run(main: Any) -> Any:
    """Run a coroutine in such a loop, as `asyncio.run` does in the usual one, in its own process.

    The objects that exist at the start are never garbage, and messages hold no cycles, so they are freed
    without the garbage collector. It has little to collect, and should run seldom.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)

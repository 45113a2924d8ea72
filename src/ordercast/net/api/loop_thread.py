"""An event loop in a thread of its own, for scripts that are not asynchronous."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ordercast.core import LocalError
from ordercast.net.host.loop import new_event_loop

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast", daemon=True)

    def start(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Start the thread with this work; if that fails, end the thread."""
        self._thread.start()
        try:
            return self.do(work)
        except BaseException:
            self.end()
            raise

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the thread; an interrupt cancels it there. `LocalError` after the end."""
        if self._loop.is_closed():
            work.close()
            raise LocalError("it is closed: its with block has ended")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        """End the thread."""
        self.do(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

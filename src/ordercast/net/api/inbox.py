"""Deliveries that wait for the application to take them, within limits.

Above the soft limit the host asks senders to slow down, all the way back to the applications that send.
Messages that are still under way then fit below the hard limit, which is far above. If an application takes
nothing while others go on sending, it gets an error instead of losing messages silently.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from ordercast.core import LocalError
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle

NOTICE_BYTES = 100
HARD = 8
"""The hard limit as a multiple of the soft limit."""


class SlowConsumer(LocalError):
    """The application took deliveries too slowly for too long; it must join again."""


class Inbox:
    """A queue with a soft and a hard limit."""

    def __init__(self, soft_bytes: int, strain: Callable[[bool], None], hard_bytes: int = 0) -> None:
        self._soft = soft_bytes
        self._hard = max(HARD * soft_bytes, hard_bytes)
        self._strain = strain
        self._queue: deque[BundleOrNotice] = deque()
        self._ready = asyncio.Event()
        self._strained = False
        self._end: Exception | None = None
        self._closed = False
        self.waiting = 0
        """Bytes in the queue."""

    @property
    def strained(self) -> bool:
        """Whether more than the soft limit waits, so that senders are asked to slow down."""
        return self._strained

    def put(self, delivered: BundleOrNotice) -> None:
        """Add a delivery."""
        if self._closed:
            return
        self.waiting += _weight(delivered)
        if self.waiting > self._hard:
            self.close(
                SlowConsumer(
                    f"{self.waiting} bytes wait for the application; the limit is {self._hard} bytes:"
                    " take deliveries faster or send more slowly, then join again"
                )
            )
            return
        self._queue.append(delivered)
        if self.waiting > self._soft and not self._strained:
            self._strained = True
            self._strain(True)
        self._ready.set()

    async def get(self) -> BundleOrNotice | None:
        """The next delivery; None when there will be no more. Deliveries before the end come first."""
        while not self._queue:
            if self._closed:
                if self._end is not None:
                    raise self._end
                return None
            self._ready.clear()
            await self._ready.wait()
        return self._take()

    def get_nowait(self) -> BundleOrNotice | None:
        """The next delivery, or None if none waits."""
        return self._take() if self._queue else None

    def _take(self) -> BundleOrNotice:
        delivered = self._queue.popleft()
        self.waiting -= _weight(delivered)
        if self._strained and self.waiting <= self._soft // 2:
            self._strained = False
            self._strain(False)
        return delivered

    def close(self, end: Exception | None = None) -> None:
        """Accept no more deliveries; `end`, if given, is raised after those that wait are taken."""
        if not self._closed:
            self._closed, self._end = True, end
            if self._strained:
                self._strained = False
                self._strain(False)
            self._ready.set()


def _weight(delivered: BundleOrNotice) -> int:
    if type(delivered) is DeliveredBundle:
        return len(delivered.delivery.payload) + NOTICE_BYTES
    return NOTICE_BYTES

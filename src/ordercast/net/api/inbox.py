"""What was delivered to an application and waits for it to be taken, within limits.

Above the soft limit the host asks senders to slow down, all the way back to the applications that send. What
is still under way fits below the hard limit, which is far above; an application that takes nothing while
somebody goes on sending is cut off and told so, instead of losing messages without a word.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from ordercast.core import LocalError
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle

NOTICE_BYTES = 100
HARD = 8
"""The hard limit, in soft limits."""


class SlowConsumer(LocalError):
    """The application took deliveries too slowly for too long; it must join anew."""


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
        """Whether so much waits here that senders are asked to slow down."""
        return self._strained

    def put(self, delivered: BundleOrNotice) -> None:
        """Something was delivered."""
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
        """The next delivery; None when there will be no more. What came before the end comes first."""
        while not self._queue:
            if self._closed:
                if self._end is not None:
                    raise self._end
                return None
            self._ready.clear()
            await self._ready.wait()
        return self._take()

    def get_nowait(self) -> BundleOrNotice | None:
        """The next delivery if there is one already."""
        return self._take() if self._queue else None

    def _take(self) -> BundleOrNotice:
        delivered = self._queue.popleft()
        self.waiting -= _weight(delivered)
        if self._strained and self.waiting <= self._soft // 2:
            self._strained = False
            self._strain(False)
        return delivered

    def close(self, end: Exception | None = None) -> None:
        """Nothing comes any more; with an error, that is told after what is here."""
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

"""What a receiver delivers, for clients that watch it. Each client has its own queue, with a limit.

A slow reader does not slow the host down. It loses what its queue has no room for, and a line in their
place tells it how many messages it lost.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from ordercast.core import NodeId, Notice
from ordercast.net.host.delivered import BundleOrNotice

QUEUE_MESSAGES_MAX = 20_000
QUEUE_BYTES_MAX = 8 << 20


class Lost(int):
    """The number of messages for which the queue had no room."""


class Watch:
    """The queue of one reader."""

    def __init__(self, groups: Sequence[int] = ()) -> None:
        self._groups = frozenset(groups)
        self._queue: deque[BundleOrNotice | Lost] = deque()
        self._messages = 0
        self._bytes = 0
        self._filled = asyncio.Event()
        self.lost = 0
        """Messages lost to this reader since it came."""

    def put(self, delivered: BundleOrNotice) -> None:
        """Take a delivery; never waits."""
        if not self._wants(delivered):
            return
        messages, size = _weigh(delivered)
        if self._messages + messages > QUEUE_MESSAGES_MAX or self._bytes + size > QUEUE_BYTES_MAX:
            self._lose(messages)
        else:
            self._messages += messages
            self._bytes += size
            self._queue.append(delivered)
        self._filled.set()

    async def get(self) -> BundleOrNotice | Lost:
        """Wait for the next delivery, or the number of messages lost."""
        while not self._queue:
            self._filled.clear()
            await self._filled.wait()
        delivered = self._queue.popleft()
        if not isinstance(delivered, Lost):
            messages, size = _weigh(delivered)
            self._messages -= messages
            self._bytes -= size
        return delivered

    def _wants(self, delivered: BundleOrNotice) -> bool:
        if not self._groups:
            return True
        if isinstance(delivered, Notice):
            return delivered.group in self._groups
        return not self._groups.isdisjoint(delivered.delivery.groups)

    def _lose(self, messages: int) -> None:
        self.lost += messages
        if self._queue and isinstance(self._queue[-1], Lost):
            self._queue[-1] = Lost(self._queue[-1] + messages)
        else:
            self._queue.append(Lost(messages))


class Feed:
    """The clients that watch the receivers of one host."""

    def __init__(self) -> None:
        self._watches: dict[NodeId, list[Watch]] = {}

    def tell(self, node: NodeId, delivered: BundleOrNotice) -> None:
        """Pass a delivery at a node to those who watch the node."""
        for watch in self._watches.get(node, ()):
            watch.put(delivered)

    def add(self, node: NodeId, watch: Watch) -> None:
        """Tell this reader what is delivered at a node from now on."""
        self._watches.setdefault(node, []).append(watch)

    def remove(self, node: NodeId, watch: Watch) -> None:
        """Tell this reader nothing more."""
        self._watches[node].remove(watch)


def _weigh(delivered: BundleOrNotice) -> tuple[int, int]:
    """The messages and bytes that a delivery takes in a queue."""
    if isinstance(delivered, Notice):
        return 1, 100
    return len(delivered.bundle.payloads), len(delivered.delivery.payload) + 100

"""What a receiver delivers, told to those who watch: each has a queue of its own, with a limit.

A reader that is too slow does not slow the host down: what its queue has no room for is lost to it, and it
is told how many messages that were, at the place where they would have been.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from ordercast.core import NodeId, Notice
from ordercast.net.host.heard import Heard

QUEUE_MESSAGES_MAX = 20_000
QUEUE_BYTES_MAX = 8 << 20


class Lost(int):
    """So many messages had no room."""


class Watch:
    """The queue of one reader."""

    def __init__(self, groups: Sequence[int] = ()) -> None:
        self._groups = frozenset(groups)
        self._queue: deque[Heard | Lost] = deque()
        self._messages = 0
        self._bytes = 0
        self._filled = asyncio.Event()
        self.lost = 0
        """Messages lost to this reader since it came."""

    def put(self, heard: Heard) -> None:
        """Something was delivered; never waits."""
        if not self._wants(heard):
            return
        messages, size = _weigh(heard)
        if self._messages + messages > QUEUE_MESSAGES_MAX or self._bytes + size > QUEUE_BYTES_MAX:
            self._lose(messages)
        else:
            self._messages += messages
            self._bytes += size
            self._queue.append(heard)
        self._filled.set()

    async def get(self) -> Heard | Lost:
        """The next thing to tell."""
        while not self._queue:
            self._filled.clear()
            await self._filled.wait()
        heard = self._queue.popleft()
        if not isinstance(heard, Lost):
            messages, size = _weigh(heard)
            self._messages -= messages
            self._bytes -= size
        return heard

    def _wants(self, heard: Heard) -> bool:
        if not self._groups:
            return True
        if isinstance(heard, Notice):
            return heard.group in self._groups
        return not self._groups.isdisjoint(heard.delivery.groups)

    def _lose(self, messages: int) -> None:
        self.lost += messages
        if self._queue and isinstance(self._queue[-1], Lost):
            self._queue[-1] = Lost(self._queue[-1] + messages)
        else:
            self._queue.append(Lost(messages))


class Feed:
    """All who watch the receivers of one host."""

    def __init__(self) -> None:
        self._watches: dict[NodeId, list[Watch]] = {}

    def hear(self, node: NodeId, heard: Heard) -> None:
        """Something was delivered at a node."""
        for watch in self._watches.get(node, ()):
            watch.put(heard)

    def add(self, node: NodeId, watch: Watch) -> None:
        """From now on this reader is told what is delivered at a node."""
        self._watches.setdefault(node, []).append(watch)

    def remove(self, node: NodeId, watch: Watch) -> None:
        """This reader is told no more."""
        self._watches[node].remove(watch)


def _weigh(heard: Heard) -> tuple[int, int]:
    """How many messages, and how many bytes, something keeps in a queue."""
    if isinstance(heard, Notice):
        return 1, 100
    return len(heard.bundle.payloads), len(heard.delivery.payload) + 100

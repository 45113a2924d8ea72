"""A live group for scripts: the same as in `group.py`, without `async`.

with ordercast.join_sync("cluster.toml", group="orders") as group:
    group.send(b"...")
    for delivery in group:
        ...
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ordercast.core import HostId, MessageId, StateWanted
from ordercast.net.api.group import Group
from ordercast.net.api.join import Joining, join
from ordercast.net.api.loop_thread import LoopThread
from ordercast.net.api.pending import PENDING_MAX, Pending
from ordercast.net.api.received import LiveDelivery


class GroupInThread:
    """A member of a group that runs in its own thread."""

    def __init__(self, joining: Joining) -> None:
        self._joining = joining
        self._thread = LoopThread()
        self._group: Group | None = None
        self._takers: set[int] = set()
        """Threads that take deliveries."""

    def __enter__(self) -> Self:
        """Start the thread, and join the group."""
        self._group = self._thread.start(self._joining.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send the backlog, leave the group, and end the thread."""
        try:
            self._thread.do(self._joining.__aexit__(kind, error, traceback))
        finally:
            self._thread.end()

    def send(self, payload: bytes, to: Sequence[str] = (), timeout: float | None = None) -> MessageId:
        """Send a message, and return its identity; waits while the backlog is full."""
        return self.send_many((payload,), to, timeout)

    def send_many(
        self, payloads: Sequence[bytes], to: Sequence[str] = (), timeout: float | None = None
    ) -> MessageId:
        """Send messages in this order; returns the identity of the first; the others have the next ones."""
        taker = threading.get_ident() in self._takers
        sending = self._entered().send_from(payloads, to, taker=taker)
        return self._thread.do(asyncio.wait_for(sending, timeout))

    def receive(self, timeout: float | None = None) -> LiveDelivery | None:
        """The next delivery; None if none comes within the timeout in seconds, or the group is closed."""
        self._takers.add(threading.get_ident())
        try:
            return self._thread.do(asyncio.wait_for(self._next(), timeout))
        except TimeoutError:
            return None

    def __iter__(self) -> Iterator[LiveDelivery]:
        """Iterate over all deliveries until the group is closed."""
        while (delivery := self.receive()) is not None:
            yield delivery

    def join(self, group: str = "") -> None:
        """Receive a group too, as `Group.join` does."""
        self._thread.do(self._entered().join(group))

    def leave(self, group: str = "") -> None:
        """Receive a group no longer, as `Group.leave` does."""
        self._thread.do(self._entered().leave(group))

    def give_state(self, wanted: StateWanted, data: bytes) -> None:
        """Give a state that was asked for, as `Group.give_state` does."""
        self._thread.do(self._entered().give_state(wanted, data))

    def pending(self, limit: int = PENDING_MAX) -> list[Pending]:
        """The messages that are known here and not delivered yet, as in `Group.pending`."""
        return self._thread.do(self._pending(limit))

    async def _pending(self, limit: int) -> list[Pending]:
        return self._entered().pending(limit)

    async def _next(self) -> LiveDelivery | None:
        return await self._entered().receive()

    def _entered(self) -> Group:
        if self._group is None:
            raise RuntimeError("the group is not open: use it in a with statement")
        return self._group


def join_sync(
    file: str | Path, group: str, *, host: HostId | None = None, run: str = "", as_new: bool = False
) -> GroupInThread:
    """Join a group, as `join` does, from a script."""
    return GroupInThread(join(file, group, host=host, run=run, as_new=as_new))

"""Clients that are tasks: each waits until its own message is delivered."""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")

GIVE_UP_S = 0.7
LOOK_S = 0.2
"""Seconds between two looks for messages to give up; with `GIVE_UP_S` it is less than a second."""


class Waiting(Generic[Key]):
    """The messages that tasks wait for. A message that does not come is given up after a while."""

    def __init__(self) -> None:
        self._futures: dict[Key, tuple[asyncio.Future[bool], float]] = {}

    def expect(self, message: Key) -> "asyncio.Future[bool]":
        """A future that is true when this message is delivered, and false when it is given up."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._futures[message] = future, time.monotonic()
        return future

    def end(self, message: Key, delivered: bool = True) -> None:
        """Note that a message was delivered, whether a task waits for it or not."""
        found = self._futures.pop(message, None)
        if found is not None and not found[0].done():
            found[0].set_result(delivered)

    def give_up(self, now: float) -> None:
        """Give up messages that have been waited for too long."""
        for message, (_, since) in list(self._futures.items()):
            if now - since > GIVE_UP_S:
                self.end(message, delivered=False)

    async def attend(self, clients: Iterable[Coroutine[Any, Any, None]], seconds: float) -> None:
        """Run clients, one task each, until the end; an error of one ends all."""
        tasks = [asyncio.create_task(client) for client in clients]
        watching = asyncio.create_task(self._watch())
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in (watching, *tasks):
                task.cancel()
            await asyncio.gather(watching, *tasks, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.give_up(time.monotonic())

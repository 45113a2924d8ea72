"""Clients as most programs have them: a task each, that awaits its send call and then its own message."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from benchmarks.peers.roles import NUMBER_BYTES, Recorder, Rounds, Shared
from ordercast.lab.bench.waiting import Waiting
from ordercast.net.host.loop import run

LOOK_S = 0.02
LATE_S = 2.0
"""How long after the end a client may still be at its last message."""

Send = Callable[[bytes], Awaitable[object]]


class ClientTasks(Rounds):
    """The tasks, in one process that is a receiver too; the contender tells it what is delivered."""

    def __init__(self, shared: Shared, size: int, seconds: float, clients: int, recorder: Recorder) -> None:
        super().__init__(shared, size, seconds, clients, recorder)
        self._waiting: Waiting[bytes] = Waiting()

    def heard(self, payloads: list[bytes]) -> None:
        """Messages were delivered to this process: their tasks go on."""
        self.recorder.heard(payloads)
        for payload in payloads:
            self._waiting.end(payload[:NUMBER_BYTES])

    async def run(self, send: Send, receive: Coroutine[Any, Any, None] | None = None) -> None:
        """Run all tasks, beside what receives for them, until the rest is heard or never will be."""
        receiving = asyncio.create_task(receive) if receive is not None else None
        try:
            self.begin()
            seconds = (self.end_ns - time.monotonic_ns()) / 1e9 + LATE_S
            await self._waiting.attend([self._be_client(send) for _ in range(self.count)], seconds)
            self.finish()
            while not self.recorder.finished:
                await asyncio.sleep(LOOK_S)
        finally:
            if receiving is not None:
                await _end(receiving)

    async def _be_client(self, send: Send) -> None:
        """A round is over when the task itself goes on, so what waits in the event loop counts too."""
        while not self.over:
            began_ns = time.monotonic_ns()
            (payload,) = self.make(1)
            delivered = self._waiting.expect(payload[:NUMBER_BYTES])  # the call may return after the delivery
            await send(payload)
            if await delivered:
                self.note_round(began_ns, time.monotonic_ns())


async def _end(receiving: "asyncio.Task[None]") -> None:
    """Stop receiving; if an error had stopped it before, that is told."""
    receiving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await receiving


def run_in_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run what has tasks in the same kind of event loop as ordercast, so that nobody is ahead by that."""
    run(main)

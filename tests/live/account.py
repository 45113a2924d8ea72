"""An application's own account of a cluster: what it sent, what it received, and when."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import ordercast
from ordercast.core import Dropped, HostId
from tests.live.processes import PATIENCE_S


class Account:
    """What one application sent and received."""

    def __init__(self) -> None:
        self.sent = 0
        self.received: list[int] = []
        """The numbers of its own messages, as they came."""
        self.times: list[float] = []
        """When each came, in seconds."""
        self.drops = 0

    @property
    def missing(self) -> list[int]:
        """The numbers that were sent and never came."""
        return sorted(set(range(self.sent)) - {*self.received})

    @property
    def twice(self) -> list[int]:
        """The numbers that came more than once."""
        return [number for number, count in Counter(self.received).items() if count > 1]

    def longest_pause(self) -> float:
        """The longest time without a delivery, in seconds."""
        return max((after - before for before, after in pairwise(self.times)), default=0.0)


@contextmanager
def application(config: Path, host: HostId, every_s: float) -> Iterator[Account]:
    """A program that sends a numbered message again and again, and receives, until the block ends.

    At the end it waits until all that it sent has come, for at most as long as deliveries do not pause for
    ten seconds.
    """
    account, done, failed = Account(), threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            asyncio.run(_take_part(account, config, host, every_s, done))
        except BaseException as error:  # told where the test waits
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield account
    finally:
        done.set()
        thread.join(PATIENCE_S)
    if failed:
        raise failed[0]


async def _take_part(
    account: Account, config: Path, host: HostId, every_s: float, done: threading.Event
) -> None:
    async with ordercast.join(config, group="orders", host=host) as group:
        receiving = asyncio.create_task(_receive(account, group))
        while not done.is_set():
            await group.send(b"%d" % account.sent)
            account.sent += 1
            await asyncio.sleep(every_s)
        while account.missing and time.monotonic() - account.times[-1] < 10:
            await asyncio.sleep(0.05)
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving


async def _receive(account: Account, group: "ordercast.Group") -> None:
    async for delivery in group:
        if isinstance(delivery, ordercast.Received):
            account.received.append(int(delivery.payload))
            account.times.append(time.monotonic())
        elif isinstance(delivery, Dropped):
            account.drops += delivery.count

"""The load of a benchmark: a window is kept full whatever its size, and never by spinning."""

import asyncio
import time
from collections.abc import Sequence
from typing import cast

import pytest

from ordercast.core import Delivered, MessageId
from ordercast.core.bundle import Bundle
from ordercast.lab.bench.member import Meter
from ordercast.lab.bench.spec import BenchSpec
from ordercast.net.api.group import Group
from ordercast.net.host.delivered import DeliveredBundle


class Echo:
    """A group that delivers each message a moment after it was sent, one by one."""

    sender = 3

    def __init__(self) -> None:
        self._sent: asyncio.Queue[MessageId] = asyncio.Queue()
        self._next = 0

    async def send_many(self, payloads: Sequence[bytes], to: Sequence[str] = ()) -> MessageId:
        first = self._next
        for _ in payloads:
            self._sent.put_nowait(self._next)
            self._next += 1
        return first

    async def receive_bundle(self) -> DeliveredBundle:
        message = await self._sent.get()
        await asyncio.sleep(0.0002)
        return DeliveredBundle(
            Delivered(b"", (0,), self.sender, None, 0), Bundle(message, (0,), [b""]), time.time_ns()
        )


@pytest.mark.parametrize(
    ("size", "window"), [(1_000_000, 2 << 20), (1_000_000, 1), (64, 8192), (64, 6000), (0, 100)]
)
def test_a_full_window_waits_for_deliveries(size: int, window: int) -> None:
    async def main() -> int:
        meter = Meter(cast(Group, Echo()), BenchSpec(size=size, window_bytes=window))
        taking = asyncio.create_task(meter.take())
        await meter.send(time.monotonic() + 0.3)
        taking.cancel()
        return len(meter.log.delivered) // 3

    assert asyncio.run(main()) > 20

"""One member of the measured group, in its own process: `python -m ordercast.lab.bench.member`.

Lines on its standard input tell it what to do; it ends when the input ends. It logs its deliveries, a few
numbers per bundle, so that every message can be accounted for afterwards. The log goes to disk every second,
so that a long measurement does not measure its own memory use.
"""

import asyncio
import sys
import time
from array import array
from pathlib import Path

import msgspec

from ordercast.core import SECOND, MessageId, Nanos, Notice
from ordercast.lab.bench.spec import GROUP, BenchSpec
from ordercast.lab.bench.waiting import Waiting
from ordercast.net.api.group import Group
from ordercast.net.api.join import join
from ordercast.net.api.received import Received
from ordercast.net.host.delivered import DeliveredBundle
from ordercast.net.host.loop import run
from ordercast.scenario.settling import Settling
from ordercast.scenario.window import Window
from ordercast.trace import KIND_OF, SETTLING

CHUNK = 64
"""Messages that an application under full load gives to one call."""
REFILL = 8
"""The window is filled up when this share of it is free."""
PACE_S = 0.0005
PROBE_S = 0.2
LINGER_S = 0.4
LOOK_S = 0.05
PATIENCE: Nanos = 5 * SECOND
"""If nothing is delivered for this long, though something could be, the rest counts as lost."""
SPILL_S = 1.0
LATE_S = 2.0
"""How long after the end a client may still wait for its last message."""


class Log:
    """What a member did: for each bundle the first identity, the number of messages, and the time."""

    NAMES = ("delivered", "submitted", "awaited")

    def __init__(self) -> None:
        self.delivered = array("q")
        self.submitted = array("q")
        self.awaited = array("q")
        """Messages whose tasks went on, and when."""
        self.drops = 0

    def spill(self, folder: Path, host: int) -> None:
        """Append new entries to the files on disk."""
        for name in self.NAMES:
            rows = getattr(self, name)
            with (folder / f"{name}-{host}.bin").open("ab") as file:
                file.write(rows.tobytes())
            del rows[:]

    async def keep_short(self, folder: Path, host: int) -> None:
        """Write to disk every second."""
        while True:
            self.spill(folder, host)
            await asyncio.sleep(SPILL_S)


class Meter:
    """Sends and takes messages, and logs them."""

    def __init__(self, group: Group, spec: BenchSpec) -> None:
        self._group = group
        self._spec = spec
        self._payload = bytes(spec.size)
        self.log = Log()
        self.heard_at = 0.0
        self.probing = True
        self._window = Window(spec.clients)
        self._taken = asyncio.Event()
        self._clients = False
        """Whether each delivered message is followed by another one."""
        self._waiting: Waiting[MessageId] = Waiting()

    async def take(self) -> None:
        """Take all deliveries."""
        group, log = self._group, self.log
        while (delivered := await group.receive_bundle()) is not None:
            if isinstance(delivered, DeliveredBundle):
                self.heard_at = time.monotonic()
                count = 0
                for _ in delivered.bundle.payloads:
                    count += 1
                log.delivered.extend((delivered.bundle.first, count, time.time_ns()))
                if delivered.delivery.sender == group.sender and not self.probing:
                    free = self._window.done(count)
                    self._taken.set()
                    if self._clients:
                        await self._send(free)
            elif KIND_OF[type(delivered)] in SETTLING:
                log.drops += delivered.rows

    async def take_each(self) -> None:
        """Take all deliveries one by one, as most applications do, and let the waiting tasks go on."""
        log, waiting = self.log, self._waiting
        async for delivered in self._group:
            if isinstance(delivered, Received):
                self.heard_at = time.monotonic()
                log.delivered.extend((delivered.message, 1, time.time_ns()))
                waiting.end(delivered.message)
            elif isinstance(delivered, Notice) and KIND_OF[type(delivered)] in SETTLING:
                log.drops += delivered.rows

    async def probe(self) -> None:
        """Send now and then until every member has delivered something, which shows that the group works."""
        while True:
            await self._group.send(self._payload)
            await asyncio.sleep(PROBE_S)

    async def await_first(self) -> None:
        """Wait until something was delivered here."""
        while not self.heard_at:
            await asyncio.sleep(PROBE_S / 4)

    async def send(self, end: float) -> None:
        """Send as the load says."""
        self.probing = False
        match self._spec.load:
            case "max":
                await self._fill(end)
            case "rate":
                await self._pace(end)
            case "clients" if self._spec.tasks:
                clients = [self._be_client(end) for _ in range(self._spec.clients)]
                await self._waiting.attend(clients, end + LATE_S - time.monotonic())
            case "clients":
                await self._serve_clients(end)

    async def _send(self, count: int) -> None:
        now = time.time_ns()
        self._window.take(count)
        self._note(await self._group.send_many([self._payload] * count), count, now)

    def _note(self, first: MessageId, count: int, when: Nanos) -> None:
        self.log.submitted.extend((first, count, when))

    async def _fill(self, end: float) -> None:
        """Keep the window full; delivered messages are replaced when enough are free for a fair bundle."""
        limit = max(1, self._spec.window_bytes // max(1, self._spec.size))
        chunk = min(CHUNK, limit)
        # What is waited for must be room for a chunk, or it never waits.
        window = self._window = Window(limit, max(chunk, limit // REFILL))
        while time.monotonic() < end:
            while window.room >= chunk:
                await self._send(chunk)
            try:
                while not window.ready:
                    self._taken.clear()
                    await asyncio.wait_for(self._taken.wait(), 1.0)
            except TimeoutError:
                if not self._expects():
                    window.lose()  # they are counted afterwards

    async def _pace(self, end: float) -> None:
        """Send messages when they are due; latency counts from the time at which a message was due."""
        start, start_ns, sent = time.monotonic(), time.time_ns(), 0
        rate, chunk = self._spec.rate, 4096
        while (now := time.monotonic()) < end:
            due = min(int((now - start) * rate) - sent, chunk)
            if due > 0:
                first = await self._group.send_many([self._payload] * due)
                if self._spec.by_packet:
                    self._note(first, due, time.time_ns())
                else:
                    for index in range(due):
                        self._note(first + index, 1, start_ns + int((sent + index) / rate * 1e9))
                sent += due
            await asyncio.sleep(0 if due == chunk else PACE_S)

    async def _serve_clients(self, end: float) -> None:
        """Each client sends when its last message was delivered here; those of one bundle send together."""
        self._clients = True
        window = self._window
        await self._send(window.room)
        while (rest := end - time.monotonic()) > 0:
            self._taken.clear()
            try:
                await asyncio.wait_for(self._taken.wait(), min(1.0, rest))
                await asyncio.sleep(min(0.1, max(0.0, end - time.monotonic())))
            except TimeoutError:
                if rest > 1.0 and not self._expects():
                    window.lose()  # they are counted afterwards
                    await self._send(window.room)
        self._clients = False

    async def _be_client(self, end: float) -> None:
        """Send, wait until it is delivered here, and send again."""
        while time.monotonic() < end:
            now = time.time_ns()
            message = await self._group.send(self._payload)
            self._note(message, 1, now)
            if await self._waiting.expect(message):
                self.log.awaited.extend((message, 1, time.time_ns()))

    async def settle(self) -> None:
        """Wait until nothing more comes, and no message is known to be under way."""
        settling = Settling(time.monotonic_ns(), PATIENCE)
        while not settling.quiet(time.monotonic_ns()) and self._expects():
            await asyncio.sleep(LOOK_S)
            settling.see(time.monotonic_ns(), self.heard_at)
        await asyncio.sleep(LINGER_S)

    def _expects(self) -> bool:
        if time.monotonic() - self.heard_at < LINGER_S or self._group.host.metrics.backlog_messages:
            return True
        return bool(self._group.pending(1))


async def main(folder: Path, host: int) -> None:
    """Take part until told to end."""
    spec = msgspec.json.decode((folder / "spec.json").read_bytes(), type=BenchSpec)
    orders = await hear_orders()
    async with join(folder / "cluster.toml", GROUP, host=host, run=GROUP) as group:
        meter = Meter(group, spec)
        each = spec.tasks and host == 0
        taking = asyncio.create_task(meter.take_each() if each else meter.take())
        probing = asyncio.create_task(meter.probe()) if host == 0 else None
        noting = asyncio.create_task(meter.log.keep_short(folder, host))
        try:
            await meter.await_first()
            tell({"ready": host})
            await hear_order(orders)
            if probing is not None:
                probing.cancel()
                await meter.settle()
            tell({"begun": time.time_ns()})
            await hear_order(orders)
            if host == 0:
                await meter.send(time.monotonic() + spec.warmup_s + spec.seconds)
            tell({"sent": host})
            await hear_order(orders)
            await meter.settle()
            meter.log.spill(folder, host)
            tell({"drops": meter.log.drops})
            await hear_order(orders)
        finally:
            taking.cancel()
            noting.cancel()


async def hear_orders() -> asyncio.StreamReader:
    """Lines on the standard input."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


async def hear_order(orders: asyncio.StreamReader) -> None:
    """Wait for the next command; ends if the process that gives them is gone."""
    if not await orders.readline():
        raise SystemExit(1)


def tell(content: object) -> None:
    """Say something to the process that gives the orders."""
    sys.stdout.write(msgspec.json.encode(content).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2])))

"""A made-up host with a real control server, and a loop to run both beside a synchronous client."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ordercast.catalogue import find_protocol
from ordercast.core import (
    Delivered,
    Deployment,
    Dropped,
    Explanation,
    Groups,
    MessageId,
    NodeId,
    Stamp,
    View,
    Wait,
    message_id,
)
from ordercast.core.bundle import Bundle, pack_bundle
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle, RepliedBundle
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.tools.client import ControlClient
from ordercast.net.tools.facts import SenderFact
from ordercast.net.tools.server import ControlServer
from tests.live.processes import PATIENCE_S

T = TypeVar("T")
SUBMITTED_NS = 1_000
NOW_NS = 5_000
GROUPS = {"orders": 0, "payments": 1}


class FakeHost:
    """Host 0 of two groups: receivers 0 to 3, one in each host, and a sender 4 beside receiver 0."""

    def __init__(self) -> None:
        protocol = find_protocol("unordered")
        self.plan = protocol.deploy(Deployment(((0, 1), (0, 2)), 1, colocated=True), protocol.options())
        self.host = 0
        self.metrics = Metrics()
        self.submitted: list[tuple[NodeId, Groups, list[bytes]]] = []
        self.full = 0
        """So many submissions are refused."""
        self.waits: tuple[Wait, ...] = ()
        self.behind = ""
        self.listeners: dict[NodeId, list[Callable[[BundleOrNotice], None]]] = {}
        self.sender = self.plan.senders[0]

    def submit(self, node: NodeId, groups: Groups, payloads: Sequence[bytes]) -> MessageId | None:
        """Take note."""
        if self.full:
            self.full -= 1
            return None
        first = message_id(node, sum(len(batch) for _, _, batch in self.submitted))
        self.submitted.append((node, groups, list(payloads)))
        return first

    def add_answer_listener(self, node: NodeId, listener: Callable[[RepliedBundle], None]) -> None:
        """Nobody is answered here."""

    def add_listener(self, node: NodeId, listener: Callable[[BundleOrNotice], None]) -> None:
        """Take note."""
        self.listeners.setdefault(node, []).append(listener)

    def explain(self) -> dict[NodeId, Explanation]:
        """What the test has put there."""
        return {
            0: Explanation({"role": "receiver"}, self.waits, self.behind),
            self.sender: Explanation({"role": "sender"}),
        }

    def sending(self) -> dict[NodeId, SenderFact]:
        """How far the sender is."""
        count = sum(len(batch) for _, _, batch in self.submitted)
        return {self.sender: SenderFact(message_id(self.sender, 0), message_id(self.sender, count))}

    def deliver(
        self, number: int, *payloads: bytes, groups: Groups = (0,), stamp: Stamp | None = None
    ) -> None:
        """Something is delivered at node 0."""
        first = message_id(self.sender, number)
        bundle = Bundle(first, [SUBMITTED_NS] * len(payloads), list(payloads))
        packed = pack_bundle(*bundle)
        self.hear(DeliveredBundle(Delivered(packed, groups, self.sender, stamp, 7), bundle, NOW_NS))

    def hear(self, delivered: DeliveredBundle | Dropped | View) -> None:
        """Something is delivered at node 0."""
        for listener in self.listeners[0]:
            listener(delivered)


class Lab:
    """A fake host, its control server, and the loop they run in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host = FakeHost()
        self.stopped = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.server = ControlServer(
            self.host,
            path,
            cluster="demo",
            groups=GROUPS,
            stop=self.stopped.set,
            sending=self.host.sending,
            details=lambda: {"keys": ["0000002a"], "links": {}},
            clock=lambda: NOW_NS,
        )
        self._thread = threading.Thread(target=self.loop.run_forever)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop, from outside."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def call(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call something in the loop, from outside."""

        async def calling() -> T:
            return function(*arguments, **named)

        return self.run(calling())

    def client(self, timeout_s: float = PATIENCE_S) -> ControlClient:
        """A new client."""
        return ControlClient(0, self.path, timeout_s)

    @contextmanager
    def running(self) -> Iterator["Lab"]:
        """Serve, and leave nothing behind."""
        self._thread.start()
        try:
            self.run(self.server.start())
            yield self
            self.run(self.server.close())
            self.run(_come_to_rest())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(20)
            self.loop.close()


async def _come_to_rest() -> None:
    """Let those end who came just before the server was closed."""
    for _ in range(1_000):
        await asyncio.sleep(0.01)
        if asyncio.all_tasks() == {asyncio.current_task()}:
            return
    raise AssertionError("somebody is still being served")

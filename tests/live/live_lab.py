"""All hosts of a plan in one event loop, on real sockets, with an ear at each receiver."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, HostId, MessageId, NodeId, Plan
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.loop import run
from ordercast.net.host.store import Store
from ordercast.net.links.keyring import Keyring
from ordercast.net.links.seal import Seal, Sealed, Unsealed
from ordercast.net.links.wire import Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Transport
from ordercast.net.transports.udp import UdpTransport
from tests.live.processes import PATIENCE_S
from tests.live.wire_pairs import KEYS
from tests.live.wires import free_addresses, until

__all__ = ["Lab", "hydra_plan", "lab", "run"]

WINDOW = 512 << 10
BUFFER = 4 << 20


def hydra_plan(receivers: int = 3, sequencers: int = 2, **options: Any) -> Plan:
    """One group, and a sender beside each receiver."""
    protocol = find_protocol("hydra")
    deployment = Deployment.disjoint(1, receivers, receivers, colocated=True)
    return protocol.deploy(deployment, protocol.options(sequencers=sequencers, **options))


class Lab:
    """The hosts of a plan, and what their receivers were delivered."""

    def __init__(self, plan: Plan, *, keys: Keyring | None = KEYS, datagram_max: int = 1_400) -> None:
        self.plan = plan
        self.keys = keys
        self.datagram_max = datagram_max
        self.ids: list[HostId] = sorted({node.host for node in plan.nodes})
        ports = list(free_addresses(len(self.ids)).values())
        self.addresses = dict(zip(self.ids, ports, strict=True))
        self.seen_by: Callable[[HostId], Mapping[HostId, Address]] = lambda host: self.addresses
        self.hosts: dict[HostId, LiveHost] = {}
        self.heard: dict[NodeId, list[BundleOrNotice]] = {}

    def transport(self, host: HostId) -> Transport:
        """What carries a host's datagrams."""
        addresses = dict(self.seen_by(host))
        return UdpTransport(host, addresses, self.datagram_max, BUFFER)

    def store(self, host: HostId) -> Store:
        """What a host keeps its state in."""
        return Store(None)

    async def start(self, host: HostId, keys: Keyring | None = None) -> LiveHost:
        """Start a host, or a new life of it that remembers nothing."""
        session, ring = new_session(), keys or self.keys
        seal: Seal = Unsealed(host, session) if ring is None else Sealed(host, session, ring)
        wire = Wire(host, self.ids, self.transport(host), seal, Metrics(), window=WINDOW)
        live = LiveHost(self.plan, host, wire, store=self.store(host))
        for node in live.nodes:
            if any(node in members for members in self.plan.groups.values()):
                self.heard[node] = []
                live.add_listener(node, self.heard[node].append)
        await live.start()
        self.hosts[host] = live
        return live

    async def stop(self, host: HostId) -> None:
        """Stop a host."""
        live = self.hosts.pop(host)
        await live.stop()
        assert live.failure is None, live.failure

    def submit(self, sender: NodeId, *payloads: bytes) -> MessageId:
        """Hand messages for group 0 to a sender."""
        first = self.hosts[self.plan.nodes[sender].host].submit(sender, (0,), payloads)
        assert first is not None
        return first

    def payloads(self, node: NodeId) -> list[bytes]:
        """The messages that a receiver was delivered, in order."""
        return [
            bytes(payload)
            for heard in self.heard[node]
            if isinstance(heard, DeliveredBundle)
            for payload in heard.bundle.payloads
        ]

    async def until_delivered(self, count: int, seconds: float = PATIENCE_S) -> None:
        """Wait until each receiver has so many messages."""
        await until(lambda: all(len(self.payloads(node)) >= count for node in self.heard), seconds)

    def count(self, name: str) -> int:
        """A counter, of all hosts together."""
        return sum(int(getattr(host.metrics, name)) for host in self.hosts.values())

    def failures(self) -> list[BaseException]:
        """What stopped hosts."""
        return [host.failure for host in self.hosts.values() if host.failure is not None]


@asynccontextmanager
async def lab(made: Lab) -> AsyncIterator[Lab]:
    """All hosts started, and stopped at the end."""
    try:
        for host in made.ids:
            await made.start(host)
        yield made
    finally:
        for live in made.hosts.values():
            await live.stop()
        await asyncio.sleep(0)

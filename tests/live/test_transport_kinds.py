"""Whole hosts from a cluster's file on each kind of transport, and with misfortune on purpose."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.loop import run
from ordercast.net.tools.attendance import Attendance
from ordercast.net.tools.client import ControlClient
from ordercast.net.transports.impair import ImpairedTransport, Impairment
from ordercast.net.transports.multicast import MulticastTransport
from ordercast.net.transports.switched import SwitchedTransport
from ordercast.net.transports.tcp import TcpTransport
from ordercast.net.transports.transport import Transport
from ordercast.net.transports.udp import UdpTransport
from tests.live.cluster_files import write_cluster
from tests.live.wires import until

SENDER = 3
KINDS: dict[str, tuple[str, type[Transport]]] = {
    "udp": ('[transport]\nkind = "udp"', UdpTransport),
    "udp in small datagrams": ('[transport]\nkind = "udp"\ndatagram_bytes = 1400', UdpTransport),
    "multicast": ('[transport]\nkind = "multicast"\ndatagram_bytes = 1400', MulticastTransport),
    "tcp": ('[transport]\nkind = "tcp"', TcpTransport),
}


def written(folder: Path, transport: str = "") -> Path:
    """Three receivers of atomic multicast, and a sender beside each."""
    return write_cluster(
        folder,
        protocol="atomic_multicast",
        receivers=3,
        top="senders = 3\ncolocated = true\ntrace = false",
        more=transport,
    )


class Hosts:
    """The hosts of a cluster in this loop, and what each receiver was delivered."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.live: dict[HostId, LiveHost] = {}
        self.payloads: dict[HostId, list[bytes]] = {}

    async def start(self, host: HostId, impaired: Random | None) -> None:
        live = open_host(self.cluster, host, impaired=impaired)
        heard = self.payloads[host] = []

        def listen(one: BundleOrNotice) -> None:
            if isinstance(one, DeliveredBundle):
                heard.extend(bytes(payload) for payload in one.bundle.payloads)

        live.add_listener(host, listen)
        await live.start()
        self.live[host] = live

    def has_all(self, sent: list[bytes]) -> bool:
        return all(set(heard) >= set(sent) for heard in self.payloads.values())


@asynccontextmanager
async def started(
    path: Path, impaired: Callable[[HostId], Random | None] = lambda host: None
) -> AsyncIterator[Hosts]:
    hosts = Hosts(load_cluster(path))
    try:
        for spec in hosts.cluster.hosts:
            await hosts.start(spec.id, impaired(spec.id))
        yield hosts
    finally:
        for live in hosts.live.values():
            await live.stop()


async def order(hosts: Hosts, name: bytes, size: int = 0) -> None:
    """Send from all hosts, and see that all receivers get all in one order."""
    sent = [
        b"%s %d of %d" % (name, number, host) + bytes(size) for number in range(40) for host in hosts.live
    ]
    before = {host: len(heard) for host, heard in hosts.payloads.items()}
    for number, payload in enumerate(sent):
        host = number % len(hosts.live)
        assert hosts.live[host].submit(SENDER + host, (0,), [payload]) is not None
        await asyncio.sleep(0.001)
    await until(lambda: hosts.has_all(sent))
    orders = [heard[before[host] :] for host, heard in hosts.payloads.items()]
    assert orders[0] == orders[1] == orders[2]
    assert sorted(orders[0]) == sorted(sent)
    assert [live.failure for live in hosts.live.values()] == [None] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_ordered_on_each_kind_of_transport(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        text, transport = KINDS[kind]
        async with started(written(tmp_path, text)) as hosts:
            assert all(type(live.wire.transport) is transport for live in hosts.live.values())
            await order(hosts, b"small")
            await order(hosts, b"large", 20_000)

    run(main())


def test_a_host_marked_for_tcp_is_part_of_the_order(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace("id = 2\n", 'id = 2\ntransport = "tcp"\n'))

    async def main() -> None:
        async with started(path) as hosts:
            ways = [live.wire.transport for live in hosts.live.values()]
            assert all(isinstance(way, SwitchedTransport) for way in ways)
            await order(hosts, b"mixed")
            special = [way.special for way in ways if isinstance(way, SwitchedTransport)]
            opened = [way.connections for way in special if isinstance(way, TcpTransport)]
            assert opened == [1, 1, 2]

    run(main())


async def asked(hosts: Hosts, host: HostId, ask: Callable[[ControlClient], None]) -> None:
    """Ask a host something over its control socket, while the loop goes on."""

    def speak() -> None:
        with ControlClient(host, hosts.cluster.socket_path(host)) as client:
            ask(client)

    answer: Awaitable[None] = asyncio.to_thread(speak)
    async with Attendance(hosts.live[host], hosts.cluster, stop=lambda: None):
        await answer


def test_a_host_that_was_not_started_for_it_cannot_be_impaired(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(written(tmp_path)) as hosts:
            with pytest.raises(LocalError, match="was not started with --impair"):
                await asked(hosts, 0, lambda client: client.impair(Impairment(loss=1.0)))
            await order(hosts, b"unharmed")

    run(main())


def test_one_that_was_is_impaired_and_healed_over_its_control_socket(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(written(tmp_path), lambda host: Random(host)) as hosts:
            await order(hosts, b"before")
            harm = Impairment(loss=0.1, duplication=0.2, reordering=0.2, latency_us=500)
            for host in hosts.live:
                await asked(hosts, host, lambda client: client.impair(harm))
            await order(hosts, b"meanwhile")
            for host in hosts.live:
                await asked(hosts, host, lambda client: client.impair(Impairment()))
            transports = [live.wire.transport for live in hosts.live.values()]
            for transport in transports:
                assert isinstance(transport, ImpairedTransport)
                assert transport.lost and transport.duplicated and transport.delayed
            await order(hosts, b"after")

    run(main())

"""Strangers at the TCP port of a cluster: they hold connections open, and take no place of a peer."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import TypeAlias

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, HostId, Plan
from ordercast.net.transports import tcp
from ordercast.net.transports.address import Address
from ordercast.net.transports.tcp import TcpTransport
from ordercast.net.transports.transport import Datagram, Origin, Transport
from ordercast.toml_file import convert_options
from tests.live.live_lab import Lab, lab, run
from tests.live.processes import PATIENCE_S
from tests.live.wires import Ear, free_addresses, until

Caller: TypeAlias = Callable[[bytes], Awaitable[asyncio.StreamReader]]
STRANGERS = 64
FEED_S = 0.02
MESSAGES = 150
PAUSE_S_MAX = 2.0
"""Far longer than a message takes on a busy machine, and shorter than a cluster without connections takes."""


class TcpLab(Lab):
    """Hosts that are connected by TCP."""

    def transport(self, host: HostId) -> Transport:
        return TcpTransport(host, dict(self.addresses), datagram_max=self.datagram_max)


def plan() -> Plan:
    """Two receivers of atomic multicast, which loses nothing, and two senders."""
    protocol = find_protocol("atomic_multicast")
    options = convert_options(protocol.live_options({}), protocol, list_keys=True)
    return protocol.deploy(Deployment.disjoint(1, 2, 2, colocated=True), options)


async def stranger(address: Address) -> None:
    """Begin a record and feed it byte by byte, for ever; come again when thrown out."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*address)
            writer.write((1_000).to_bytes(4, "little"))
            try:
                while not reader.at_eof():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(FEED_S)
            finally:
                writer.close()
        await asyncio.sleep(FEED_S)


@asynccontextmanager
async def strangers(addresses: list[Address], count: int) -> AsyncIterator[None]:
    """So many strangers at each address."""
    tasks = [asyncio.create_task(stranger(address)) for address in addresses for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def record(text: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + text


class Judge(Ear):
    """Takes datagrams for what they say they are."""

    def receive(self, datagram: Datagram) -> Origin | None:
        super().receive(datagram)
        text = bytes(datagram)
        return {b"peer": Origin(1, True), b"sealed": Origin(1, False)}.get(text)


@asynccontextmanager
async def judged(monkeypatch: pytest.MonkeyPatch, places: int) -> AsyncIterator[tuple[TcpTransport, Caller]]:
    """Host 0 with so many places for strangers, and a way to open a connection to it and speak."""
    monkeypatch.setattr(tcp, "UNPROVED_MAX", places)
    addresses, judge = free_addresses(2), Judge()
    transport = TcpTransport(0, addresses, datagram_max=1_000)
    writers: list[asyncio.StreamWriter] = []

    async def call(text: bytes) -> asyncio.StreamReader:
        heard = len(judge.heard)
        reader, writer = await asyncio.open_connection(*addresses[0])
        writers.append(writer)
        writer.write(record(text))
        await until(lambda: len(judge.heard) > heard)
        return reader

    await transport.start(judge.receive, judge.drained)
    try:
        yield transport, call
    finally:
        for writer in writers:
            writer.close()
        await transport.close()


async def ended(reader: asyncio.StreamReader) -> None:
    """Wait until the other side has closed the connection."""
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


def test_a_peer_keeps_its_place_and_strangers_make_room_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with judged(monkeypatch, 2) as (transport, call):
            peer = await call(b"peer")
            first, *others = [await call(b"stranger") for _ in range(5)]
            await ended(first)
            assert transport.displaced == 3 and not peer.at_eof() and not others[-1].at_eof()

    asyncio.run(main())


def test_a_holder_of_the_key_stays_longer_than_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with judged(monkeypatch, 2) as (_, call):
            sealed = await call(b"sealed")
            for stranger in [await call(b"stranger") for _ in range(4)][:-1]:
                await ended(stranger)
            assert not sealed.at_eof()
            await call(b"sealed")
            await call(b"sealed")
            await ended(sealed)  # of several, the oldest goes

    asyncio.run(main())


def test_who_proves_nothing_in_time_is_thrown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(tcp, "UNPROVED_S_MAX", 0.2)
        async with judged(monkeypatch, 8) as (transport, call):
            peer, sealed, stranger = [await call(text) for text in (b"peer", b"sealed", b"stranger")]
            await ended(sealed)
            await ended(stranger)
            assert transport.displaced == 2 and not peer.at_eof()

    asyncio.run(main())


def test_a_peer_has_only_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with judged(monkeypatch, 8) as (transport, call):
            lost, *kept = [await call(b"peer") for _ in range(tcp.CONNECTIONS_PER_PEER + 1)]
            await ended(lost)
            assert transport.displaced == 1 and not any(reader.at_eof() for reader in kept)

    asyncio.run(main())


def test_strangers_who_hold_connections_open_do_not_stop_a_cluster() -> None:
    async def main() -> None:
        made = TcpLab(plan())
        async with lab(made):
            made.submit(made.plan.senders[0], b"begin")
            await made.until_delivered(1)
            times: list[float] = []
            async with strangers([made.addresses[host] for host in made.ids], STRANGERS):
                for number in range(MESSAGES):
                    made.submit(made.plan.senders[number % 2], b"%d" % number)
                    came = len(made.heard[0])
                    await asyncio.sleep(0.01)
                    if len(made.heard[0]) > came:
                        times.append(time.monotonic())
            await made.until_delivered(MESSAGES + 1)
            assert max(after - before for before, after in pairwise(times)) < PAUSE_S_MAX
            assert made.failures() == []

    run(main())

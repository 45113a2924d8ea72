"""Datagrams over TCP on real sockets, through broken connections, strangers and full buffers."""

import asyncio
import socket
from pathlib import Path
from random import Random
from struct import pack

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.api.join import join
from ordercast.net.cluster.file import load_cluster
from ordercast.net.transports import tcp
from ordercast.net.transports.switched import SwitchedTransport, hosts_by_tcp
from ordercast.net.transports.tcp import TcpTransport
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S
from tests.live.wires import Ear, free_addresses, listening, until

MAX = 60_000


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nobody proves anything, and a busy machine may need its time; test_strangers has the limits."""
    monkeypatch.setattr(tcp, "UNPROVED_S_MAX", PATIENCE_S)


def pair(name: str = "127.0.0.1", **options: int) -> tuple[TcpTransport, TcpTransport]:
    addresses = free_addresses(2, name)
    return (
        TcpTransport(0, addresses, datagram_max=MAX, **options),
        TcpTransport(1, addresses, datagram_max=MAX, **options),
    )


def test_an_address_that_is_taken_or_does_not_exist_is_the_callers_fault() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        async with listening(TcpTransport(0, addresses, datagram_max=MAX)):
            again = TcpTransport(0, addresses, datagram_max=MAX)
            with pytest.raises(
                LocalError, match=rf"cannot listen on 127.0.0.1:{addresses[0].port}: .*in use"
            ):
                await again.start(Ear().receive, Ear().drained)
            await again.close()
        nowhere = TcpTransport(0, {0: ("no-such-host.invalid", 7_400)}, datagram_max=MAX)
        with pytest.raises(LocalError, match=r"cannot listen on no-such-host\.invalid:7400"):
            await nowhere.start(Ear().receive, Ear().drained)

    asyncio.run(run())


def test_a_program_that_joins_by_tcp_where_the_port_is_taken_is_told_so(tmp_path: Path) -> None:
    async def run() -> None:
        config = write_cluster(tmp_path, more='[transport]\nkind = "tcp"')
        address = load_cluster(config).host(0).address
        with socket.create_server(address), pytest.raises(LocalError, match="cannot listen"):
            await join(config, "orders", host=0).__aenter__()
        async with join(config, "orders", host=0):
            pass  # all was let go of

    asyncio.run(run())


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost"])
def test_datagrams_arrive_whole_and_in_order(name: str) -> None:
    async def run() -> None:
        first, second = pair(name)
        rng = Random(1)
        sent = [rng.randbytes(rng.choice((1, 64, 1_400, MAX))) for _ in range(400)]
        async with listening(first, second) as (_, ear):
            for number, datagram in enumerate(sent):
                first.send(1, datagram)
                if number % 7 == 0:
                    first.flush()
                    await asyncio.sleep(0)
            first.flush()
            await until(lambda: len(ear.heard) == len(sent))
            assert ear.heard == sent
            assert first.losses == 0
            assert first.connections == 1

    asyncio.run(run())


def test_many_records_are_handed_over_in_one_burst() -> None:
    async def run() -> None:
        first, second = pair()
        async with listening(first, second) as (_, ear):
            for number in range(1_000):
                first.send(1, b"%04d" % number)
            first.flush()
            await until(lambda: len(ear.heard) == 1_000)
            assert ear.drains < 10
            assert ear.heard_at_drain[-1] == 1_000

    asyncio.run(run())


def test_nothing_leaves_before_the_flush() -> None:
    async def run() -> None:
        first, second = pair()
        async with listening(first, second) as (_, ear):
            first.send(1, b"one")
            await asyncio.sleep(0.05)
            assert (ear.heard, first.connections) == ([], 0)
            first.flush()
            await until(lambda: ear.heard == [b"one"])

    asyncio.run(run())


def test_records_cut_anywhere_are_put_together_again() -> None:
    async def run() -> None:
        addresses = free_addresses(1)
        transport = TcpTransport(0, addresses, datagram_max=MAX)
        datagrams = [bytes([number]) * (number + 1) for number in range(40)]
        stream = b"".join(pack("<I", len(datagram)) + datagram for datagram in datagrams)
        async with listening(transport) as (ear,):
            reader, writer = await asyncio.open_connection(*addresses[0])
            for start in range(0, len(stream), 3):
                writer.write(stream[start : start + 3])
                await writer.drain()
                if start % 30 == 0:
                    await asyncio.sleep(0.001)
            await until(lambda: ear.heard == datagrams)
            writer.close()
            assert await reader.read() == b""

    asyncio.run(run())


@pytest.mark.parametrize("length", [0, MAX + 1, 0xFFFF_FFFF])
def test_a_record_of_impossible_length_ends_the_connection_and_is_counted(length: int) -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        transport = TcpTransport(0, addresses, datagram_max=MAX)
        peer = TcpTransport(1, addresses, datagram_max=MAX)
        async with listening(transport, peer) as (ear, _):
            reader, writer = await asyncio.open_connection(*addresses[0])
            writer.write(pack("<I", 4) + b"good" + pack("<I", length) + b"rest")
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()
            assert ear.heard == [b"good"]
            assert transport.refused_records == 1
            peer.send(0, b"others are not touched")
            peer.flush()
            await until(lambda: len(ear.heard) == 2)

    asyncio.run(run())


def test_a_peer_that_comes_later_is_reached_and_what_was_lost_meanwhile_is_counted() -> None:
    async def run() -> None:
        first, second = pair()
        async with listening(first):
            first.send(1, b"lost")
            first.flush()
            await until(lambda: first.failures >= 2)
            assert first.losses == 1
            async with listening(second) as (ear,):
                await until(lambda: first.connections == 1)
                first.send(1, b"arrives")
                first.flush()
                await until(lambda: b"arrives" in ear.heard)
            assert b"lost" not in ear.heard

    asyncio.run(run())


def test_a_restarted_peer_is_reached_again() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        first = TcpTransport(0, addresses, datagram_max=MAX)
        async with listening(first):
            for life in (b"first", b"second"):
                async with listening(TcpTransport(1, addresses, datagram_max=MAX)) as (ear,):
                    await send_until_heard(first, 1, life, ear)
            assert first.connections == 2

    asyncio.run(run())


async def send_until_heard(transport: TcpTransport, host: HostId, datagram: bytes, ear: Ear) -> None:
    for _ in range(200):
        transport.send(host, datagram)
        transport.flush()
        await asyncio.sleep(0.01)
        if datagram in ear.heard:
            return
    raise AssertionError("never heard")


def test_what_waits_for_a_peer_that_does_not_read_is_bounded() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        sender = TcpTransport(0, addresses, datagram_max=MAX, outgoing_bytes_max=1 << 20)
        deaf = socket.create_server(addresses[1])  # its kernel accepts connections, and nobody reads
        try:
            async with listening(sender):
                sender.send(1, b"open")
                sender.flush()
                await until(lambda: sender.connections == 1)
                for _ in range(1_000):
                    sender.send(1, bytes(MAX))
                    sender.flush()
                    await asyncio.sleep(0)
                # What the kernels of both sides took is theirs; of the other datagrams 17 fit in 1 MiB.
                assert 1_000 - 17 - (16 << 20) // MAX < sender.losses < 1_000 - 17
        finally:
            deaf.close()

    asyncio.run(run())


def test_bytes_on_a_connection_that_was_opened_to_send_are_ignored() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        sender = TcpTransport(0, addresses, datagram_max=MAX)
        heard: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(pack("<I", 4) + b"fake")
            for _ in range(2):
                heard.append(await reader.readexactly(7))
            writer.close()

        server = await asyncio.start_server(answer, *addresses[1])
        async with listening(sender) as (ear,):
            sender.send(1, b"abc")
            sender.flush()
            await until(lambda: len(heard) == 1)
            sender.send(1, b"def")
            sender.flush()
            await until(lambda: len(heard) == 2)
            assert heard == [pack("<I", 3) + b"abc", pack("<I", 3) + b"def"]
            assert ear.heard == []
        server.close()

    asyncio.run(run())


def test_closing_while_a_connection_is_attempted_leaves_nothing_behind() -> None:
    async def run() -> None:
        first, _ = pair()
        async with listening(first):
            first.send(1, b"never")
            first.flush()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(run())


def test_links_of_a_marked_host_are_by_tcp_and_the_others_are_not() -> None:
    assert hosts_by_tcp(0, {2}, range(4)) == {2}
    assert hosts_by_tcp(2, {2}, range(4)) == {0, 1, 3}
    assert hosts_by_tcp(1, (), range(4)) == frozenset()


def test_a_switched_transport_sends_each_host_what_is_its_by_its_own_way() -> None:
    async def run() -> None:
        usual, special = free_addresses(3), free_addresses(3)
        ways = [
            (TcpTransport(host, usual, datagram_max=MAX), TcpTransport(host, special, datagram_max=1_400))
            for host in range(3)
        ]
        hosts = [SwitchedTransport(*ways[host], hosts_by_tcp(host, {2}, range(3))) for host in range(3)]
        assert hosts[0].datagram_max == 1_400
        async with listening(*hosts) as ears:
            hosts[0].send_many((1, 2), b"both")
            hosts[0].send(1, b"one")
            hosts[2].send_many((0, 1), b"from the marked")
            for host in hosts:
                host.flush()
            await until(lambda: [len(ear.heard) for ear in ears] == [1, 3, 1])
            assert sorted(ears[1].heard) == [b"both", b"from the marked", b"one"]
            assert (ways[0][0].connections, ways[0][1].connections) == (1, 1)
            assert (ways[2][0].connections, ways[2][1].connections) == (0, 2)

    asyncio.run(run())

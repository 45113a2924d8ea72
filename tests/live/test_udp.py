"""UDP on real sockets, with the kernel's offload and without it, on loopback and over a real link."""

import asyncio
from random import Random

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.transports import udp
from ordercast.net.transports.address import Address
from ordercast.net.transports.udp import UdpTransport
from tests.live.namespaces import cable, inside
from tests.live.processes import PATIENCE_S
from tests.live.wires import LOOPBACK, Ear, free_addresses, listening, until, until_heard

BUFFER = 4 << 20
NOWHERE = "no-such-host.invalid"


def made(
    host: HostId, addresses: dict[HostId, Address], datagram_max: int = 1_400, **options: bool
) -> UdpTransport:
    return UdpTransport(host, addresses, datagram_max, BUFFER, **options)


def some(count: int, largest: int, seed: int = 1) -> list[bytes]:
    rng = Random(seed)
    return [rng.randbytes(rng.choice((1, 64, largest, largest, largest))) for _ in range(count)]


async def send_all(sender: UdpTransport, host: HostId, datagrams: list[bytes], ear: Ear) -> None:
    """In turns, at the pace of the receiver."""
    for start in range(0, len(datagrams), 50):
        for datagram in datagrams[start : start + 50]:
            sender.send(host, datagram)
        sender.flush()
        await until_heard(ear, min(start + 50, len(datagrams)))


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize("busy_poll", [True, False])
@pytest.mark.parametrize(
    ("name", "datagram_max"), [("127.0.0.1", 1_400), ("::1", 1_400), ("localhost", 60_000)]
)
def test_datagrams_arrive_as_they_were_sent(
    name: str, datagram_max: int, busy_poll: bool, offload: bool
) -> None:
    async def run() -> None:
        addresses = free_addresses(2, name)
        first, second = (
            made(host, addresses, datagram_max, busy_poll=busy_poll, offload=offload) for host in (0, 1)
        )
        datagrams = some(300, datagram_max)
        async with listening(first, second) as (back, ear):
            await send_all(first, 1, datagrams, ear)
            assert ear.heard == datagrams
            second.send(0, b"back")
            second.flush()
            await until(lambda: back.heard == [b"back"])
            assert first.losses == second.losses == 0
            assert first.offload == (offload and datagram_max == 1_400,) * 2

    asyncio.run(run())


@pytest.mark.parametrize("offload", [True, False])
def test_a_burst_is_bounded_and_ends_with_a_word(offload: bool) -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        first, second = (made(host, addresses, offload=offload) for host in (0, 1))
        async with listening(first, second) as (_, ear):
            for datagram in [bytes(100)] * 300:
                first.send(1, datagram)
            first.flush()
            await until(lambda: len(ear.heard) == 300)
            await until(lambda: ear.heard_at_drain[-1] == 300)
            # A piece is read to its end, and has at most 64 datagrams.
            longest = max(b - a for a, b in zip([0, *ear.heard_at_drain], ear.heard_at_drain, strict=False))
            assert longest < udp.BURST + 64
            assert ear.drains < 60

    asyncio.run(run())


def test_a_datagram_to_nobody_is_no_error() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        sender = made(0, addresses)
        async with listening(sender) as (ear,):
            for _ in range(20):
                sender.send(1, b"anybody there?")
                sender.flush()
                await asyncio.sleep(0.001)
            assert ear.heard == []

    asyncio.run(run())


@pytest.mark.parametrize("offload", [True, False])
def test_a_datagram_that_the_kernel_refuses_is_counted(offload: bool) -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        sender = made(0, addresses, offload=offload)
        async with listening(sender):
            sender.send(1, bytes(70_000))
            sender.flush()
            assert sender.losses == 1

    asyncio.run(run())


def test_an_own_address_that_is_taken_or_does_not_exist_is_the_callers_fault() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        async with listening(made(0, addresses)):
            with pytest.raises(LocalError, match="cannot listen"):
                await made(0, addresses).start(Ear().receive, Ear().drained)
        nowhere = {0: Address(NOWHERE, 7_400), 1: addresses[1]}
        with pytest.raises(LocalError, match="cannot find the address of"):
            await made(0, nowhere).start(Ear().receive, Ear().drained)
        async with listening(made(0, addresses)):  # the failed attempt let go of the address
            pass

    asyncio.run(run())


def test_the_name_of_a_peer_that_is_not_known_yet_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        addresses = free_addresses(3)
        sender = made(0, addresses | {1: Address(NOWHERE, addresses[1].port)})
        async with listening(sender, made(1, addresses), made(2, addresses)) as (_, first, second):
            sender.send_many((1, 2), b"early")
            sender.flush()
            await until_heard(second, 1)
            assert (first.heard, second.heard, sender.losses) == ([], [b"early"], 1)
            loop = asyncio.get_running_loop()
            look_up = loop.getaddrinfo
            monkeypatch.setattr(
                loop, "getaddrinfo", lambda _, port, **hints: look_up(LOOPBACK, port, **hints)
            )
            await until(lambda: not sender._unresolved())
            sender.send(1, b"late")
            sender.flush()
            await until_heard(first, 1)
            assert (first.heard, sender.losses) == ([b"late"], 1)

    monkeypatch.setattr(udp, "RESOLVE_AGAIN_S", 0.01)
    asyncio.run(run())


def test_a_host_that_knows_no_name_of_its_peers_starts_and_closes() -> None:
    async def run() -> None:
        addresses = free_addresses(1) | {1: Address(NOWHERE, 7_400), 2: Address(NOWHERE, 7_401)}
        transport = made(0, addresses)
        async with listening(transport):
            looking = transport._resolving
            assert transport._unresolved() == [1, 2] and looking is not None
        await asyncio.sleep(0)
        assert looking.cancelled()

    asyncio.run(run())


def test_a_name_that_takes_too_long_does_not_hold_up_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", lambda *args, **hints: asyncio.sleep(2 * PATIENCE_S))
        transport = made(0, addresses)
        async with asyncio.timeout(PATIENCE_S), listening(transport):
            transport.send(1, b"lost")
            assert transport.losses == 1

    monkeypatch.setattr(udp, "RESOLVE_S_MAX", 0.01)
    asyncio.run(run())


def test_nothing_is_received_after_closing_in_the_middle_of_a_burst() -> None:
    async def run() -> None:
        addresses = free_addresses(2)
        first, second = (made(host, addresses, offload=False) for host in (0, 1))
        heard: list[bytes] = []
        closing: list[asyncio.Task[None]] = []

        def receive(datagram: object) -> None:
            heard.append(bytes(datagram))  # type: ignore[call-overload]
            if len(heard) == 1:
                closing.append(asyncio.ensure_future(second.close()))

        await second.start(receive, lambda: None)
        async with listening(first):
            for _ in range(3 * udp.BURST):
                first.send(1, b"many")
            await until(lambda: bool(closing))
            await closing[0]
            count = len(heard)
            await asyncio.sleep(0.02)
            assert len(heard) == count <= 2 * udp.BURST

    asyncio.run(run())


@pytest.mark.parametrize("offload", [True, False])
def test_over_a_link_of_1500_bytes_datagrams_of_1400_arrive(offload: bool) -> None:
    async def run() -> None:
        with cable() as link:
            addresses = {host: Address(link.addresses[host], 7_400) for host in (0, 1)}
            transports = [made(host, addresses, offload=offload) for host in (0, 1)]
            ear = Ear()
            for host, transport in enumerate(transports):
                with inside(link.names[host]):
                    await transport.start(ear.receive, ear.drained)
            try:
                datagrams = some(300, 1_400)
                await send_all(transports[0], 1, datagrams, ear)
                assert ear.heard == datagrams
                assert [transport.losses for transport in transports] == [0, 0]
            finally:
                for transport in transports:
                    await transport.close()

    asyncio.run(run())

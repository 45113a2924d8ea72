"""Misfortune on purpose: fates are as asked for, the same for the same seed, and bounded in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.transports import impair
from ordercast.net.transports.address import Address
from ordercast.net.transports.impair import ImpairedTransport, Impairment, read_impairment
from ordercast.net.transports.switched import SwitchedTransport
from ordercast.net.transports.transport import Receive, Transport
from tests.live.wires import until


class Notebook(Transport):
    """Writes down what it is asked to send."""

    datagram_max = 1_400

    def __init__(self) -> None:
        self.sent: list[tuple[HostId, bytes]] = []
        self.together: list[tuple[HostId, ...]] = []
        self.flushes = 0
        self.known: list[HostId] = []
        """Hosts that came later and were not removed."""

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        receive(b"heard")
        drained()

    def send(self, host: HostId, datagram: bytes) -> None:
        self.sent.append((host, datagram))

    def send_many(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        self.together.append(hosts)
        super().send_many(hosts, datagram)

    def add_host(self, host: HostId, address: Address) -> None:
        self.known.append(host)

    def remove_host(self, host: HostId) -> None:
        self.known.remove(host)

    def flush(self) -> None:
        self.flushes += 1

    async def close(self) -> None:
        pass


def made(impairment: Impairment | None = None, seed: int = 1) -> tuple[Notebook, ImpairedTransport]:
    notebook = Notebook()
    return notebook, ImpairedTransport(notebook, Random(seed), impairment)


def numbers(count: int) -> list[bytes]:
    return [b"%05d" % number for number in range(count)]


def test_without_settings_everything_passes_as_it_is() -> None:
    notebook, transport = made()
    transport.send(1, b"one")
    transport.send_many((1, 2), b"two")
    transport.flush()
    assert notebook.sent == [(1, b"one"), (1, b"two"), (2, b"two")]
    assert (notebook.together, notebook.flushes) == ([(1, 2)], 1)


def test_what_comes_in_is_left_alone() -> None:
    async def run() -> None:
        heard: list[bytes] = []
        _, transport = made(Impairment(loss=1.0))
        await transport.start(lambda datagram: heard.append(bytes(datagram)), lambda: None)
        assert heard == [b"heard"]

    asyncio.run(run())


def test_the_share_that_was_asked_for_is_lost() -> None:
    notebook, transport = made(Impairment(loss=0.2))
    for datagram in numbers(10_000):
        transport.send(1, datagram)
    assert transport.lost + len(notebook.sent) == 10_000
    assert 1_800 < transport.lost < 2_200  # five standard deviations


def test_a_seed_gives_the_same_fates_again() -> None:
    runs = []
    for seed in (3, 3, 4):
        notebook, transport = made(Impairment(loss=0.5), seed)
        for datagram in numbers(100):
            transport.send(1, datagram)
        runs.append(notebook.sent)
    assert runs[0] == runs[1] != runs[2]


def test_duplicates_are_sent_twice_and_nothing_is_missing() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(duplication=0.3))
        for datagram in numbers(1_000):
            transport.send(1, datagram)
        await until(lambda: len(notebook.sent) == 1_000 + transport.duplicated)
        assert 230 < transport.duplicated < 370
        assert Counter(Counter(notebook.sent).values()) == {
            1: 1_000 - transport.duplicated,
            2: transport.duplicated,
        }

    asyncio.run(run())


def test_some_are_overtaken_and_none_is_missing() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(reordering=0.2, reorder_us=20_000))
        for datagram in numbers(500):
            transport.send(1, datagram)
        flushes = notebook.flushes
        await until(lambda: len(notebook.sent) == 500)
        order = [datagram for _, datagram in notebook.sent]
        assert sorted(order) == numbers(500)
        assert order != numbers(500)
        assert 0 < transport.delayed < 500
        assert notebook.flushes > flushes  # what was held back leaves without waiting for a turn

    asyncio.run(run())


def test_latency_delays_all_and_keeps_their_order() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(latency_us=30_000))
        begin = asyncio.get_running_loop().time()
        for datagram in numbers(50):
            transport.send(1, datagram)
        assert notebook.sent == []
        await until(lambda: len(notebook.sent) == 50)
        assert asyncio.get_running_loop().time() - begin >= 0.03
        assert [datagram for _, datagram in notebook.sent] == numbers(50)
        await transport.close()

    asyncio.run(run())


def test_only_what_goes_to_a_slow_host_takes_longer() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(slowed=((1, 30_000), (4, 0))))
        begin = asyncio.get_running_loop().time()
        transport.send_many((1, 2, 4), b"many")
        assert notebook.sent == [(2, b"many"), (4, b"many")]
        await until(lambda: len(notebook.sent) == 3)
        assert asyncio.get_running_loop().time() - begin >= 0.03
        transport.set_impairment(Impairment())
        transport.send(1, b"as fast as before")
        assert notebook.sent[2:] == [(1, b"many"), (1, b"as fast as before")]

    asyncio.run(run())


def test_nothing_goes_to_a_blocked_host_nor_what_was_under_way_to_it() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(latency_us=10_000))
        transport.send(1, b"under way")
        transport.send(2, b"under way")
        transport.set_impairment(Impairment(blocked=(1,)))
        transport.send(1, b"late")
        transport.send_many((1, 2, 3), b"many")
        await until(lambda: transport.blocked == 3 and len(notebook.sent) == 3)
        assert notebook.sent == [(2, b"many"), (3, b"many"), (2, b"under way")]
        transport.set_impairment(Impairment())
        transport.send(1, b"healed")
        assert notebook.sent[-1] == (1, b"healed")

    asyncio.run(run())


def test_each_copy_of_a_multicast_has_its_own_fate_and_those_that_pass_go_together() -> None:
    notebook, transport = made(Impairment(loss=0.5))
    for datagram in numbers(200):
        transport.send_many((1, 2, 3), datagram)
    sizes = Counter(len(hosts) for hosts in notebook.together)
    assert set(sizes) == {1, 2, 3}
    assert transport.lost + len(notebook.sent) == 600


def test_what_is_held_back_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impair, "HELD_BYTES_MAX", 50)

    async def run() -> None:
        notebook, transport = made(Impairment(latency_us=5_000))
        for datagram in numbers(12):
            transport.send(1, datagram)
        assert (transport.overflow, transport.losses) == (2, 2)
        await until(lambda: len(notebook.sent) == 10)
        transport.send(1, b"there is room again")
        await until(lambda: len(notebook.sent) == 11)

    asyncio.run(run())


def test_closing_forgets_what_is_held_back() -> None:
    async def run() -> None:
        notebook, transport = made(Impairment(latency_us=2_000))
        transport.send(1, b"never")
        await transport.close()
        await asyncio.sleep(0.02)
        assert notebook.sent == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": 1.5},
        {"loss": "much"},
        {"lose": 0.1},
        {"latency_us": -1},
        {"blocked": [0.5]},
        {"slowed": [1]},
        7,
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: object) -> None:
    with pytest.raises(LocalError, match="impairment"):
        read_impairment(settings)


def test_settings_are_read_as_they_come_in_json() -> None:
    assert read_impairment({"loss": 0.1, "blocked": [2, 3]}) == Impairment(loss=0.1, blocked=(2, 3))
    assert read_impairment({"slowed": [[2, 500]]}) == Impairment(slowed=((2, 500.0),))


def test_hosts_that_come_later_are_passed_on() -> None:
    inner = Notebook()
    transport = ImpairedTransport(inner, Random(0))
    transport.add_host(4, Address("127.0.0.1", 1))
    assert inner.known == [4]
    transport.remove_host(4)
    assert inner.known == []


@pytest.mark.parametrize("special_only", [False, True])
def test_a_host_that_comes_later_is_reached_like_most_others(special_only: bool) -> None:
    usual, special = Notebook(), Notebook()
    transport = SwitchedTransport(usual, special, [1], special_only=special_only)
    transport.add_host(4, Address("127.0.0.1", 1))
    assert usual.known == special.known == [4], "datagrams of the other host may come by either"
    transport.send(4, b"x")
    assert (special if special_only else usual).sent == [(4, b"x")]
    transport.remove_host(4)
    assert usual.known == special.known == []

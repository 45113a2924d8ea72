"""One datagram for all hosts of a set, on real sockets: who gets it, who does not, and how often."""

import asyncio

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, HostId, LocalError
from ordercast.net.transports.address import Address
from ordercast.net.transports.multicast import SETS_MAX, MulticastTransport, set_addresses, shared_sets
from tests.live.namespaces import cable, inside
from tests.live.wires import Ear, free_addresses, listening, until

EVERYONE, PAIR = frozenset({0, 1, 2, 3}), frozenset({1, 2})
BUFFER = 1 << 20


def first_address() -> Address:
    """One that no other test uses at the same time, for its port is free."""
    return Address("239.255.77.1", free_addresses(1)[0].port)


def made(
    addresses: dict[HostId, Address], first: Address, *, busy_poll: bool = False, offload: bool = True
) -> list[MulticastTransport]:
    sets = (EVERYONE, PAIR)
    return [
        MulticastTransport(host, addresses, 1_400, BUFFER, busy_poll, offload, sets=sets, first=first)
        for host in addresses
    ]


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize("busy_poll", [True, False])
def test_a_set_gets_one_datagram_and_its_sender_none(offload: bool, busy_poll: bool) -> None:
    async def run() -> None:
        hosts = made(free_addresses(4), first_address(), offload=offload, busy_poll=busy_poll)
        async with listening(*hosts) as ears:
            for number in range(100):
                hosts[0].send_many((1, 2, 3), b"all %03d" % number)
                hosts[1].send_many((2,), b"one %03d" % number)
                hosts[3].send_many((2, 1), b"two %03d" % number)
            for host in hosts:
                host.flush()
            await until(lambda: [len(ear.heard) for ear in ears] == [0, 200, 300, 100])
            await asyncio.sleep(0.02)
            assert [len(ear.heard) for ear in ears] == [0, 200, 300, 100]
            assert sorted(ears[2].heard) == [
                b"%s %03d" % (kind, n) for kind in (b"all", b"one", b"two") for n in range(100)
            ]
            assert [host.multicasts for host in hosts] == [100, 0, 0, 100]

    asyncio.run(run())


def test_other_sets_are_sent_to_one_by_one() -> None:
    async def run() -> None:
        hosts = made(free_addresses(4), first_address())
        async with listening(*hosts) as ears:
            hosts[0].send_many((1, 3), b"no set of the plan")
            hosts[0].send(2, b"one")
            hosts[0].flush()
            await until(lambda: [len(ear.heard) for ear in ears] == [0, 1, 1, 1])
            assert hosts[0].multicasts == 0

    asyncio.run(run())


def test_a_member_sends_to_the_others_of_its_set() -> None:
    async def run() -> None:
        sets = (frozenset({0, 1, 2}),)
        addresses, first = free_addresses(3), first_address()
        hosts = [
            MulticastTransport(host, addresses, 1_400, BUFFER, sets=sets, first=first) for host in range(3)
        ]
        async with listening(*hosts) as ears:
            for host, others in enumerate(((1, 2), (0, 2), (0, 1))):
                hosts[host].send_many(others, b"%d" % host)
                hosts[host].flush()
            await until(lambda: [len(ear.heard) for ear in ears] == [2, 2, 2])
            await asyncio.sleep(0.02)
            assert [sorted(ear.heard) for ear in ears] == [[b"1", b"2"], [b"0", b"2"], [b"0", b"1"]]

    asyncio.run(run())


def test_over_a_link_the_other_host_gets_it() -> None:
    async def run() -> None:
        with cable() as link:
            addresses = {host: Address(link.addresses[host], 7_400) for host in (0, 1)}
            transports = [
                MulticastTransport(
                    host,
                    {**addresses, 2: Address("10.77.0.3", 7_400)},  # a host that is down
                    1_400,
                    BUFFER,
                    sets=(frozenset({0, 1, 2}),),
                    first=Address("239.255.77.1", 7_399),
                )
                for host in (0, 1)
            ]
            ears = [Ear(), Ear()]
            for host, transport in enumerate(transports):
                with inside(link.names[host]):
                    await transport.start(ears[host].receive, ears[host].drained)
            try:
                for number in range(20):
                    transports[0].send_many((1, 2), b"%03d" % number)
                transports[0].flush()
                await until(lambda: len(ears[1].heard) == 20)
                assert ears[0].heard == []
            finally:
                for transport in transports:
                    await transport.close()

    asyncio.run(run())


def test_the_sets_of_a_plan_are_all_hosts_and_those_of_each_group() -> None:
    protocol = find_protocol("unordered")
    plan = protocol.deploy(Deployment(((0, 1, 2), (2, 3), (4,)), senders=2), protocol.options())
    sets = shared_sets(plan)
    assert sets[0] == frozenset(node.host for node in plan.nodes)
    assert sets[1:] == (frozenset({0, 1, 2}), frozenset({2, 3}))  # one host alone needs no address


def test_the_number_of_sets_is_bounded() -> None:
    protocol = find_protocol("unordered")
    groups = tuple((node, node + 1) for node in range(2 * SETS_MAX))
    plan = protocol.deploy(Deployment(groups), protocol.options())
    assert len(shared_sets(plan)) == SETS_MAX


def test_each_set_has_an_address_of_its_own() -> None:
    assert set_addresses(Address("239.255.0.255", 7_399), (EVERYONE, PAIR)) == {
        EVERYONE: ("239.255.0.255", 7_399),
        PAIR: ("239.255.1.0", 7_399),
    }


@pytest.mark.parametrize("host", ["127.0.0.1", "239.255.255.255", "ff02::1", "name.example"])
def test_an_address_without_room_for_the_sets_is_refused(host: str) -> None:
    with pytest.raises(LocalError):
        set_addresses(Address(host, 7_399), (EVERYONE, PAIR))


def test_addresses_of_ipv6_are_refused() -> None:
    async def run() -> None:
        transport = made(free_addresses(4, "::1"), Address("239.255.77.1", 7_399))[0]
        with pytest.raises(LocalError, match="IPv4"):
            await transport.start(Ear().receive, Ear().drained)

    asyncio.run(run())

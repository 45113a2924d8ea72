"""Fragments of large messages that the network lost: asked for, sent again, within limits on both sides."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import MILLISECOND, SECOND, Deployment, HostId, Plan
from ordercast.net.links.datagram import PLACES_MAX, Fragment, Missing, write_missing
from ordercast.net.links.fragments import (
    ASK_AGAIN_NS,
    ASKED_MAX,
    ASKS_MAX,
    QUIET_NS,
    UNFINISHED_NS,
    Fragments,
)
from ordercast.net.links.repair import KEPT_BYTES_MAX, KEPT_NS, REPEATS, Fragmented
from ordercast.net.transports.impair import ImpairedTransport, Impairment
from ordercast.net.transports.transport import Transport
from ordercast.toml_file import convert_options
from tests.deep import deep_after
from tests.live.live_lab import Lab, lab
from tests.live.wire_pairs import Net

BODY = Random(1).randbytes(20_000)


def begun(*places: int, parts: int = 10, message: int = 1) -> Fragments:
    made = Fragments()
    for place in places:
        assert made.add(Fragment(message, place, parts, memoryview(b"x")), 0) is None
    return made


def met() -> Net:
    net = Net()
    net.meet()
    return net


def say_and_lose(net: Net, lost: set[int]) -> None:
    """Host 0 tells host 1 something long, and the network loses datagrams of it."""
    net.sides[0].say(1, BODY)
    for number, (_, datagram) in enumerate(net.sides[0].box.taken()):
        if number not in lost:
            net.sides[1].wire.on_datagram(datagram)


def tick(net: Net) -> int:
    """Time goes on; how many datagrams were carried."""
    net.now += ASK_AGAIN_NS
    for side in net.sides.values():
        side.wire.tick()
        side.wire.repair()
    return len(net.carry())


@pytest.mark.parametrize("lost", [{0}, {3, 4, 9}, {14}, {*range(1, 15)}], ids=str)
def test_lost_fragments_are_asked_for_and_the_message_is_read_once(lost: set[int]) -> None:
    net = met()
    say_and_lose(net, lost)
    assert net.sides[1].bodies() == []
    for _ in range(10):
        tick(net)
    assert net.sides[1].bodies() == [BODY]
    assert net.sides[0].metrics.fragments_repeated == len(lost)
    assert tick(net) == 0, "nobody asks for anything any more"


def test_a_message_of_which_everything_is_lost_is_left_to_the_protocols() -> None:
    net = met()
    say_and_lose(net, set(range(100)))
    assert sum(tick(net) for _ in range(10)) == 0


def test_a_piece_is_repeated_to_the_one_who_lost_it() -> None:
    net = met()
    net.sides[0].wire.outbox.send((1, 2), 0, bytes(8), 2, BODY)
    net.sides[0].flush()
    for number, (host, datagram) in enumerate(net.sides[0].box.taken()):
        if number != 6:  # one copy, for host 1
            net.sides[host].wire.on_datagram(datagram)
    assert (net.sides[1].bodies(), net.sides[2].bodies()) == ([], [BODY])
    net.sides[2].reads.clear()
    tick(net)
    assert (net.sides[1].bodies(), net.sides[2].bodies()) == ([BODY], [])


def test_what_still_waits_for_the_window_is_not_sent_twice() -> None:
    net = met()
    link = net.sides[0].wire.peers[1].link
    link.window = 8 * 1024
    net.sides[0].say(1, BODY)
    waiting = len(link.queue)
    assert waiting > 5
    missing = Missing(1, tuple(range(15)))
    net.sides[0].wire.on_datagram(net.sides[1].forged(1_000, write_missing(missing)))
    assert net.sides[0].metrics.fragments_repeated == 15 - waiting


def test_a_request_for_what_was_not_said_or_not_to_that_host_is_not_answered() -> None:
    net = met()
    say_and_lose(net, set())
    net.carry()
    for counter, (host, message, place) in enumerate([(1, 99, 0), (1, 1, 60_000), (2, 1, 0)], 1_000):
        asked = net.sides[host].forged(counter, write_missing(Missing(message, (place,))))
        net.sides[0].wire.on_datagram(asked)
    net.sides[0].flush()
    assert net.sides[0].box.taken() == []
    assert net.sides[0].metrics.malformed == 0


def test_gaps_are_asked_for_first_and_then_the_end() -> None:
    made = begun(0, 2, 5)
    assert list(made.missing(QUIET_NS - 1)) == []
    assert list(made.missing(QUIET_NS)) == [Missing(1, (1, 3, 4))]
    assert list(made.missing(QUIET_NS + ASK_AGAIN_NS - 1)) == []
    assert list(made.missing(QUIET_NS + ASK_AGAIN_NS)) == [Missing(1, (1, 3, 4, 6, 7, 8, 9))]


def test_requests_have_a_limit_as_long_as_nothing_comes() -> None:
    made = begun(0, 2)
    asked = [now for now in range(0, UNFINISHED_NS, MILLISECOND) if list(made.missing(now))]
    assert len(asked) == ASKS_MAX
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert waits == [ASK_AGAIN_NS << number for number in range(ASKS_MAX - 1)]
    assert made.given_up == 0
    assert list(made.missing(UNFINISHED_NS)) == [] and made.given_up == 1
    assert made._size == 0


def test_a_piece_that_comes_gives_new_patience() -> None:
    made = begun(0, 2)
    assert list(made.missing(QUIET_NS)) == [Missing(1, (1,))]
    made.add(Fragment(1, 4, 10, memoryview(b"x")), QUIET_NS + 1)
    assert list(made.missing(QUIET_NS + ASK_AGAIN_NS)) == [Missing(1, (1, 3))]


def test_what_is_asked_for_at_a_time_is_bounded() -> None:
    made = begun(60_000, parts=65_535)
    for message in range(2, 3 * ASKED_MAX):
        made.add(Fragment(message, 1, 2, memoryview(b"x")), 0)
    asked = list(made.missing(QUIET_NS))
    assert len(asked) == ASKED_MAX
    assert asked[0] == Missing(1, tuple(range(PLACES_MAX)))
    assert {missing.message for missing in made.missing(QUIET_NS)}.isdisjoint(range(1, ASKED_MAX + 1))


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    kept = Fragmented()
    for message in range(20):
        kept.keep(message, (1,), [bytes(1 << 20)], 0)
        assert kept._size <= KEPT_BYTES_MAX
    assert kept.asked(1, Missing(3, (0,)), 0) == []
    assert kept.asked(1, Missing(4, (0,)), 0) == [bytes(1 << 20)]


def test_what_is_kept_is_let_go_of_in_time() -> None:
    kept = Fragmented()
    kept.keep(1, (1,), [b"one"], 0)
    kept.keep(2, (1,), [b"two"], 1)
    kept.forget_old(KEPT_NS)
    assert kept.asked(1, Missing(1, (0,)), KEPT_NS) == []
    assert kept.asked(1, Missing(2, (0,)), KEPT_NS) == [b"two"]
    kept.forget_old(2 * KEPT_NS)
    assert kept._size == 0 and not kept._messages


def test_a_greedy_peer_gets_no_more_than_its_share() -> None:
    kept = Fragmented()
    kept.keep(1, (1, 2), [b"one", b"two"], 0)
    given = sum(len(kept.asked(1, Missing(1, (0, 1)), 0)) for _ in range(100))
    assert given == REPEATS * 4


def test_repair_goes_on_as_long_as_a_message_is_unfinished() -> None:
    net = met()
    began: list[int] = []
    reader = net.sides[1].wire
    reader._unfinished = lambda: began.append(net.now)
    assert not reader.repair()
    say_and_lose(net, {3})
    assert len(began) == 1 and reader.repair()
    net.now += QUIET_NS
    assert reader.repair()
    net.carry()
    assert net.sides[1].bodies() == [BODY]
    assert not reader.repair()
    say_and_lose(net, {3})
    assert len(began) == 2, "and it begins anew"


class LossyLab(Lab):
    """Hosts whose network loses one datagram in a hundred."""

    def transport(self, host: HostId) -> Transport:
        self.impaired = ImpairedTransport(super().transport(host), Random(host), Impairment(loss=0.01))
        return self.impaired


PATIENT: dict[str, dict[str, object]] = {"hydra": {"patience_ns": 30 * SECOND, "hold_ns": 30 * SECOND}}
"""Hydra tells of a drop before a busy machine has repaired a message, and may: here it is to wait for it."""


def plan_of(protocol: str) -> Plan:
    found = find_protocol(protocol)
    options = convert_options(found.live_options(PATIENT.get(protocol, {})), found, list_keys=True)
    return found.deploy(Deployment.disjoint(1, 3, 3, colocated=True), options)


@pytest.mark.parametrize("protocol", deep_after(1, ["hydra", "atomic_multicast", "unordered"]))
def test_messages_of_a_megabyte_arrive_by_small_datagrams_of_which_some_are_lost(protocol: str) -> None:
    async def go() -> None:
        plan = plan_of(protocol)
        payloads = [Random(number).randbytes(1_000_000) for number in range(6)]
        async with lab(LossyLab(plan)) as made:
            sender = plan.senders[0]
            for number, payload in enumerate(payloads, 1):
                made.submit(sender, payload)
                await made.until_delivered(number)
            assert made.count("fragments_repeated") > 20
            assert made.failures() == []
            for node in made.heard:
                assert sorted(made.payloads(node)) == sorted(payloads)

    asyncio.run(go())

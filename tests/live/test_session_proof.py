"""Challenges and proofs that get lost: asked for again while something waits, and not for ever."""

import pytest

from ordercast.core import SECOND, HostId
from ordercast.net.links.session import ASK_AGAIN_NS, PAUSE_NS_MAX, REMINDERS_MAX
from tests.live.wire_pairs import Net, rejected


def spoken() -> Net:
    """Host 0 has said one thing to host 1, which does not know its session; what it asks is under way."""
    net = Net()
    net.sides[0].say(1, b"hello")
    for _, datagram in net.sides[0].box.taken():
        net.sides[1].wire.on_datagram(datagram)
    assert net.sides[1].bodies() == []
    return net


def tick(net: Net, host: HostId) -> None:
    net.now += ASK_AGAIN_NS
    net.sides[host].wire.tick()


def test_a_lost_challenge_is_repeated_though_the_peer_says_nothing_more() -> None:
    net = spoken()
    assert len(net.sides[1].box.taken()) == 1, "the challenge, which is lost"
    net.carry()
    assert net.sides[1].bodies() == []
    tick(net, 1)
    net.carry()
    assert net.sides[1].bodies() == [b"hello"]


def test_a_lost_proof_is_asked_for_again() -> None:
    net = spoken()
    for _, datagram in net.sides[1].box.taken():
        net.sides[0].wire.on_datagram(datagram)
    assert net.sides[0].box.taken(), "the proof, which is lost"
    tick(net, 1)
    net.carry()
    assert net.sides[1].bodies() == [b"hello"]


def test_nobody_is_asked_once_all_is_proven() -> None:
    net = spoken()
    net.carry()
    tick(net, 1)
    assert net.sides[1].box.taken() == []


@pytest.mark.parametrize("early", [1, ASK_AGAIN_NS - 1])
def test_an_answer_is_given_time(early: int) -> None:
    net = spoken()
    net.sides[1].box.taken()
    net.now += early
    net.sides[1].wire.tick()
    assert net.sides[1].box.taken() == []


def test_one_that_never_answers_is_not_asked_for_ever() -> None:
    net = spoken()
    net.sides[1].box.taken()
    for _ in range(SECOND // ASK_AGAIN_NS):
        tick(net, 1)
    assert len(net.sides[1].box.taken()) == REMINDERS_MAX - 1
    for _ in range(3 * SECOND // ASK_AGAIN_NS):
        tick(net, 1)
    assert len(net.sides[1].box.taken()) == 1, "the last one"
    net.now += PAUSE_NS_MAX
    net.sides[0].say(1, b"still here")
    net.carry()
    assert net.sides[1].bodies() == [b"hello", b"still here"], "but when it speaks again"


def test_who_talks_on_without_an_answer_is_challenged_rarely_and_let_in_at_last() -> None:
    net = spoken()
    for number in range(3 * SECOND // ASK_AGAIN_NS):
        net.now += ASK_AGAIN_NS
        net.sides[0].say(1, b"%d" % number)
        for _, datagram in net.sides[0].box.taken():
            net.sides[1].wire.on_datagram(datagram)
        net.sides[1].wire.tick()
    assert len(net.sides[1].box.taken()) < 20, "of 150 that the shortest pause allows"
    net.now += PAUSE_NS_MAX
    net.sides[0].say(1, b"the network is whole again")
    net.carry()
    assert net.sides[1].bodies()[-1] == b"the network is whole again"


def test_a_copy_is_refused_whatever_its_seal_says() -> None:
    net = spoken()
    net.carry()
    net.sides[0].say(1, b"more")
    ((_, datagram),) = net.sides[0].box.taken()
    net.sides[1].wire.on_datagram(datagram)
    before = rejected(net.sides[1])
    net.sides[1].wire.on_datagram(datagram[:-1] + bytes([datagram[-1] ^ 1]))
    after = rejected(net.sides[1])
    assert after.get("replay", 0) == before.get("replay", 0) + 1, "its seal is not opened"
    assert after.get("seal", 0) == before.get("seal", 0)

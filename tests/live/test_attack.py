"""What strangers can do to a host with datagrams: nothing, and it is counted."""

import os
from collections import Counter
from random import Random

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.links.datagram import HEADER, HEADER_BYTES, MAGIC, VERSION
from ordercast.net.links.keyring import Key, Keyring
from ordercast.net.links.seal import Sealed
from tests.live.proxy import flipped
from tests.live.wire_pairs import KEYS, OTHER_KEYS, Mailbox, Net, Side, data_frame, rejected

BOTH = pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plaintext"])


def met(*, sealed: bool = True) -> tuple[Net, Side, Side]:
    net = Net(sealed=sealed)
    net.meet()
    return net, net.sides[0], net.sides[1]


def the_one(box: Mailbox) -> bytes:
    ((_, datagram),) = box.taken()
    return datagram


@BOTH
@pytest.mark.parametrize("size", [1, 40, 300])
def test_a_datagram_with_any_one_bit_flipped_is_refused_and_the_true_one_still_counts(
    size: int, sealed: bool
) -> None:
    _, first, second = met(sealed=sealed)
    first.say(1, bytes(size))
    datagram = the_one(first.box)
    for bit in range(8 * len(datagram)):
        second.wire.on_datagram(flipped(datagram, bit))
    assert second.reads == []
    found = rejected(second)
    assert sum(found.values()) == 8 * len(datagram)
    assert set(found) == {"version", "key", "source", "seal"}
    assert second.box.taken() == []  # and it answered none of them
    second.wire.on_datagram(datagram)
    assert second.bodies() == [bytes(size)]


@BOTH
def test_a_datagram_cut_off_anywhere_or_made_longer_is_refused(sealed: bool) -> None:
    _, first, second = met(sealed=sealed)
    first.say(1, b"a message of some length")
    datagram = the_one(first.box)
    for length in range(len(datagram)):
        second.wire.on_datagram(datagram[:length])
    second.wire.on_datagram(datagram + b"\0")
    second.wire.on_datagram(datagram + bytes(70_000))
    assert second.reads == []
    assert rejected(second) == {
        "truncated": HEADER_BYTES,
        "oversized": 1,
        "seal": len(datagram) - HEADER_BYTES + 1,
    }


@BOTH
def test_ten_thousand_random_datagrams_do_nothing(sealed: bool) -> None:
    net, first, second = met(sealed=sealed)
    rng = Random(7)
    for _ in range(5_000):
        second.wire.on_datagram(rng.randbytes(rng.randrange(1_500)))
    key = KEYS.active.id if sealed else 0
    for _ in range(5_000):  # with a header that looks right
        header = HEADER.pack(
            MAGIC,
            VERSION,
            rng.randrange(2),
            key,
            rng.choice((0, 2)),
            rng.getrandbits(64),
            rng.getrandbits(64),
        )
        second.wire.on_datagram(header + rng.randbytes(rng.randrange(200)))
    assert second.reads == [] and second.box.taken() == []
    assert sum(rejected(second).values()) == 10_000
    first.say(1, b"still here")
    net.carry()
    assert second.bodies() == [b"still here"]


def test_one_with_another_key_is_not_heard_whatever_it_says_of_its_key() -> None:
    net = Net()
    stranger = net.restart(0, OTHER_KEYS)
    liar_key = Key(KEYS.active.id, OTHER_KEYS.active.secret)
    liar = net.restart(2, Keyring(liar_key, {liar_key.id: liar_key}))
    for _ in range(5):
        stranger.say(1, b"let me in")
        liar.say(1, b"let me in too")
        net.carry()
    assert net.sides[1].reads == []
    assert rejected(net.sides[1]) == {"key": 5, "seal": 5}
    assert net.sides[1].box.taken() == []


def test_bytes_of_strangers_leave_no_memory_behind() -> None:
    _, _, second = met()
    seal = second.seal
    assert isinstance(seal, Sealed)
    before = len(seal._openers)
    rng = Random(3)
    for _ in range(2_000):
        header = HEADER.pack(MAGIC, VERSION, 0, KEYS.active.id, 0, rng.getrandbits(64), 1)
        second.wire.on_datagram(header + rng.randbytes(60))
    assert len(seal._openers) == before
    assert rejected(second) == {"seal": 2_000}


@BOTH
def test_a_datagram_counts_once(sealed: bool) -> None:
    net, first, second = met(sealed=sealed)
    carried: list[tuple[HostId, bytes]] = []
    for number in range(50):
        first.say(1, b"%d" % number)
        carried += net.carry(1)
    for host, datagram in carried:
        net.sides[host].wire.on_datagram(datagram)
    assert second.bodies() == [b"%d" % number for number in range(50)]
    assert rejected(second)["replay"] == sum(host == 1 for host, _ in carried)


def test_a_datagram_sent_back_to_its_sender_or_to_a_third_host_reveals_nothing_there() -> None:
    _, first, second = met()
    first.say(1, b"for host 1")
    datagram = the_one(first.box)
    first.wire.on_datagram(datagram)
    assert first.reads == [] and rejected(first) == {"source": 1}
    second.wire.on_datagram(datagram)
    assert second.bodies() == [b"for host 1"]


def test_the_life_of_a_sender_that_is_over_cannot_be_played_again() -> None:
    net = Net()
    first, second = net.sides[0], net.sides[1]
    recorded: list[tuple[HostId, bytes]] = []
    for number in range(20):
        first.say(1, b"old %d" % number)
        recorded += net.carry()  # with its proof that it was alive
    assert len(second.bodies()) == 20
    second.reads.clear()
    first = net.restart(0)
    replay(net, recorded)
    assert second.reads == []
    first.say(1, b"new")
    net.carry()
    replay(net, recorded)
    assert second.bodies() == [b"new"]


def test_it_cannot_be_played_to_a_new_life_of_the_receiver_either() -> None:
    net = Net()
    recorded: list[tuple[HostId, bytes]] = []
    for number in range(20):
        net.sides[0].say(1, b"old %d" % number)
        recorded += net.carry()
    assert len(net.sides[1].bodies()) == 20
    first, second = net.restart(0), net.restart(1)
    replay(net, recorded)
    assert second.reads == [] and first.reads == []
    first.say(1, b"new")
    net.carry()
    replay(net, recorded)
    assert second.bodies() == [b"new"]


def test_a_life_that_goes_on_cannot_be_played_to_a_new_life_of_its_listener() -> None:
    net = Net()
    first = net.sides[0]
    recorded: list[tuple[HostId, bytes]] = []
    for number in range(20):
        first.say(1, b"old %d" % number)
        recorded += net.carry()
    second = net.restart(1)
    replay(net, recorded)
    assert second.reads == []
    first.say(1, b"new")
    net.carry()
    replay(net, recorded)
    assert second.bodies() == [b"new"]
    assert rejected(second)["replay"] > 0


def test_what_is_said_before_the_listener_has_asked_for_a_proof_counts() -> None:
    net = Net()
    for number in range(20):
        net.sides[0].say(1, b"%d" % number)
    net.carry()
    assert net.sides[1].bodies() == [b"%d" % number for number in range(20)]


def replay(net: Net, recorded: list[tuple[HostId, bytes]]) -> None:
    for _ in range(2):
        for host, datagram in recorded:
            net.sides[host].wire.on_datagram(datagram)
        net.carry()
        net.now += 100_000_000


def test_an_answer_to_a_new_life_that_is_proven_counts_though_it_asks_for_a_proof_later() -> None:
    net, old, _ = met()
    new = net.restart(1)
    new.say(0, b"a request")
    old.wire.on_datagram(the_one(new.box))
    new.wire.on_datagram(the_one(old.box))  # is asked for a proof, gives it, and asks for one itself
    (_, proof), (_, challenge) = new.box.taken()
    old.wire.on_datagram(proof)
    assert old.bodies() == [b"a request"]
    old.say(1, b"its answer")
    old.wire.on_datagram(challenge)
    net.carry()
    assert new.bodies() == [b"its answer"]
    assert rejected(new) == {}


def test_recordings_of_many_lives_do_not_keep_a_new_one_out() -> None:
    net = Net()
    recorded: list[tuple[HostId, bytes]] = []
    for _ in range(12):
        net.restart(0)
        net.sides[0].say(1, b"old")
        recorded += net.carry()
    second = net.sides[1]
    second.reads.clear()
    newest = net.restart(0)
    old = [datagram for host, datagram in recorded if host == 1]
    newest.say(1, b"new")
    for _ in range(10):  # the stranger is always faster than the proof
        under_way = [mail for side in net.sides.values() for mail in side.box.taken()]
        for datagram in old:
            second.wire.on_datagram(datagram)
        for host, datagram in under_way:
            net.sides[host].wire.on_datagram(datagram)
        for side in net.sides.values():
            side.flush()
        net.now += 50_000_000
        newest.say(1, b"new")
    assert b"new" in second.bodies() and b"old" not in second.bodies()


def test_what_waits_for_proofs_is_bounded() -> None:
    net = Net()
    second = net.sides[1]
    for life in range(30):  # of a host that is there for one datagram only, and proves nothing
        first = net.restart(0)
        for counter in range(1, 2_000):
            second.wire.on_datagram(first.forged(counter, data_frame(0, 1, bytes(1_000))))
        assert second.reads == [], life
    candidates = second.wire.peers[0].sessions._candidates
    assert len(candidates) <= 4
    assert sum(candidate.held_bytes for candidate in candidates.values()) <= 4 << 20
    assert rejected(second)["session"] > 0


def test_a_stranger_gets_no_answer_that_is_larger_than_what_it_sends() -> None:
    """Nobody can be flooded through a host: a replayed datagram costs at most a challenge now and then."""
    net = Net()
    net.sides[0].say(1, b"x")
    ((_, datagram),) = net.sides[0].box.taken()
    second = net.restart(1)
    sent = 0
    for _ in range(1_000):
        second.wire.on_datagram(datagram)
        second.flush()
        sent += sum(len(answer) for _, answer in second.box.taken())
        net.now += 1_000_000
    assert 0 < sent < 1_000 * len(datagram) / 5


def test_the_same_message_sealed_twice_looks_different() -> None:
    _, first, _ = met()
    seen = Counter[bytes]()
    for _ in range(50):
        first.say(1, bytes(64))
        seen[the_one(first.box)[HEADER_BYTES:]] += 1
    assert max(seen.values()) == 1
    assert not any(bytes(8) in body for body in seen)


def test_a_fork_of_a_host_cannot_seal_with_its_counters_again() -> None:
    net = Net()
    net.meet()
    child = os.fork()
    if not child:
        try:
            net.sides[0].say(1, b"said by the child")
            os._exit(1)
        except LocalError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    net.sides[0].say(1, b"said by the parent")
    net.carry()
    assert net.sides[1].bodies() == [b"said by the parent"]

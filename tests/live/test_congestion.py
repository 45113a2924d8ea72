"""A link with more to send than its window takes: what waits goes later, and is not taken for a copy."""

from ordercast.net.links.datagram import write_destinations
from ordercast.net.links.session import REPLAY_WINDOW
from ordercast.net.links.wire import TICK_NS
from tests.live.wire_pairs import Net

SIZE = 1_000


def flood(net: Net, count: int) -> None:
    """Host 0 sends more to host 1 than may be under way, and nothing is carried yet."""
    side = net.sides[0]
    for number in range(count):
        side.wire.outbox.send((1,), 0, write_destinations((1,)), 1, b"%08d" % number + bytes(SIZE))
    side.flush()


def settle(net: Net, ticks: int = 40) -> None:
    """Carry all that is sent until it is quiet."""
    for _ in range(ticks):
        net.now += TICK_NS
        for side in net.sides.values():
            side.wire.tick()
        net.carry(50)


def test_what_waited_longer_than_the_window_of_copies_still_counts() -> None:
    net = Net()
    net.meet()
    count = REPLAY_WINDOW + 3_000
    flood(net, count)
    sender, receiver = net.sides[0], net.sides[1]
    assert len(sender.wire.peers[1].link.queue) > REPLAY_WINDOW
    receiver.say(0, b"a word the other way, which is acknowledged past the queue")
    settle(net)
    assert [int(body[:8]) for body in receiver.bodies()] == list(range(count))
    assert receiver.metrics.rejected_replay == 0
    assert sender.metrics.overflow == sender.metrics.dropped_away == 0


def test_an_acknowledgement_that_passed_the_queue_does_not_count_for_it() -> None:
    net = Net()
    net.meet()
    flood(net, 2_000)
    sender, receiver = net.sides[0], net.sides[1]
    link = sender.wire.peers[1].link
    net.now += TICK_NS
    sender.wire.tick()  # asks for an acknowledgement, past the queue
    assert link.queue
    for host, datagram in sender.box.taken():
        net.sides[host].wire.on_datagram(datagram)
    receiver.flush()
    answers = [datagram for host, datagram in receiver.box.taken() if host == 0]
    for datagram in answers:
        sender.wire.on_datagram(datagram)
    under_way = link.under_way
    assert under_way > link.window // 2, "the next window has left"
    receiver.wire.peers[0].ack_due = True
    receiver.wire._acknowledge(receiver.wire.peers[0])  # before any of it has come
    for host, datagram in receiver.box.taken():
        net.sides[host].wire.on_datagram(datagram)
    assert link.under_way == under_way

"""Bundling: what piles up while a sender's window is full leaves in full packets."""

from ordercast.core import SECOND
from ordercast.core.bundle import bundle_size, unpack
from ordercast.scenario.cpu import Cpu
from ordercast.trace import Event, Kind
from tests.sim.probes import Probe, ProbeWorld

ROOM_FOR_FOUR = 4 * bundle_size(10)


def sizes(probe: Probe) -> list[int]:
    return [len(unpack(payload)) for payload in probe.taken]


def filled(bundle_bytes: int) -> ProbeWorld:
    """A world in which ten messages wait at a sender whose window is full."""
    world = ProbeWorld((0, 1, 2), groups={0: (1, 2), 1: (2,)}, senders=(0,), bundle_bytes=bundle_bytes)
    world.probe(0).on_submit = Probe.refuse
    for number in range(10):
        world.submit(0, (0,), bytes([number]) * 10)
    return world


def opened(world: ProbeWorld) -> ProbeWorld:
    """The same after its window has opened, and a packet gave it the occasion."""
    world.probe(0).on_submit = Probe.spread
    world.say(1, 0, "go on")
    world.run(world.now + SECOND)
    return world


def test_an_idle_sender_sends_each_message_alone() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,), bundle_bytes=ROOM_FOR_FOUR)
    for _ in range(5):
        world.submit(0, (0,), bytes(10))
        world.run(world.now + SECOND)
    assert sizes(world.probe(0)) == [1] * 5


def test_a_backlog_leaves_in_full_packets_when_the_window_opens() -> None:
    assert sizes(opened(filled(ROOM_FOR_FOUR)).probe(0)) == [4, 4, 2]
    assert sizes(opened(filled(ROOM_FOR_FOUR - 1)).probe(0)) == [3, 3, 3, 1]


def test_without_bundling_each_message_is_a_packet() -> None:
    assert sizes(opened(filled(0)).probe(0)) == [1] * 10


def test_a_message_larger_than_a_packet_goes_alone() -> None:
    assert sizes(opened(filled(1)).probe(0)) == [1] * 10


def test_a_bundle_is_delivered_message_by_message() -> None:
    world = opened(filled(ROOM_FOR_FOUR))
    events = [Event._make(row) for row in world.rows]
    submitted = {event.message: event for event in events if event.kind is Kind.SUBMIT}
    for node in (1, 2):
        delivered = [event for event in events if event.kind is Kind.DELIVER and event.node == node]
        assert [event.message for event in delivered] == list(range(10))
        for event in delivered:
            origin = submitted[event.message]
            assert (event.digest, event.size, event.submitted_ns) == (origin.digest, 10, origin.time_ns)
    assert world.delivered == world.expected == 20


def test_messages_to_other_groups_are_not_bundled_and_keep_their_order() -> None:
    world = filled(ROOM_FOR_FOUR)
    world.submit(0, (1,), bytes(10))
    world.submit(0, (0,), bytes(10))
    opened(world)
    assert sizes(world.probe(0)) == [4, 4, 2, 1, 1]
    order = [row[4] for row in world.rows if row[3] is Kind.DELIVER and row[2] == 2]
    assert order == list(range(12))


def test_a_window_that_closes_again_keeps_the_rest_waiting() -> None:
    world = filled(ROOM_FOR_FOUR)

    def one_packet(probe: Probe, groups: tuple[int, ...], payload: bytes) -> bool:
        return not probe.taken and probe.spread(groups, payload)

    world.probe(0).on_submit = one_packet
    world.say(1, 0, "go on")
    world.run(SECOND)
    assert sizes(world.probe(0)) == [4]
    opened(world)
    assert sizes(world.probe(0)) == [4, 4, 2]


def test_what_comes_while_the_cpu_is_busy_is_bundled() -> None:
    world = ProbeWorld(
        (0, 1), groups={0: (1,)}, senders=(0,), bundle_bytes=ROOM_FOR_FOUR, cpu={0: Cpu(send_ns=1000)}
    )
    for number in range(6):  # the first leaves at once and keeps the CPU busy meanwhile
        world.submit_at(number * 100, 0, (0,), bytes(10))
    world.run(SECOND)
    assert sizes(world.probe(0)) == [1, 4, 1]


def test_a_timer_is_an_occasion_to_go_on_too() -> None:
    world = filled(ROOM_FOR_FOUR)
    world.do(0, lambda probe: probe.env.set_timer("tick", 100))
    world.probe(0).on_submit = Probe.spread
    world.run(SECOND)
    assert sizes(world.probe(0)) == [4, 4, 2]

"""The world: processes, packets, applications and the trace they leave."""

import gc
from weakref import ref

import pytest

from ordercast.core import MILLISECOND, SECOND, Delivered, Dropped, LocalError, OutOfOrder, Stamp, View
from ordercast.core.bundle import MESSAGE_BYTES_MAX, Item, pack
from ordercast.scenario.clock import Clock
from ordercast.scenario.cpu import Cpu
from ordercast.sim import world as worlds
from ordercast.trace import Event, Kind, trace_hash
from tests.sim.probes import Probe, ProbeWorld, Word


def events(world: ProbeWorld) -> list[Event]:
    return [Event._make(row) for row in world.rows]


def test_messages_within_a_host_skip_the_network() -> None:
    world = ProbeWorld((0, 0, 1), cpu=Cpu(receive_ns=1000, send_ns=1000))
    world.network.blocked = {(a, b) for a in (0, 1) for b in (0, 1)}
    world.say(0, 1, "neighbour")
    world.say(0, 2, "far")
    world.run(SECOND)
    assert world.probe(1).heard == [(0, 0, "neighbour")]
    assert world.probe(2).heard == []


def test_a_message_to_oneself_comes_after_the_handler() -> None:
    world = ProbeWorld()
    world.probe(0).on["again"] = lambda probe: probe.env.send(0, Word("done"))
    world.say(0, 0, "again")
    assert world.probe(0).texts() == ["again", "done"]


@pytest.mark.parametrize(("copies", "departures"), [(False, [1000] * 3), (True, [1000, 2000, 3000])])
def test_a_multicast_costs_one_send_or_one_a_copy(copies: bool, departures: list[int]) -> None:
    world = ProbeWorld(range(4), cpu=Cpu(send_ns=1000, copies=copies))
    world.do(0, lambda probe: probe.env.multicast((1, 2, 3), Word("all")))
    world.run(SECOND)
    assert [world.probe(node).times()[0] - 100 for node in (1, 2, 3)] == departures
    assert world.hosts[0].busy_ns == departures[-1]


@pytest.mark.parametrize("copies", [False, True])
def test_a_multicast_within_a_host_or_to_nobody_costs_nothing(copies: bool) -> None:
    world = ProbeWorld((0, 0, 1), cpu=Cpu(send_ns=1000, copies=copies))
    world.do(0, lambda probe: probe.env.multicast((0, 1), Word("near")))
    world.do(0, lambda probe: probe.env.multicast((), Word("nobody")))
    assert world.hosts[0].busy_ns == 0
    world.do(0, lambda probe: probe.env.multicast((1, 2), Word("far")))
    assert world.hosts[0].busy_ns == 1000


def test_packets_through_the_codec_make_no_difference() -> None:
    hashes = set()
    for through_codec in (False, True):
        world = ProbeWorld(range(3), through_codec=through_codec, cpu=Cpu(receive_ns=700, send_ns=300))
        for number in range(20):
            world.submit(number % 3, (0,), bytes([number]))
            world.run(world.now + 500)
        world.run(SECOND)
        assert world.delivered == 60
        hashes.add(trace_hash(world.table("run")))
    assert len(hashes) == 1


def test_through_the_codec_a_message_of_another_protocol_is_refused() -> None:
    class Stranger(Word, frozen=True, tag=9):
        pass

    world = ProbeWorld(through_codec=True)
    with pytest.raises(LocalError, match="Stranger"):
        world.do(0, lambda probe: probe.env.send(1, Stranger("hello")))


def test_a_message_reaches_the_receivers_of_all_its_groups_once() -> None:
    world = ProbeWorld(range(4), groups={0: (0, 1), 1: (1, 2)}, senders=(3,))
    message = world.submit(3, (0, 1), b"hello")
    world.run(SECOND)
    delivered = [event for event in events(world) if event.kind is Kind.DELIVER]
    assert [(event.node, event.message) for event in delivered] == [(0, message), (1, message), (2, message)]
    assert (world.expected, world.delivered) == (3, 3)


def test_the_trace_of_a_message_tells_size_digest_and_time_of_submission() -> None:
    world = ProbeWorld(senders=(0,), groups={0: (1,)})
    world.run(700)
    world.submit(0, (0,), b"hello")
    world.run(SECOND)
    submit, deliver = events(world)
    assert (submit.kind, submit.time_ns, deliver.kind, deliver.time_ns) == (
        Kind.SUBMIT,
        700,
        Kind.DELIVER,
        800,
    )
    for name in ("message", "groups", "submitted_ns", "size", "digest"):
        assert getattr(submit, name) == getattr(deliver, name), name
    assert (submit.size, submit.submitted_ns) == (5, 700)


def test_every_kind_of_delivery_leaves_its_row() -> None:
    world = ProbeWorld()
    payload = pack([Item(7, 3, b"x")])
    stamp = Stamp(5, 1, (8,))

    def tell(probe: Probe) -> None:
        probe.env.deliver(Delivered(payload, (0,), 1, stamp, 2))
        probe.env.deliver(OutOfOrder(payload, (0,), 1))
        probe.env.deliver(Dropped(0, 4, 9, 2))
        probe.env.deliver(View(0, 3, (0, 1), "joined"))
        probe.env.deliver(View(0, 4, (0, 1), change="removed", stamp=Stamp(6, 1, (11,))))
        probe.env.deliver(Delivered(b"made up", (0,), 1))

    world.do(0, tell)
    first, second, third, fourth, fifth, sixth = events(world)
    assert (first.kind, first.message, first.numbers, first.config) == (Kind.DELIVER, 7, (8,), 2)
    assert (first.stamp_clock, first.stamp_issuer) == (5, 1)
    assert (second.kind, second.message, second.stamp_clock) == (Kind.OUT_OF_ORDER, 7, None)
    assert (third.kind, third.slots(), third.stamp_issuer) == (Kind.DROP, ((0, 9),), 4)
    assert (fourth.kind, fourth.config, fourth.members, fourth.label) == (Kind.VIEW, 3, (0, 1), "joined")
    assert (fourth.numbers, fourth.stamp_clock, fourth.stamp_issuer) == (None, None, None)
    assert (fifth.kind, fifth.config, fifth.members, fifth.label) == (Kind.VIEW, 4, (0, 1), "removed")
    assert (fifth.numbers, fifth.stamp_clock, fifth.stamp_issuer) == ((11,), 6, 1)
    assert (sixth.kind, sixth.message) == (Kind.DELIVER, None)
    assert "bundle" in (sixth.label or "")
    assert (world.delivered, world.dropped) == (2, 1)


def test_rows_are_in_order_of_time_and_clocks_do_not_run_back() -> None:
    world = ProbeWorld(
        range(3), cpu=Cpu(receive_ns=900), clocks={0: Clock(5000, 10**8), 2: Clock(0, -(10**8))}
    )
    for number in range(30):
        world.submit(number % 3, (0,), b"")
        world.run(world.now + 700)
        if number == 10:
            world.step_clock(0, -3000)
        if number in (15, 20):
            world.crash(1)
        if number in (17, 20):
            world.restart(1)
    world.run(SECOND)
    times = [event.time_ns for event in events(world)]
    assert times == sorted(times)
    for node in range(3):
        clocks = [event.clock_ns for event in events(world) if event.node == node]
        assert clocks == sorted(clocks)


def test_the_clock_stands_still_during_a_handler() -> None:
    world = ProbeWorld(cpu=Cpu(send_ns=1000, save_ns=1000), clocks={0: Clock(40)})
    seen = list[int]()

    def busy(probe: Probe) -> None:
        for _ in range(3):
            probe.env.send(1, Word("hello"))
            probe.env.save("x", b"")
            probe.env.deliver(Delivered(pack([Item(1, 0, b"")]), (0,), 0))
            seen.append(probe.env.now)

    world.run(500)
    world.do(0, busy)
    assert seen == [540] * 3


def test_a_timer_set_again_fires_once_at_the_later_time() -> None:
    world = ProbeWorld()
    world.do(0, lambda probe: probe.env.set_timer("tick", 100))
    world.do(0, lambda probe: probe.env.set_timer("other", 150))
    world.do(0, lambda probe: probe.env.set_timer("tick", 200))
    world.do(0, lambda probe: probe.env.set_timer("never", 300))
    world.do(0, lambda probe: probe.env.cancel_timer("never"))
    world.do(0, lambda probe: probe.env.cancel_timer("unknown"))
    world.run(SECOND)
    assert world.probe(0).fired == [(150, "other"), (200, "tick")]


def test_a_timer_of_no_or_negative_duration_fires_after_the_handler() -> None:
    world = ProbeWorld()
    world.do(0, lambda probe: probe.env.set_timer("a", 0))
    world.do(0, lambda probe: probe.env.set_timer("b", -5))
    assert sorted(name for _, name in world.probe(0).fired) == ["a", "b"]


def test_an_application_that_submits_when_it_gets_a_delivery_does_not_re_enter_the_process() -> None:
    world = ProbeWorld((0,))  # a probe fails if it is entered twice

    def again(node: int, message: int, groups: tuple[int, ...]) -> None:
        if world.submitted < 5:
            world.submit(0, (0,), b"next")

    world.observers.append(again)
    world.submit(0, (0,), b"first")
    world.run(SECOND)
    assert (world.submitted, world.delivered) == (5, 5)


def test_a_process_that_delivers_within_submit_gets_each_message_once() -> None:
    world = ProbeWorld((0,))

    def at_once(probe: Probe, groups: tuple[int, ...], payload: bytes) -> bool:
        probe.env.deliver(Delivered(payload, groups, 0))
        return True

    world.probe(0).on_submit = at_once

    def again(node: int, message: int, groups: tuple[int, ...]) -> None:
        if world.submitted < 5:
            world.submit(0, (0,), b"next")

    world.observers.append(again)
    world.submit(0, (0,), b"first")
    world.run(SECOND)
    messages = [event.message for event in events(world) if event.kind is Kind.DELIVER]
    assert messages == [0, 1, 2, 3, 4]


def test_only_senders_submit() -> None:
    world = ProbeWorld(senders=(0,))
    with pytest.raises(LocalError, match="node 1 is not a sender"):
        world.submit(1, (0,), b"")


@pytest.mark.parametrize("groups", [(), (1,), (0, 1), (0, 0), (2, 0)])
def test_a_message_to_groups_that_are_not_there_is_refused(groups: tuple[int, ...]) -> None:
    world = ProbeWorld(groups={0: (0,), 2: (1,)})
    with pytest.raises(LocalError, match="group"):
        world.submit(0, groups, b"")
    assert (world.submitted, world.expected, world.rows) == (0, 0, [])
    assert world.submit(0, (0,), b"") == 0


def test_a_message_too_large_for_any_packet_is_refused_at_once() -> None:
    world = ProbeWorld()
    with pytest.raises(LocalError, match=f"limit is {MESSAGE_BYTES_MAX}"):
        world.submit(0, (0,), bytes(MESSAGE_BYTES_MAX + 1))
    world.submit(0, (0,), bytes(MESSAGE_BYTES_MAX))
    world.run(SECOND)
    assert world.delivered == 2


def test_a_sender_that_takes_no_messages_is_the_callers_fault() -> None:
    world = ProbeWorld()
    world.envs[0].process = object()  # type: ignore[assignment]
    with pytest.raises(LocalError, match="takes no messages"):
        world.submit(0, (0,), b"")


def test_a_backlog_has_a_limit_and_what_is_refused_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "BACKLOG_MAX", 5)
    world = ProbeWorld()
    world.probe(0).on_submit = Probe.refuse
    taken = [world.submit(0, (0,), b"") for _ in range(8)]
    assert taken == [0, 1, 2, 3, 4, None, None, None]
    assert (world.refused, world.submitted, len(world.rows)) == (3, 5, 5)


def test_traffic_between_applications_costs_what_packets_cost() -> None:
    world = ProbeWorld((0, 1, 1), cpu=Cpu(receive_ns=1000, send_ns=300))
    came = list[tuple[str, int]]()
    for target in ("far", "far"):
        world.application_send(0, 1, lambda name: came.append((name, world.now)), target)
    world.application_send(1, 2, lambda name: came.append((name, world.now)), "near")
    world.run(SECOND)
    assert came == [("near", 0), ("far", 300 + 100 + 1000), ("far", 300 + 100 + 2000)]
    assert (world.hosts[0].busy_ns, world.hosts[1].busy_ns) == (600, 2000)


def test_every_living_process_explains_itself() -> None:
    world = ProbeWorld(range(3))
    world.say(0, 1, "hello")
    world.crash(2)
    world.run(MILLISECOND)
    assert {node: found.state for node, found in world.explain().items()} == {
        0: {"heard": 0},
        1: {"heard": 1},
    }


def test_nodes_and_network_draw_from_streams_of_their_own() -> None:
    one, same, other = ProbeWorld(seed=1), ProbeWorld(seed=1), ProbeWorld(seed=2)
    draws = [[world.envs[node].rng.random() for node in (0, 1)] for world in (one, same, other)]
    assert draws[0] == draws[1]
    assert len({value for pair in draws for value in pair}) == 4
    assert one.network.rng.random() not in draws[0]


def test_a_run_in_pieces_is_the_same_as_in_one() -> None:
    hashes = set()
    for step in (1, 37, 1000):
        world = ProbeWorld(range(3), cpu=Cpu(receive_ns=50, send_ns=20))
        world.submit(0, (0,), b"a")
        world.submit_at(60, 1, (0,), b"b")
        while world.now < 1000:
            world.run(world.now + step)
        hashes.add(trace_hash(world.table("run")))
    assert len(hashes) == 1


def test_a_world_that_is_cut_off_with_packets_under_way_does_not_stay_in_memory() -> None:
    world = ProbeWorld()
    world.application_send(0, 1, world.probe(1).heard.clear)
    assert world.scheduler.pending, "the packet has not left yet"
    left = ref(world)
    del world
    gc.collect()
    assert left() is None

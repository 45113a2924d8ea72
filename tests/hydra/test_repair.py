"""Before a receiver notifies of a gap it asks who has the packets; a drop means that nobody has."""

from collections.abc import Iterator

import msgspec
import pytest

from ordercast.core import MILLISECOND, Dropped, Message, Nanos, NodeId, RemoteError
from ordercast.protocols.hydra.kept import PACKET_BYTES, Kept
from ordercast.protocols.hydra.messages import Ask, Found, Gone, Groupcast, Request, Welcome
from ordercast.protocols.hydra.repair import NUMBERS_MAX, answer
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.sim.run import Run, simulate
from ordercast.testing import RecordingEnv
from ordercast.trace import Kind
from tests.hydra.lab import CLIENT, QUIET, SEQUENCERS, ReceiverBench, parse, receiver, removed, sequencer

REPAIRING = msgspec.structs.replace(QUIET, repair=True, patience_ns=500, retry_ns=1 * MILLISECOND)
SEQUENCER = SEQUENCERS[1]
PEERS = (1, 2)
EVERYONE = tuple(range(1, 9))


def g1(number: int, clock: int) -> str:
    return f"<G,1,{{(1,{number})}},{clock}>"


def packet(number: int, clock: int) -> Groupcast:
    found = parse(g1(number, clock))
    assert isinstance(found, Groupcast)
    return found


def asked(lab: ReceiverBench) -> list[tuple[NodeId, int, int]]:
    """Who was asked, for the first to the last of which numbers."""
    sent = lab.take_sent()
    return [(to, ask.first, ask.last) for to, ask in sent if isinstance(ask, Ask)]


def gap(*, numbers: int = 1, clock: int = 100) -> ReceiverBench:
    """A receiver that lacks the first numbers of a sequencer and has one message behind them."""
    lab = receiver(REPAIRING, initial={1: SEQUENCER})
    lab.take_sent()
    assert lab.gives(g1(numbers + 1, clock)) == []
    return lab


def from_all(lab: ReceiverBench, message: Message, *nodes: NodeId) -> list[str]:
    """What is delivered when all these nodes say the same."""
    for node in nodes:
        lab.receive(node, message)
    return lab.delivered()


def test_the_sequencer_is_asked_when_patience_is_over_and_its_packet_is_delivered_in_its_place() -> None:
    lab = gap()
    assert asked(lab) == []
    lab.pass_time(500)
    assert asked(lab) == [(SEQUENCER, 1, 1)] and lab.delivered() == []
    (wait,) = lab.process.explain().waits
    assert wait.blocker == "number 1 of sequencer 1, which is missing and has been asked for"
    assert from_all(lab, Found(packet(1, 50)), SEQUENCER) == [g1(1, 50), g1(2, 100)]


def test_receivers_of_the_group_are_asked_when_the_sequencer_has_nothing() -> None:
    lab = gap()
    lab.pass_time(500)
    asked(lab)
    assert from_all(lab, Gone(1, 1, 1, 1), SEQUENCER) == []
    assert asked(lab) == [(node, 1, 1) for node in (SEQUENCER, *PEERS)]
    assert from_all(lab, Found(packet(1, 50)), PEERS[1]) == [g1(1, 50), g1(2, 100)]


def test_receivers_of_the_group_are_asked_when_the_sequencer_does_not_answer() -> None:
    lab = gap()
    lab.pass_time(500 + MILLISECOND)
    assert asked(lab) == [(SEQUENCER, 1, 1), *((node, 1, 1) for node in (SEQUENCER, *PEERS))]


def test_a_drop_means_that_all_who_were_asked_have_nothing() -> None:
    lab = gap()
    lab.pass_time(500)
    assert from_all(lab, Gone(1, 1, 1, 1), SEQUENCER, PEERS[0]) == []
    assert from_all(lab, Gone(1, 1, 1, 1), PEERS[1]) == ["<D,1,1>", g1(2, 100)]


def test_who_is_silent_is_waited_for_as_long_as_for_a_sequencer_that_is_suspected() -> None:
    lab = gap()
    lab.pass_time(500)
    from_all(lab, Gone(1, 1, 1, 1), SEQUENCER, PEERS[0])
    lab.pass_time(REPAIRING.suspect_ns - MILLISECOND)
    assert lab.delivered() == []
    lab.pass_time(2 * MILLISECOND)
    assert lab.delivered() == ["<D,1,1>", g1(2, 100)]


def test_a_node_that_has_some_of_the_numbers_does_not_speak_for_the_others() -> None:
    lab = gap(numbers=3)
    lab.pass_time(500)
    assert asked(lab) == [(SEQUENCER, 1, 3)]
    from_all(lab, Gone(1, 1, 2, 3), SEQUENCER, *PEERS)
    assert lab.delivered() == [], "nobody said anything of number 1"
    assert from_all(lab, Found(packet(1, 50)), SEQUENCER) == [g1(1, 50)]
    assert from_all(lab, Gone(1, 1, 2, 3), SEQUENCER, *PEERS) == ["<D,1,2>", "<D,1,3>", g1(4, 100)]


def test_a_long_gap_is_asked_for_in_parts_and_every_success_gives_more_time() -> None:
    count = 2 * NUMBERS_MAX + 5
    lab = gap(numbers=count, clock=1000)
    lab.pass_time(500)
    found: list[str] = []
    for _ in range(10):
        for _, first, last in asked(lab):
            for number in range(first, min(last + 1, first + NUMBERS_MAX)):
                found += from_all(lab, Found(packet(number, number)), SEQUENCER)
        lab.pass_time(REPAIRING.suspect_ns * 2 // 3)
    assert len(found) == count + 1


def test_a_sequencer_that_was_removed_is_not_needed_and_all_receivers_are_asked() -> None:
    lab = gap()
    lab.pass_time(500)
    asked(lab)
    lab.plan("removed", 1)
    lab.pass_time(REPAIRING.suspect_ns)
    assert lab.delivered() == [], "its end is not decided yet"
    asked(lab)
    lab.decide(removed(1, 100, (0, 2, 0)))
    assert sorted(asked(lab)) == [(node, 1, 1) for node in (*EVERYONE, SEQUENCER)]
    assert from_all(lab, Gone(1, 1, 1, 1), *EVERYONE[:-1]) == []
    assert from_all(lab, Found(packet(1, 50)), 8) == [g1(1, 50), g1(2, 100), "<-1,2,100>"]


def test_a_packet_whose_place_has_passed_is_not_waited_for() -> None:
    lab = receiver(REPAIRING, initial={1: SEQUENCER})
    assert lab.gives(g1(1, 100)) == [g1(1, 100)]
    lab.hears(g1(3, 200))
    lab.pass_time(500)
    assert from_all(lab, Found(packet(2, 50)), SEQUENCER) == ["<D,1,2>", g1(3, 200)]


def test_a_full_buffer_takes_the_packet_that_all_others_wait_for() -> None:
    lab = receiver(msgspec.structs.replace(REPAIRING, buffer=2), initial={1: SEQUENCER})
    lab.hears(g1(2, 20), g1(3, 30))
    lab.pass_time(500)
    assert from_all(lab, Found(packet(1, 10)), SEQUENCER) == [g1(1, 10), g1(2, 20), g1(3, 30)]


def test_a_gap_that_no_message_needs_is_repaired_too() -> None:
    lab = receiver(REPAIRING, initial={1: SEQUENCER})
    lab.hears("<F,1,{(1,1)},60>")
    lab.pass_time(REPAIRING.hold_ns + REPAIRING.suspect_ns // 6)
    assert (SEQUENCER, 1, 1) in asked(lab)
    assert from_all(lab, Found(packet(1, 50)), SEQUENCER) == [g1(1, 50)]


def test_patience_follows_how_late_packets_come_and_comes_back() -> None:
    lab = gap()
    lab.pass_time(400)
    assert lab.gives(g1(1, 50)) == [g1(1, 50), g1(2, 100)]
    lab.hears(g1(4, 200))
    lab.pass_time(799)
    assert asked(lab) == [], "it may come as late as the one before, and later"
    lab.pass_time(1)
    assert asked(lab) == [(SEQUENCER, 3, 3)]
    assert from_all(lab, Found(packet(3, 150)), SEQUENCER) == [g1(3, 150), g1(4, 200)]
    lab.pass_time(2000)
    lab.hears(g1(3, 150))
    lane = lab.process._merge.lanes[1]
    assert lane.late_ns >= 2000, "it came at last, after another node had found it"
    lab.pass_time(20 * REPAIRING.suspect_ns)
    assert lane.late_ns < 500


def test_a_found_packet_does_not_make_its_sequencer_look_alive() -> None:
    lab = gap(numbers=30)
    for number in range(1, 30):
        lab.pass_time(REPAIRING.suspect_ns // 6)
        from_all(lab, Found(packet(number, number)), PEERS[0])
    assert lab.process._merge.lanes[1].strike()


def test_a_question_for_no_number_or_group_is_refused() -> None:
    lab = receiver(REPAIRING)
    with pytest.raises(RemoteError, match="asks for numbers 1 to 0"):
        lab.receive(1, Ask(1, 1, 1, 0))
    with pytest.raises(RemoteError, match="group 3"):
        lab.receive(1, Ask(1, 3, 1, 1))


def test_receivers_and_sequencers_answer_with_what_they_have() -> None:
    lab = receiver(REPAIRING, initial={1: SEQUENCER})
    lab.hears(g1(1, 10), g1(2, 20), g1(4, 40))
    lab.take_sent()
    lab.receive(1, Ask(1, 1, 1, 5))
    assert lab.take_sent() == [
        *((1, Found(packet(number, 10 * number))) for number in (1, 2, 4)),
        (1, Gone(1, 1, 3, 3)),
        (1, Gone(1, 1, 5, 5)),
    ]
    stamping = sequencer(REPAIRING)
    stamping.receive(31, Welcome(0, 1, 0))
    for number in (1, 2):
        stamping.receive(CLIENT, Request(1, number, (0, 1), b"payload"))
    stamping.take_sent()
    stamping.receive(0, Ask(1, 1, 2, 3))
    (_, found), (_, gone) = stamping.take_sent()
    assert isinstance(found, Found) and found.packet.numbers == (2, 2)
    assert gone == Gone(1, 1, 3, 3)


# What is kept


def packets(count: int, size: int) -> Iterator[Groupcast]:
    for number in range(1, count + 1):
        yield Groupcast(1, number, (0,), (number,), CLIENT, bytes(size))


def test_what_is_kept_has_a_bound_in_bytes() -> None:
    kept, limit, size = Kept(100 * (PACKET_BYTES + 1000), 10**9), 100, 1000
    for one in packets(1000, size):
        kept.add(one)
        assert len(kept) <= limit
    assert len(kept) >= limit // 2
    assert kept.find(1, 0, 1000) is not None and kept.find(1, 0, 899) is None


def test_what_is_kept_has_a_bound_in_time() -> None:
    kept = Kept(1 << 20, keep_ns=1000)
    kept.age(1000)
    for one in packets(3, 10):
        kept.add(one)
    ages: list[Nanos] = [1499, 1500, 1999]
    for now in ages:
        kept.age(now)
        assert kept.find(1, 0, 2) is not None
    kept.age(2000)
    assert kept.find(1, 0, 2) is None and len(kept) == 0


def test_an_answer_is_never_longer_than_the_question() -> None:
    kept, env = Kept(1 << 20, 10**9), RecordingEnv(0, 0)
    for one in packets(NUMBERS_MAX * 2, 10):
        if one.clock % 2:
            kept.add(one)
    answer(env, kept, 5, Ask(1, 0, 1, 2 * NUMBERS_MAX), 1)
    assert len(env.sent) == NUMBERS_MAX


def test_a_long_gap_of_which_nothing_is_kept_has_one_answer() -> None:
    kept, env = Kept(1 << 20, 10**9), RecordingEnv(0, 0)
    kept.add(Groupcast(1, 9, (0,), (900_000,), CLIENT, b""))
    answer(env, kept, 5, Ask(1, 0, 1, 3_000_000), 1)
    answer(env, kept, 5, Ask(1, 0, 900_001, 3_000_000), 1)
    assert env.sent == [(5, Gone(1, 0, 1, 899_999)), (5, Gone(1, 0, 900_001, 3_000_000))]


def test_a_number_that_was_made_up_stops_nobody() -> None:
    """A member of the cluster claims that there are three million messages more."""
    lab = receiver(REPAIRING, initial={1: SEQUENCER})
    lab.hears("<F,1,{(1,3000000)},60>", g1(1, 10))
    lab.delivered()
    for _ in range(60):
        lab.pass_time(REPAIRING.hold_ns)
        for to, first, last in asked(lab):
            lab.receive(to, Gone(1, 1, first, last))
    told = lab.take_delivered()
    assert sum(drop.count for drop in told if isinstance(drop, Dropped)) == 2_999_999
    assert lab.gives(g1(3_000_001, 70)) == [g1(3_000_001, 70)]


# In whole runs


def calm(**changes: object) -> Scenario:
    """Latencies that differ more than the patience, and nothing else that is bad."""
    content = {
        "protocol": "hydra",
        "seed": 4,
        "senders": 3,
        "settle_ms": 200,
        "network": {"latency": {"kind": "uniform", "low_us": 100, "high_us": 2000}},
        "workload": {"messages": 300, "rate_per_s": 1000},
    }
    return to_scenario(content | changes)


def drops(run: Run) -> int:
    return sum(event.kind is Kind.DROP for event in run.events())


def test_packets_that_overtake_each_other_are_no_drops() -> None:
    run = simulate(calm())
    assert run.violations == [] and drops(run) == 0 and run.summary().delivered == 900
    paper = simulate(calm(options={"repair": False}))
    assert paper.violations == [] and drops(paper) > 100


@pytest.mark.parametrize("seed", range(3))
def test_whatever_was_stamped_is_delivered_on_a_bad_network(seed: int) -> None:
    bad = {"loss": 0.1, "duplication": 0.1, "reordering": 0.2, "latency": {"kind": "constant", "us": 200}}
    run = simulate(calm(seed=seed, network=bad))
    assert run.violations == [] and drops(run) == 0
    deliveries: dict[int, int] = {}
    for event in run.events():
        if event.kind is Kind.DELIVER and event.message is not None:
            deliveries[event.message] = deliveries.get(event.message, 0) + 1
    assert set(deliveries.values()) == {3}, "at all receivers or at none"
    assert len(deliveries) > 250, "one in ten was lost before it was stamped"

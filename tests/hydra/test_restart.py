"""A durable receiver that restarts: nothing twice, and nothing silently lost."""

from random import Random

import msgspec
import pytest

from ordercast.core import SECOND, Crashes, Delivered, Delivery, Deployment, Dropped, Fault
from ordercast.protocols.hydra import HydraOptions
from ordercast.protocols.hydra.messages import Fetch, Rebirth, Report, Suspect
from ordercast.protocols.hydra.protocol import deploy
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from tests.hydra.lab import SERVICE, ReceiverBench, added, one_by_one, receiver, removed

DURABLE = HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=0, durable=True, repair=False)
A = "<G,1,{(1,1)},10>"
B = "<G,1,{(1,2)},20>"
C = "<G,1,{(1,3)},30>"


def again(lab: ReceiverBench) -> ReceiverBench:
    """The next life of a receiver, with what it had saved."""
    return receiver(DURABLE, saved=lab.env.saved, now=lab.env.now + 1)


def test_what_was_delivered_is_not_delivered_again() -> None:
    lab = receiver(DURABLE)
    assert lab.gives(A, "<F,2,{(1,0)},15>") == [A]
    second = again(lab)
    assert second.gives(A, B, "<F,2,{(1,0)},25>") == [B]


def test_what_was_in_the_buffer_is_notified_of_unless_it_comes_again() -> None:
    lab = receiver(DURABLE)
    assert lab.gives(A, "<F,2,{(1,0)},15>", B) == [A]
    assert lab.buffer() == [B]
    lost = again(lab)
    lost.hears(C, "<G,2,{(1,1)},35>", "<F,1,{(1,3)},50>", "<F,2,{(1,1)},50>")
    assert lost.delivered() == ["<D,1,2>", C, "<G,2,{(1,1)},35>"]
    found = again(lab)
    assert found.gives(B, C, "<F,2,{(1,0)},50>") == [B, C]


def test_a_notification_is_not_given_twice() -> None:
    lab = receiver(DURABLE)
    lab.hears(B, "<G,2,{(1,1)},15>")
    assert lab.delivered() == ["<D,1,1>", "<G,2,{(1,1)},15>"]
    second = again(lab)
    second.hears(A, C, "<G,2,{(1,2)},45>", "<F,1,{(1,3)},60>")
    assert second.delivered() == ["<D,1,2>", C, "<G,2,{(1,2)},45>"]


def test_a_new_sequencer_has_as_long_to_answer_after_a_restart() -> None:
    lab = receiver(DURABLE, now=SECOND)
    lab.plan("added", 3)
    assert lab.gives(A, "<F,2,{(1,0)},15>") == [A]
    second = again(lab)
    assert [since for what, _, since in second.waits() if "sequencer 3" in what] == [second.env.now]
    second.pass_time(DURABLE.suspect_ns - 1)
    sent = second.take_sent()
    assert not any(isinstance(message, Suspect) and 3 in message.sequencers for _, message in sent)
    second.pass_time(DURABLE.suspect_ns)
    assert any(isinstance(message, Suspect) and 3 in message.sequencers for _, message in second.take_sent())


def test_it_is_saved_before_it_is_delivered() -> None:
    lab = receiver(DURABLE)
    lab.hears(A)
    order: list[str] = []
    lab.env.save = lambda name, state: order.append("save")  # type: ignore[method-assign]
    lab.env.deliver = lambda delivery: order.append("deliver")  # type: ignore[method-assign]
    lab.hears("<F,2,{(1,0)},15>")
    assert order == ["save", "deliver"]


def test_its_report_stands_over_a_restart() -> None:
    lab = receiver(DURABLE)
    lab.hears(A)
    lab.plan("removed", 1)
    second = again(lab)
    second.hears(B, "<F,1,{(1,9)},90>")
    second.plan("removed", 1)
    assert [m for to, m in second.take_sent() if isinstance(m, Report)] == [Report(0, 1, 10, (0, 1, 0))]


def test_it_goes_on_in_the_configuration_where_it_was() -> None:
    lab = receiver(DURABLE)
    lab.hears("<F,2,{(1,0)},90>")
    lab.decide(removed(1, 20, (0, 1, 0)))
    assert lab.delivered() == ["<D,1,1>", "<-1,1,20>"]
    second = again(lab)
    assert second.started == [(node, Fetch(1)) for node in SERVICE]
    assert second.gives("<G,2,{(1,1)},95>") == ["<G,2,{(1,1)},95>"]
    assert second.process.config == 1


def test_a_view_that_had_not_come_yet_comes_in_the_next_life() -> None:
    lab = receiver(DURABLE)
    lab.decide(added(3, 50, (0, 4, 0)))
    assert lab.delivered() == []
    second = again(lab)
    second.hears("<F,1,{(1,0)},60>", "<F,2,{(1,0)},60>", "<G,3,{(1,5)},55>")
    assert second.delivered() == ["<+3,4,50>", "<G,3,{(1,5)},55>"]


def test_without_the_option_nothing_is_saved() -> None:
    lab = receiver()
    lab.hears(A, "<F,2,{(1,0)},15>")
    lab.decide(removed(1, 20, (0, 1, 0)))
    assert lab.env.saved == {}


@pytest.mark.parametrize("seed", range(25))
def test_each_number_once_over_many_lives(seed: int) -> None:
    rng = Random(f"lives/{seed}")
    stream: list[str] = []
    numbers, clock = {1: 0, 2: 0}, 0
    for _ in range(80):
        clock += rng.randint(1, 3)
        sequencer = rng.choice((1, 2))
        kind = "F"
        if rng.random() < 0.7:
            numbers[sequencer] += 1
            kind = "G"
        stream.append(f"<{kind},{sequencer},{{(1,{numbers[sequencer]})}},{clock}>")
    lab = receiver(DURABLE)
    given: list[Delivery] = []
    for text in stream:
        if rng.random() < 0.2:
            continue
        lab.hears(text)
        given += lab.env.delivered
        lab.env.delivered = []
        if rng.random() < 0.1:
            lab = again(lab)
    for sequencer, number in numbers.items():
        lab.hears(f"<F,{sequencer},{{(1,{number})}},{clock + 10}>")
    lab.pass_time(60_000_000)
    given += lab.env.delivered
    settled: dict[int, list[int]] = {1: [], 2: []}
    places = []
    for delivery in one_by_one(given):
        if isinstance(delivery, Dropped):
            settled[delivery.issuer].append(delivery.number)
        else:
            assert isinstance(delivery, Delivered) and delivery.stamp is not None
            settled[delivery.stamp.issuer].append(delivery.stamp.numbers[0])
            places.append((delivery.stamp.clock, delivery.stamp.issuer))
    assert settled == {sequencer: list(range(1, number + 1)) for sequencer, number in numbers.items()}
    assert places == sorted(places)


def test_a_durable_plan_promises_to_bear_restarts() -> None:
    deployment = Deployment.disjoint(1, 3, 1)
    assert Fault.RESTART in deploy(deployment, DURABLE).guarantees.tolerates
    assert Fault.RESTART not in deploy(deployment, HydraOptions()).guarantees.tolerates
    assert deploy(deployment, HydraOptions(quorum="all")).guarantees.crashes is Crashes.NONE


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_receiver_restarts_in_the_middle_of_traffic(seed: int, repair: bool) -> None:
    scenario = Scenario(
        protocol="hydra",
        seed=seed,
        senders=2,
        options={"durable": True, "repair": repair},
        workload=WorkloadSpec(messages=300, rate_per_s=2000),
        fault=(
            Crash(at_ms=20, host=0),
            Restart(at_ms=35, host=0),
            Crash(at_ms=50, host=0),
            Restart(at_ms=60, host=0),
        ),
        settle_ms=300,
    )
    run = simulate(scenario)
    assert run.violations == []
    assert run.hindrance == ""
    if repair:
        assert len(run.order(0)) == 300, "what passed while it was away is still kept"
        assert run.summary().dropped == 0
    else:
        assert len(run.order(0)) > 100
        assert run.summary().dropped > 0


def test_a_receiver_that_saved_no_place_comes_back_as_a_new_member() -> None:
    """An earlier life may have delivered what others still keep."""
    options = msgspec.structs.replace(DURABLE, durable=False, repair=True)
    first = receiver(options, initial={1: 21})
    assert first.gives("<G,1,{(1,1)},10>") == ["<G,1,{(1,1)},10>"]
    second = receiver(options, initial={1: 21}, saved=first.env.saved, now=5)
    assert second.started == [(node, Rebirth(5)) for node in SERVICE]
    assert second.gives("<G,1,{(1,3)},30>") == []

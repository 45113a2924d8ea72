"""What the simulator says of packets that a receiver calls dropped."""

from collections import Counter

import pytest

from ordercast.core import Delivered, Dropped, Message, Stamp, View
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario
from ordercast.sim.build import build_world
from ordercast.sim.fates import FateEnv, Fates, followed
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Fate, Kind
from tests.sim.hydra_scenes import SEQUENCER, lossy, scene
from tests.sim.models import sequencer
from tests.sim.mutant import calm, deploy

ISSUER, GROUP = 9, 0


def slot(number: int) -> tuple[int, int, int]:
    return ISSUER, GROUP, number


def sent(*numbers: int) -> dict[tuple[int, int], set[int]]:
    return {(ISSUER, GROUP): set(numbers)}


def come(fates: Fates, *numbers: int, clock: int = 5) -> None:
    for number in numbers:
        fates.come((ISSUER, clock, (GROUP, 1), (number, 70)))


def labels(run: Run) -> Counter[str | None]:
    return Counter(event.label for event in run.events() if event.kind is Kind.DROP)


def test_a_packet_is_lost_received_or_was_never_sent() -> None:
    fates = Fates([GROUP], 100, sent(1, 2))
    come(fates, 1)
    assert [fates.drop(slot(number)) for number in (1, 2, 3)] == [Fate.RECEIVED, Fate.LOST, Fate.UNSENT]
    assert fates.drop((ISSUER, 1, 70)) is Fate.UNSENT  # not a group of this node


def test_a_packet_of_an_earlier_life_is_gone() -> None:
    fates = Fates([GROUP], 100, sent(1))
    come(fates, 1)
    fates.crash()
    assert fates.drop(slot(1)) is Fate.LOST


def test_a_packet_whose_place_has_passed_may_be_refused() -> None:
    fates = Fates([GROUP], 100, sent(1, 2, 3))
    fates.deliver(Delivered(b"", (GROUP,), 3, Stamp(5, ISSUER, (1,))))
    come(fates, 2)
    come(fates, 3, clock=6)
    assert [fates.drop(slot(number)) for number in (2, 3)] == [Fate.REFUSED, Fate.RECEIVED]
    fates.crash()
    come(fates, 2)
    assert fates.drop(slot(2)) is Fate.REFUSED  # its place in the order is saved
    fates.crash()
    fates.lose_state()
    come(fates, 2)
    assert fates.drop(slot(2)) is Fate.RECEIVED


def test_what_came_before_its_issuer_was_added_may_be_refused() -> None:
    fates = Fates([GROUP], 100, sent(1, 2))
    come(fates, 1)
    fates.install(View(GROUP, 1, (0,), change="added", stamp=Stamp(4, ISSUER, (0,))))
    come(fates, 2)
    assert [fates.drop(slot(number)) for number in (1, 2)] == [Fate.REFUSED, Fate.RECEIVED]


def test_what_comes_of_an_issuer_that_leaves_may_be_refused() -> None:
    fates = Fates([GROUP], 100, sent(1, 2))
    come(fates, 1)
    fates.close((8,))
    assert fates.drop(slot(1)) is Fate.RECEIVED
    fates.close((ISSUER,))
    fates.crash()
    come(fates, 1)
    assert fates.drop(slot(1)) is Fate.REFUSED


def test_a_full_receiver_may_refuse_and_a_copy_that_it_takes_counts() -> None:
    fates = Fates([GROUP], 2, sent(1, 2, 3))
    come(fates, 1, 2, 3)
    fates.deliver(Delivered(b"", (GROUP,), 3, Stamp(1, ISSUER, (1,))))
    fates.deliver(Delivered(b"", (GROUP,), 3, Stamp(2, ISSUER, (2,))))
    assert fates.drop(slot(3)) is Fate.REFUSED
    come(fates, 3)
    assert fates.drop(slot(3)) is Fate.RECEIVED


def test_only_numbered_packets_of_a_plan_that_notifies_are_followed() -> None:
    kinds: dict[str, type[NodeEnv]] = {"unordered": NodeEnv, "atomic_multicast": NodeEnv, "hydra": FateEnv}
    for protocol, kind in kinds.items():
        scenario = Scenario(protocol=protocol)
        world = build_world(scenario, scenario.plan())
        assert {type(env) for env in world.envs} == {kind}
    found = followed(deploy("hydra", scenario.deployment()))
    assert found is not None
    assert sorted(kind.__name__ for kind in found.numbered) == ["Found", "Groupcast"]
    assert sorted(kind.__name__ for kind in found.closing) == ["Announce", "Steps"]


@pytest.mark.parametrize("kind", [Message, sequencer.Flush])
def test_most_messages_carry_no_number_and_close_nothing(kind: type[Message]) -> None:
    message = kind() if kind is Message else sequencer.Flush(1)
    assert message.numbered() is None
    assert message.closes() == ()


def test_drops_of_a_network_that_loses() -> None:
    run = simulate(lossy(1))
    assert run.violations == []
    assert labels(run)[Fate.LOST] > 10
    assert set(labels(run)) <= {Fate.LOST, Fate.LATE, Fate.REFUSED}


def test_a_packet_that_comes_after_the_notification_was_late() -> None:
    scenario = calm("", 3, network=NetworkSpec(reordering=0.2, reorder_us=50_000))
    run = simulate(scenario, sequencer.plan(scenario.deployment()))
    assert run.violations == []
    assert labels(run)[Fate.LATE] > 5 and set(labels(run)) == {Fate.LATE}


def test_packets_that_a_durable_receiver_held_when_it_crashed_count_as_lost() -> None:
    strikes = [(Crash(at_ms=at, host=0), Restart(at_ms=at + 5, host=0)) for at in (20, 40, 60, 80)]
    faults = tuple(fault for strike in strikes for fault in strike)
    run = simulate(scene(2, options={"durable": True}, fault=faults))
    assert run.violations == []
    dropped = [event for event in run.events() if event.kind is Kind.DROP and event.node == 0]
    assert dropped and {event.label for event in dropped} <= {Fate.LOST, Fate.LATE}


def test_a_sequencer_that_leaves_is_no_false_alarm() -> None:
    faults = (Crash(at_ms=30, host=SEQUENCER), Restart(at_ms=90, host=SEQUENCER))
    network = NetworkSpec(loss=0.1, duplication=0.2, reordering=0.3, reorder_us=5000)
    for seed in range(3):
        run = simulate(scene(seed, network=network, fault=faults))
        assert run.violations == []
        assert sum(labels(run).values()) > 10


def test_a_row_has_the_label_at_once() -> None:
    scenario = scene(1)
    world = build_world(scenario, scenario.plan())
    world.run(1_000_000)
    world.envs[0].deliver(Dropped(0, 1, 1_000))
    event = Event._make(world.rows[-1])
    assert (event.kind, event.label, event.numbers) == (Kind.DROP, "unsent", (1_000,))

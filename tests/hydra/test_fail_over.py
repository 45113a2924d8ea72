"""Hydra section 4.4 from end to end: sequencers and replicas of the service that fail, alone and together."""

import pytest

from ordercast.core import LocalError, Message, NodeId
from ordercast.protocols.hydra import HydraOptions
from ordercast.protocols.hydra.messages import Announce, Report, Steps, Suspect, Welcome
from ordercast.scenario.faults import Crash, Heal, Partition, Restart, SetClock
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import ADDED, REMOVED, Kind
from tests.hydra.cluster import Cluster
from tests.sim.hydra_scenes import SEQUENCER, scene

SPARE = HydraOptions(spares=1)


def settled(cluster: Cluster) -> None:
    """All receivers that are up have one order in each group, and the oracles find nothing."""
    assert cluster.violations() == []
    for group in (cluster.receivers[:3], cluster.receivers[3:]):
        up = [cluster.order(node) for node in group if node not in cluster.crashed]
        assert all(up)


# Removal


def test_a_sequencer_that_crashes_is_removed_and_delivery_goes_on() -> None:
    cluster = Cluster()
    cluster.submit(count=20)
    cluster.crash(cluster.sequencers[0])
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 200)
    before = len(cluster.order(0))
    cluster.submit(count=20)
    cluster.run_ms(10)
    assert len(cluster.order(0)) == before + 20, "senders use the other one"
    assert cluster.configs() == [1] * 6
    settled(cluster)


def test_the_interruption_is_the_time_of_detection_and_little_more() -> None:
    cluster = Cluster()
    cluster.crash(cluster.sequencers[0])
    crashed_at = cluster.world.now
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 200)
    assert 25 < (cluster.world.now - crashed_at) / 1e6 < 45, "suspect_ns is 30 ms"


def test_without_suspicion_nobody_is_removed() -> None:
    cluster = Cluster()
    cluster.run_ms(500)
    assert not [m for _, _, m in cluster.arrivals if isinstance(m, Suspect)]
    assert cluster.configs() == [0] * 6


def test_one_receiver_with_a_bad_link_does_not_take_a_sequencer_away_at_once() -> None:
    cluster = Cluster()
    bad = cluster.sequencers[0]
    cluster.drop = lambda source, to, message: (source, to) == (bad, 0)
    cluster.run_ms(100)
    assert cluster.configs() == [0] * 6
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 500)  # but it is not left behind for ever
    assert cluster.configs() == [1] * 6


def test_a_receiver_that_misses_the_removal_fetches_it() -> None:
    cluster = Cluster()
    cluster.crash(cluster.sequencers[0])
    deaf = (Announce, Steps)
    cluster.drop = lambda source, to, message: to == 2 and isinstance(message, deaf)
    cluster.run_until(lambda: cluster.configs()[0] == 1, 200)
    cluster.run_ms(50)
    assert cluster.configs() == [1, 1, 0, 1, 1, 1]
    cluster.drop = lambda source, to, message: False
    cluster.run_until(lambda: cluster.configs()[2] == 1, 100)
    assert cluster.views(2) == [(REMOVED, 1)]


def test_a_crashed_receiver_does_not_hold_up_a_removal() -> None:
    cluster = Cluster()
    cluster.submit(count=5)
    cluster.crash(1)
    cluster.crash(4)
    cluster.crash(cluster.sequencers[0])
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    settled(cluster)


def test_with_the_whole_group_as_quorum_a_crashed_receiver_does() -> None:
    cluster = Cluster(HydraOptions(quorum="all"))
    cluster.crash(1)
    cluster.crash(cluster.sequencers[0])
    cluster.run_ms(500)
    assert cluster.configs() == [0] * 6


# The service fails in the middle


def crash_leader_during_reports(cluster: Cluster) -> NodeId:
    """The leader crashes when a step is planned and reports are on their way to it."""
    cluster.drop = lambda source, to, message: isinstance(message, Report)
    cluster.run_until(lambda: cluster.planned() is not None, 500)
    cluster.run_ms(0.2)
    leader = cluster.leader()
    assert leader is not None
    cluster.crash(leader)
    cluster.drop = lambda source, to, message: False
    return leader


def test_the_leader_fails_in_the_middle_of_a_removal() -> None:
    cluster = Cluster()
    cluster.submit(count=10)
    cluster.crash(cluster.sequencers[0])
    leader = crash_leader_during_reports(cluster)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 500)
    assert cluster.leader() not in (None, leader)
    settled(cluster)


def test_the_leader_fails_in_the_middle_of_an_addition() -> None:
    cluster = Cluster(HydraOptions(addition_ns=2_000_000_000))
    cluster.submit(count=10)
    first = cluster.sequencers[0]
    cluster.crash(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.restart(first)
    crash_leader_during_reports(cluster)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1), (ADDED, 3)), 500)
    cluster.submit(count=20)
    cluster.run_ms(10)
    assert cluster.number(first) == 3
    assert {event.stamp_issuer for event in cluster.events(0, Kind.DELIVER)} == {1, 2, 3}
    settled(cluster)


def test_reports_to_the_next_leader_are_the_same() -> None:
    cluster = Cluster()
    cluster.submit(count=10)
    cluster.crash(cluster.sequencers[0])
    told: dict[NodeId, set[Report]] = {node: set() for node in cluster.receivers}
    cluster.run_until(lambda: cluster.planned() is not None, 500)

    def note(source: NodeId, to: NodeId, message: Message) -> bool:
        if isinstance(message, Report):
            told[source].add(message)
        return isinstance(message, Report)

    cluster.drop = note
    cluster.run_ms(5)
    leader = cluster.leader()
    assert leader is not None
    cluster.crash(leader)
    cluster.run_until(lambda: cluster.leader() is not None and cluster.planned() is not None, 500)
    cluster.run_ms(20)
    assert all(len(reports) == 1 for reports in told.values())


def test_a_service_without_a_majority_decides_nothing() -> None:
    cluster = Cluster()
    cluster.crash(cluster.replicas[0])
    cluster.crash(cluster.replicas[1])
    cluster.crash(cluster.sequencers[0])
    cluster.run_ms(500)
    assert cluster.configs() == [0] * 6
    cluster.restart(cluster.replicas[0])
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 3000)


# Addition


def test_a_spare_joins_and_is_used() -> None:
    cluster = Cluster(SPARE)
    cluster.run_until(lambda: cluster.all_pass((ADDED, 3)), 300)
    cluster.submit(count=60)
    cluster.run_ms(10)
    assert {event.stamp_issuer for event in cluster.events(0, Kind.DELIVER)} == {1, 2, 3}
    assert len(cluster.order(0)) == 60
    settled(cluster)


def test_a_target_keeps_spares_back_until_they_are_needed() -> None:
    cluster = Cluster(HydraOptions(spares=1, target=2))
    cluster.run_ms(200)
    assert cluster.configs() == [0] * 6
    cluster.crash(cluster.sequencers[0])
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1), (ADDED, 3)), 500)
    assert cluster.number(cluster.sequencers[2]) == 3


def test_a_sequencer_that_rejoins_has_a_new_number_and_counts_from_1() -> None:
    cluster = Cluster()
    cluster.submit(count=20)
    first = cluster.sequencers[0]
    cluster.crash(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.restart(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1), (ADDED, 3)), 500)
    cluster.submit(count=30)
    cluster.run_ms(10)
    numbers = [event.numbers for event in cluster.events(0, Kind.DELIVER) if event.stamp_issuer == 3]
    assert numbers == [(count, count) for count in range(1, len(numbers) + 1)]
    assert len(numbers) > 5
    settled(cluster)


def test_a_sequencer_that_restarts_at_once_is_removed_and_added_under_a_new_number() -> None:
    cluster = Cluster()
    first = cluster.sequencers[0]
    cluster.crash(first)
    cluster.restart(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1), (ADDED, 3)), 500)
    assert cluster.number(first) == 3
    given = {m.sequencer for _, to, m in cluster.arrivals if to == first and isinstance(m, Welcome)}
    assert given == {1, 3}


def test_an_addition_is_given_up_when_the_new_sequencer_dies() -> None:
    cluster = Cluster()
    first = cluster.sequencers[0]
    cluster.crash(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.drop = lambda source, to, message: source == first and to in cluster.receivers
    cluster.restart(first)
    cluster.run_until(lambda: cluster.planned() is not None, 500)
    cluster.crash(first)
    cluster.submit(count=5)
    cluster.run_until(lambda: cluster.planned() is None, 500)
    cluster.run_ms(20)
    assert cluster.all_pass((REMOVED, 1)), "no configuration came of it"
    assert len(cluster.order(0)) == 5, "and delivery goes on"
    cluster.drop = lambda source, to, message: False
    cluster.restart(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1), (ADDED, 4)), 1000)


def test_a_removal_and_an_addition_at_the_same_time() -> None:
    cluster = Cluster(HydraOptions(sequencers=3))
    first, second, _ = cluster.sequencers
    cluster.crash(first)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.restart(first)
    cluster.crash(second)
    cluster.submit(count=10)
    cluster.run_until(lambda: cluster.configs() == [3] * 6, 1000)
    assert set(cluster.views(0)) == {(REMOVED, 1), (REMOVED, 2), (ADDED, 4)}
    assert all(cluster.views(node) == cluster.views(0) for node in cluster.receivers)
    cluster.submit(count=10)
    cluster.run_ms(20)
    settled(cluster)


def test_two_removals_at_the_same_time() -> None:
    cluster = Cluster(HydraOptions(sequencers=4))
    cluster.submit(count=20)
    for node in cluster.sequencers[1:3]:
        cluster.crash(node)
    cluster.run_until(lambda: cluster.configs() == [2] * 6, 500)
    assert sorted(cluster.views(0)) == [(REMOVED, 2), (REMOVED, 3)]
    settled(cluster)


@pytest.mark.parametrize("seed", range(3))
def test_all_sequencers_are_removed_and_come_back(seed: int) -> None:
    cluster = Cluster(seed=seed)
    cluster.submit(count=10)
    for node in cluster.sequencers:
        cluster.crash(node)
    cluster.run_until(lambda: cluster.configs() == [2] * 6, 500)
    assert not cluster.world.envs[cluster.sender].process.submit((0,), b"")  # type: ignore[attr-defined]
    for node in cluster.sequencers:
        cluster.restart(node)
    cluster.run_until(lambda: cluster.configs() == [4] * 6, 1000)
    before = len(cluster.order(0))
    cluster.submit(count=10)
    cluster.run_ms(20)
    assert len(cluster.order(0)) == before + 10
    assert sorted(cluster.number(node) for node in cluster.sequencers) == [3, 4]
    settled(cluster)


def test_an_even_service_is_refused() -> None:
    with pytest.raises(LocalError, match="odd number"):
        HydraOptions(replicas=4)


@pytest.mark.parametrize("seed", range(6))
def test_a_sequencer_that_restarts_while_its_clock_stands_still_gets_a_number_of_its_own(seed: int) -> None:
    others = (0, 1, 2, 3, 4, 5, 9, 10, 11)
    faults = (
        Partition(at_ms=30, sides=((SEQUENCER,), others)),
        SetClock(at_ms=72, host=SEQUENCER, step_us=-600_000),
        Heal(at_ms=75),
        Crash(at_ms=140, host=SEQUENCER),
        Restart(at_ms=140.1, host=SEQUENCER),
    )
    workload = WorkloadSpec(messages=500, rate_per_s=1000, spread=(0.6, 0.4))
    run = simulate(scene(seed, options={"sequencers": 1}, workload=workload, fault=faults))
    assert run.violations == []
    numbers = [event.stamp_issuer for event in run.events() if event.label == ADDED and event.node == 0]
    assert len(numbers) == len(set(numbers))


def test_no_message_is_lost_at_the_start() -> None:
    scenario = scene(3, network=NetworkSpec(latency=UniformSpec(50, 500)))
    assert simulate(scenario).ending == "settled"

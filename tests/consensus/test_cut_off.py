"""Replicas that are cut off, both ways or one way: another leads soon, and a good leader is left alone."""

import msgspec
import pytest

from ordercast.components.consensus import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.components.consensus.messages import Commit
from ordercast.components.consensus.roles import Role
from ordercast.core import MILLISECOND
from tests.consensus.harness import LogWorld

WAYS = ("both ways", "in", "out")
TIMEOUTS = {"simulator": ConsensusOptions(), "live": msgspec.convert(LIVE_TIMEOUTS, ConsensusOptions)}


def cut(world: LogWorld, host: int, way: str) -> None:
    """Cut a host off: nothing arrives there (in), nothing that it sends arrives (out), or both."""
    for other in range(len(world.envs)):
        if way != "out":
            world.network.blocked.add((other, host))
        if way != "in":
            world.network.blocked.add((host, other))


def run_times(world: LogWorld, heartbeats: float) -> None:
    """Run for so many heartbeats."""
    world.run_ms(heartbeats * world.replica(0)._options.heartbeat_ns / MILLISECOND)


@pytest.mark.parametrize("replicas", [3, 5])
@pytest.mark.parametrize("timeouts", TIMEOUTS)
@pytest.mark.parametrize("way", WAYS)
def test_another_leads_and_decides_within_two_detection_times(way: str, timeouts: str, replicas: int) -> None:
    options = TIMEOUTS[timeouts]
    for seed in range(5):
        world = LogWorld(replicas, seed, options)
        run_times(world, 7)
        assert world.leader() == 0
        cut(world, 0, way)
        before = world.now
        while b"next" not in world.values(1):
            if world.leader() not in (None, 0):
                world.propose(b"next")
            run_times(world, 0.2)
            assert world.now - before < 2 * options.detection_ns, f"seed {seed}"


@pytest.mark.parametrize("way", WAYS)
def test_a_leader_that_is_cut_off_knows_that_it_does_not_lead(way: str) -> None:
    world = LogWorld()
    world.run_ms(20)
    cut(world, 0, way)
    world.act(0, b"in vain")
    world.run_ms(60)
    assert world.replica(0).role is not Role.LEADER
    assert not world.act(0, b"refused")
    if way != "out":  # otherwise it hears who leads now
        told = world.replica(0).explain()
        assert told.state["gave up leading"] == "no majority answered 10 heartbeats in ballot 0"
        assert told.state["leader"] == "unknown"
    world.run_ms(100)
    world.network.blocked.clear()
    world.run_ms(50)
    assert "gave up leading" not in world.replica(0).explain().state
    assert world.replica(0).leader == world.leader()


def test_a_leader_that_gave_up_says_nothing_as_a_leader() -> None:
    world = LogWorld()
    cut(world, 0, "in")
    world.run_ms(60)
    world.arrived.clear()
    world.run_ms(20)
    assert not any(isinstance(message, Commit) and message.ballot == 0 for message in world.arrived)


def test_a_leader_keeps_a_majority_that_answers_though_the_others_do_not() -> None:
    world = LogWorld(5)
    for host in (3, 4):
        cut(world, host, "out")
    world.run_ms(1000)
    assert (world.leader(), world.replica(0).ballot) == (0, 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_follower_that_is_cut_off_and_comes_back_leaves_the_leader_alone(way: str) -> None:
    world = LogWorld()
    world.run_ms(20)
    cut(world, 2, way)
    for number in range(100):
        assert world.act(0, b"%d" % number)
        world.run_ms(10)
    world.network.blocked.clear()
    world.run_ms(100)
    assert (world.leader(), world.replica(0).ballot) == (0, 0)
    assert world.values(2) == world.values(0)
    assert len(world.values(0)) == 100


def test_a_candidate_that_is_cut_off_comes_back_without_its_ballot() -> None:
    world = LogWorld()
    world.run_ms(20)
    cut(world, 2, "both ways")
    world.replica(2)._lose_patience()
    world.replica(2)._stand()
    world.run_ms(1000)
    assert world.replica(2).role is Role.CANVASSER
    world.network.blocked.clear()
    world.run_ms(200)
    assert world.leader() is not None
    assert world.propose(b"goes on")
    world.run_ms(20)
    assert [world.values(i) for i in range(3)] == [[b"goes on"]] * 3


def test_a_clock_that_stands_still_does_not_keep_a_replica_from_electing() -> None:
    world = LogWorld()
    world.run_ms(20)
    for host in (1, 2):
        world.step_clock(host, -3600 * 1000 * MILLISECOND)
    world.crash(0)
    world.run_ms(300)
    assert world.leader() in (1, 2)


def test_a_pause_of_the_leader_does_not_make_it_give_up_by_itself() -> None:
    options = ConsensusOptions(election_ns_min=200 * MILLISECOND, election_ns_max=400 * MILLISECOND)
    world = LogWorld(options=options)
    world.run_ms(20)
    world.pause(0, 150 * MILLISECOND)
    world.run_ms(300)
    assert (world.leader(), world.replica(0).ballot) == (0, 0)

"""One way back from a loss of memory a test. With a broken rule, a scene would end in two decisions."""

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.consensus.log import Owner
from ordercast.components.consensus.messages import Promise
from ordercast.components.consensus.roles import Role
from ordercast.core import LocalError, RemoteError
from tests.consensus.harness import LogWorld

OPTIONS = ConsensusOptions(window=8, log_limit=40, checkpoint=10, chunk_bytes=200)


def in_memory(replicas: int = 3) -> LogWorld:
    return LogWorld(replicas, options=OPTIONS, transfers=True, durable=False)


def cut(world: LogWorld, *links: tuple[int, int]) -> None:
    """Let nothing pass between these replicas, and everything between all others."""
    world.network.blocked = {way for one, two in links for way in ((one, two), (two, one))}


def stand(world: LogWorld, index: int) -> None:
    """Let a replica stand for election at once."""
    world.envs[index].now = world.now
    world.replica(index)._lose_patience()
    world.replica(index)._stand()


def lose_memory(world: LogWorld, index: int) -> None:
    world.crash(index)
    world.restart(index, keep_state=False)


def decided(world: LogWorld) -> dict[int, bytes]:
    """What was decided, as all replicas see it; they must not differ."""
    found: dict[int, bytes] = {}
    for index in world.up():
        for slot, value in world.node(index).applied:
            assert found.setdefault(slot, value) == value, f"slot {slot} was decided twice"
    return found


def test_a_replica_without_memory_gets_it_back_and_votes_again() -> None:
    world = in_memory()
    for number in range(25):
        world.propose(b"%d" % number)
        world.run_ms(1)
    lose_memory(world, 2)
    world.run_ms(20)
    assert world.replica(2).role is Role.FOLLOWER
    assert world.values(2) == world.values(0)
    assert world.replica(2).returned_at == 25, "its earlier life may have delivered that much"
    world.crash(1)
    assert world.propose(b"after")
    world.run_ms(20)
    assert world.values(2)[-1] == b"after"


def test_nothing_but_a_mark_is_saved_in_memory() -> None:
    world = in_memory()
    for number in range(25):
        world.propose(b"%d" % number)
        world.run_ms(1)
    assert [sorted(env.saved) for env in world.envs] == [["log.lost"]] * 3
    world.crash(2)
    world.restart(2)
    world.run_ms(0.001)
    assert world.replica(2).role is Role.LOST, "the mark is there, and the rest is not"


def test_a_durable_replica_that_lost_its_disk_is_durable_again() -> None:
    world = LogWorld(options=OPTIONS, transfers=True)
    for number in range(25):
        world.propose(b"%d" % number)
        world.run_ms(1)
    lose_memory(world, 2)
    world.run_ms(0.001)
    assert world.replica(2).role is Role.LOST
    world.crash(2)
    world.restart(2)
    world.run_ms(20)
    assert world.replica(2).role is Role.FOLLOWER, "it was lost in the life before, too"
    assert "log.lost" not in world.envs[2].saved
    world.crash(2)
    world.restart(2)
    world.run_ms(0.001)
    assert world.replica(2).role is Role.FOLLOWER, "it remembers"


def test_a_leader_that_lost_its_memory_waits_for_another_leader() -> None:
    world = in_memory()
    world.propose(b"first")
    world.run_ms(5)
    lose_memory(world, 0)
    world.run_ms(10)
    assert world.replica(0).role is Role.LOST
    assert "the leader of ballot 0" in world.replica(0).explain().waits[0].blocker
    world.run_ms(200)
    assert world.leader() in (1, 2)
    assert (world.replica(0).role, world.values(0)) == (Role.FOLLOWER, [b"first"])


def test_a_majority_without_memory_decides_nothing_more() -> None:
    world = in_memory()
    world.propose(b"first")
    world.run_ms(5)
    lose_memory(world, 0)
    lose_memory(world, 1)
    world.run_ms(1000)
    assert [world.replica(i).role for i in (0, 1)] == [Role.LOST] * 2
    assert world.leader() is None


def test_who_lost_its_memory_alone_does_not_come_back() -> None:
    world = in_memory(1)
    world.propose(b"first")
    lose_memory(world, 0)
    world.run_ms(1000)
    assert world.replica(0).role is Role.LOST


def outdated_leader() -> None:
    """Replica 2 helped leader 1 decide. Without memory it meets only leader 0, which knows of nothing."""
    world = in_memory()
    world.run_ms(1)
    cut(world, (0, 1), (0, 2))
    stand(world, 1)
    world.run_ms(2)
    assert world.act(1, b"of leader 1")
    world.run_ms(2)
    assert world.values(1) == [b"of leader 1"]
    cut(world, (0, 1), (1, 2))
    lose_memory(world, 2)
    world.run_ms(12)
    world.act(0, b"of leader 0")
    world.run_ms(12)
    decided(world)
    cut(world)
    world.run_ms(300)
    assert decided(world)[0] == b"of leader 1"


def test_an_outdated_leader_is_not_enough() -> None:
    outdated_leader()


def outdated_majority() -> None:
    """The same with a majority that answers, but without the leader of its highest ballot."""
    world = in_memory(5)
    world.run_ms(1)
    cut(world, *((0, i) for i in (2, 3, 4)), *((1, i) for i in (2, 3, 4)))
    stand(world, 3)
    world.run_ms(2)
    assert world.act(3, b"of leader 3")
    world.run_ms(2)
    assert world.values(3) == [b"of leader 3"]
    # Replica 2 promised to leader 3, but the decision was made by 2, 3 and 4: one of them forgets it.
    cut(world, (3, 0), (3, 1), (3, 2), (3, 4), (2, 0), (2, 1))
    lose_memory(world, 4)
    world.run_ms(12)
    world.act(0, b"of leader 0")
    world.run_ms(12)
    decided(world)
    cut(world)
    world.run_ms(400)
    assert decided(world)[0] == b"of leader 3"


def test_a_majority_without_its_leader_is_not_enough() -> None:
    outdated_majority()


def proposals_forgotten() -> None:
    """Leader 0 decided with replica 2 alone, which forgets it, and then leader 0 is gone."""
    world = in_memory()
    world.run_ms(1)
    cut(world, (0, 1))
    assert world.act(0, b"decided")
    world.run_ms(2)
    assert world.values(0) == [b"decided"]
    known = decided(world)
    lose_memory(world, 2)
    world.run_ms(0.001)
    while world.replica(2).role is Role.LOST:
        world.run_ms(0.01)
    world.crash(0)
    cut(world)
    world.run_ms(300)
    assert world.propose(b"later")
    world.run_ms(20)
    assert decided(world) | known == decided(world)


def test_what_the_leader_had_proposed_comes_back() -> None:
    proposals_forgotten()


def promise_of_an_earlier_life() -> None:
    """Candidate 4 has the promise of replica 3, which forgets it and helps leader 0 to decide."""
    world = in_memory(5)
    world.run_ms(1)
    cut(world, *((4, i) for i in (0, 1, 2)))
    stand(world, 4)
    world.run_ms(1)
    cut(world, *((4, i) for i in (0, 1, 2, 3)))
    lose_memory(world, 3)
    world.run_ms(6)
    assert world.replica(3).role is Role.FOLLOWER
    cut(world, *((4, i) for i in (0, 1, 2, 3)), (2, 0), (2, 1))
    assert world.act(0, b"with replica 3")
    world.run_ms(1)
    assert world.values(0) == [b"with replica 3"]
    known = decided(world)
    # Now the candidate meets replica 2, and would have its majority with the old promise.
    cut(world, (4, 0), (4, 1), (0, 2), (1, 2), (0, 3), (1, 3))
    world.run_ms(20)
    if world.replica(4).is_leader:
        world.act(4, b"with an old promise")
        world.run_ms(2)
    decided(world)
    cut(world)
    world.run_ms(400)
    assert decided(world) | known == decided(world)


def test_the_promise_of_an_earlier_life_does_not_count() -> None:
    promise_of_an_earlier_life()


def test_a_late_promise_to_an_earlier_life_is_passed_over() -> None:
    world = in_memory()
    lose_memory(world, 1)
    world.run_ms(0.001)
    late = Promise(4, 0, ((500, 0, b"far beyond what this life knows"),), 0)
    world.replica(1).on_message(2, late)
    assert world.replica(1).role is Role.LOST
    stand(world, 2)
    far = Promise(world.replica(2).ballot, 0, ((500, 0, b"far"),), 0)
    with pytest.raises(RemoteError, match="accepted slot 500"):
        world.replica(2).on_message(0, far)


def test_a_log_in_memory_needs_transfers() -> None:
    with pytest.raises(LocalError, match="needs `transfers`"):
        Owner(bytes, lambda state: None, durable=False)
    with pytest.raises(LocalError, match="give `snapshot` and `restore`"):
        Owner(transfers=True)

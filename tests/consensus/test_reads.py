"""Reads past the log: a leader answers when it is sure that it still led after the read came."""

from ordercast.components.consensus.messages import Accept, Accepted, Confirm, Confirmed
from tests.consensus.harness import LogWorld
from tests.consensus.test_recovery import cut, stand


def test_a_leader_confirms_in_one_round_trip() -> None:
    world = LogWorld()
    world.run_ms(1)
    barrier = world.barrier(0)
    assert barrier is not None
    assert world.replica(0).passes(barrier) is False
    world.run_ms(0.5)
    assert world.replica(0).passes(barrier) is True


def test_a_follower_has_no_barrier_and_a_lone_leader_passes_at_once() -> None:
    assert LogWorld().barrier(1) is None
    alone = LogWorld(1)
    barrier = alone.barrier(0)
    assert barrier is not None
    assert alone.replica(0).passes(barrier) is True


def test_reads_that_come_during_a_round_share_the_next() -> None:
    world = LogWorld()
    world.run_ms(1)
    world.arrived.clear()
    barriers = [world.barrier(0) for _ in range(10)]
    world.run_ms(1)
    assert [b is not None and world.replica(0).passes(b) for b in barriers] == [True] * 10
    assert [b.round for b in barriers if b] == [1] + [2] * 9
    assert sum(isinstance(message, Confirm) for message in world.arrived) == 4, "two rounds"


def test_a_round_whose_packets_are_lost_is_repeated() -> None:
    world = LogWorld()
    world.run_ms(1)
    cut(world, (0, 1), (0, 2))
    barrier = world.barrier(0)
    world.run_ms(3)
    cut(world)
    world.run_ms(10)
    assert barrier is not None
    assert world.replica(0).passes(barrier) is True


def deposed_leader() -> None:
    """Leader 0 is cut off, and does not know that leader 1 has decided something."""
    world = LogWorld()
    world.run_ms(1)
    cut(world, (0, 1), (0, 2))
    stand(world, 1)
    world.run_ms(2)
    assert world.act(1, b"new")
    world.run_ms(2)
    assert world.values(1) == [b"new"]
    barrier = world.barrier(0)
    assert barrier is not None, "it still believes that it leads"
    for _ in range(20):
        world.run_ms(1)
        assert not world.replica(0).passes(barrier)
    cut(world)
    world.run_ms(50)
    assert world.replica(0).passes(barrier) is None, "another replica leads"


def test_a_deposed_leader_answers_no_reads() -> None:
    deposed_leader()


def late_answer() -> None:
    """An answer to a round that began before a read came proves nothing for that read."""
    world = LogWorld()
    world.run_ms(1)
    cut(world, (0, 1), (0, 2))
    first = world.barrier(0)
    stand(world, 1)
    world.run_ms(2)
    assert world.act(1, b"new")
    world.run_ms(2)
    second = world.barrier(0)
    world.replica(0).on_message(2, Confirmed(0, 1))  # sent before replica 2 promised to replica 1
    assert first and second
    assert world.replica(0).passes(first) is True
    assert world.replica(0).passes(second) is False


def test_a_late_answer_confirms_nothing_for_later_reads() -> None:
    late_answer()


def new_leader() -> None:
    """Leader 0 has decided and answered; leader 1 has to decide it again before it may answer reads."""
    world = LogWorld()
    world.run_ms(1)
    assert world.act(0, b"answered")
    while len([message for message in world.arrived if isinstance(message, Accept)]) < 2:
        world.run_ms(0.01)
    world.network.blocked |= {(0, 1), (0, 2)}  # its answers come, but its notices do not arrive
    world.run_ms(1)
    world.crash(0)
    assert [world.values(i) for i in range(3)] == [[b"answered"], [], []]
    stand(world, 1)
    while not world.replica(1).is_leader:
        world.run_ms(0.01)
    barrier = world.barrier(1)
    assert barrier is not None
    cut(world, (1, 2))
    world.replica(1).on_message(2, Confirmed(barrier.ballot, barrier.round))
    assert world.replica(1).passes(barrier) is False
    world.replica(1).on_message(2, Accepted(barrier.ballot, 0))
    assert world.values(1) == [b"answered"]
    assert world.replica(1).passes(barrier) is True


def test_a_new_leader_waits_for_what_earlier_ones_decided() -> None:
    new_leader()

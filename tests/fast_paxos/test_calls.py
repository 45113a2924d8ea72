"""How calls of Fast Paxos find their slots."""

from ordercast.replication.fast_paxos.server import Server
from tests.logged_service.lab import ServiceWorld, result


def server(world: ServiceWorld, index: int) -> Server:
    process = world.replica(index)
    assert isinstance(process, Server)
    return process


def test_a_call_that_only_followers_got_is_executed_without_a_repetition() -> None:
    world = ServiceWorld("fast_paxos", options={"calls": {"retry_ns": 10_000_000_000}})
    world.block((3, 0))  # the first client does not reach the leader
    lost = world.add(0)
    world.run_ms(1)
    others = [world.add(1) for _ in range(3)]
    world.run_ms(100)
    assert sorted(world.answers()) == sorted([lost, *others])
    assert world.executed(0) == world.executed(1) == world.executed(2)


def test_a_call_that_one_follower_missed_costs_a_conflict_and_no_more() -> None:
    world = ServiceWorld("fast_paxos")
    world.block((3, 2))
    world.add(0)
    world.run_ms(1)
    world.block()
    for _ in range(5):
        world.add(1)
        world.run_ms(1)
    world.run_ms(10)
    assert len(world.answers()) == 6
    for replica in range(3):
        assert not server(world, replica)._strays


def test_a_proposal_that_comes_before_the_call_costs_no_second_vote() -> None:
    world = ServiceWorld("fast_paxos", replicas=3)
    # Replica 2 gets the call late: the leader has proposed it by then.
    world.block((3, 2))
    added = world.add(0)
    world.run_ms(15)
    world.block()
    assert world.answers()[added].digest == result(1)
    call = next(iter(server(world, 1)._done))
    assert call == added
    before = dict(server(world, 2).log._journal.entries)
    world.run_ms(100)
    assert dict(server(world, 2).log._journal.entries) == before
    following = world.add(0)
    world.run_ms(2)
    assert world.answers()[following].digest == result(2)

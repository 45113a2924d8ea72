"""Plays of Granola's shards, each of which ends with all promises kept.

`test_plays.py` plays each; `test_mutants.py` plays it again with something broken on purpose, which must
break a promise.
"""

from ordercast.components.consensus.messages import Accept
from ordercast.core import Message, NodeId
from ordercast.core.general import pack_abort
from ordercast.transactions.granola.messages import Ask, Request, Vote
from tests.granola.lab import LOCK_MS, VOTE_MS, GranolaWorld, prepared, until_answered
from tests.hand_driven import require
from tests.logged_shards.lab import ALSO_HERE, ALSO_THERE, FAR, HERE, THERE, transfer

SHARD_0, SHARD_1 = (0, 1, 2), (3, 4, 5)
CLIENTS = (6, 7, 8)
ALL = set(range(6))


# Timestamps


def one_shard_takes_one_round() -> None:
    """Its proposal is final: nobody votes."""
    world = GranolaWorld()
    message = world.call(transfer(HERE, ALSO_HERE, 5))
    until_answered(world, message)
    assert world.kinds(Vote) == 0 and world.kinds(Request) == 1
    assert {time % 2 for time in world.times(message) if time is not None} == {0}
    world.finish(message)


def two_shards_take_the_higher_timestamp() -> None:
    """The clocks of shard 0 are ahead, so both run it at the time that shard 0 has proposed."""
    world = GranolaWorld(ahead_ms=50)
    message = world.call(transfer(*FAR, 5))
    until_answered(world, message)
    world.run_ms(20)
    assert world.deliverers(message) == ALL
    times = world.times(message)
    require(len(times) == 1, f"shards ran it at {times}")
    assert all(time is not None and time % 2 == 0 and time > 50_000_000 for time in times)
    assert world.kinds(Vote) == 2
    world.finish(message)


def a_higher_timestamp_waits_for_a_lower_one_that_is_pending() -> None:
    """What has a vote missing may yet run before all that was proposed later."""
    world = GranolaWorld()
    world.lose(Vote, Ask)
    first = world.call(transfer(*FAR, 5))
    world.run_ms(2)
    second = world.call(transfer(HERE, ALSO_HERE, 5), 1)
    world.run_ms(LOCK_MS)
    require(not world.deliverers(second), "a higher timestamp has overtaken a pending one")
    world.finish(first, second)


def what_waits_may_still_run_first() -> None:
    """A is pending in shard 0, whose clock is behind. B comes there later, with a higher proposal; and then A
    gets an even higher one from shard 1. Both shards run B, then A."""
    world = GranolaWorld()
    for node in SHARD_1:
        world.step_clock(node, 30_000_000)
    world.lose(Vote, to=SHARD_0)
    a = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(a) & set(SHARD_1))
    b = world.call(transfer(HERE, ALSO_HERE, 5), 1)
    world.run_ms(2)
    world.finish(a, b)
    assert max(t or 0 for t in world.times(b)) < min(t or 0 for t in world.times(a))
    assert [message for message in world.order(0) if message in (a, b)] == [b, a]


def a_proposal_is_above_what_has_run() -> None:
    """Shard 1, whose clock is behind, has run something at the time of shard 0, and gets another call."""
    world = GranolaWorld(ahead_ms=1000)
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(message) & set(SHARD_1))
    other = world.call(transfer(THERE, ALSO_THERE, 5), 1)
    world.finish(message, other)


def a_client_sees_its_own_order() -> None:
    """Calls to one shard after the other, whose clock is behind. Another transaction is pending there, and
    would come to run between them the wrong way round."""
    world = GranolaWorld(ahead_ms=1000)
    world.lose(Vote, to=SHARD_1)
    middle = world.call(transfer(*FAR, 1), 2)
    world.run_until(lambda: world.deliverers(middle))
    one = world.call(transfer(HERE, HERE, 1))
    until_answered(world, one)
    two = world.call(transfer(THERE, ALSO_THERE, 1))
    world.run_ms(5)
    world.finish(one, two, middle)


def a_client_that_restarts_sees_its_own_order() -> None:
    """The same, but its host restarts in between: it asks all shards which timestamps they have told."""
    world = GranolaWorld(ahead_ms=1000)
    world.lose(Vote, to=SHARD_1)
    middle = world.call(transfer(*FAR, 1), 2)
    world.run_until(lambda: world.deliverers(middle))
    one = world.call(transfer(HERE, HERE, 1))
    until_answered(world, one)
    world.crash(GranolaWorld.CLIENT)
    world.restart(GranolaWorld.CLIENT)
    world.run_ms(5)
    two = world.call(transfer(THERE, ALSO_THERE, 1))
    world.run_ms(5)
    world.finish(one, two, middle)


# Votes and requests


def a_lost_vote_is_asked_for() -> None:
    world = GranolaWorld()
    world.lose(Vote)
    message = world.call(transfer(*FAR, 5))
    world.run_ms(VOTE_MS / 2)
    world.lose()
    assert not world.deliverers(message)
    world.run_ms(3 * VOTE_MS)
    require(world.deliverers(message) == ALL, "a lost vote was not asked for")
    world.finish(message)


def a_shard_gets_a_lost_request_from_another_one() -> None:
    """The client has reached one shard alone, and is dead then."""
    world = GranolaWorld()
    world.cut_client(0, 1)
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.records(0))
    world.crash(GranolaWorld.CLIENT)
    world.run_ms(4 * VOTE_MS)
    assert world.deliverers(message) == ALL
    world.finish()


def a_leader_dies_after_it_has_voted() -> None:
    """Shard 1 has its vote, and runs the transaction. The next leader of shard 0 has the proposal of the log,
    and makes none of the request, which comes again."""
    world = GranolaWorld()
    world.lose(Vote, Ask, to=SHARD_0)
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(message) & set(SHARD_1))
    world.crash(0)
    world.run_ms(150)
    assert world.leader(0) != 0
    world.finish(message)
    require(len(world.times(message)) == 1, f"shards ran it at {world.times(message)}")


def a_leader_dies_before_its_proposal_is_in_the_log() -> None:
    """Nobody hears of it, so the next leader may propose another timestamp."""
    world = GranolaWorld()
    world.lose(Accept, source=[0])
    message = world.call(transfer(*FAR, 5))
    world.run_ms(2)
    world.crash(0)
    world.lose()
    world.run_ms(150)
    world.finish(message)
    require(len(world.times(message)) == 1, f"shards ran it at {world.times(message)}")


def all_leaders_die_before_they_settle() -> None:
    """What they were told is gone; the next ones ask again."""
    world = GranolaWorld()
    world.lose(Vote)
    messages = [world.call(transfer(*FAR, 1), client) for client in range(3)]
    world.run_until(lambda: len(world.records(0)) == len(world.records(3)) == 3)
    world.crash(0)
    world.crash(3)
    world.run_ms(150)
    world.lose()
    world.run_ms(100)
    world.finish(*messages)


def a_request_that_comes_again_runs_once() -> None:
    """A late copy, after its client has said that it waits for it no more."""
    world = GranolaWorld()
    message = world.call(transfer(HERE, ALSO_HERE, 5))
    until_answered(world, message)
    late = next(sent for _, _, sent in world.sent if isinstance(sent, Request))
    for _ in range(3):
        until_answered(world, world.call(transfer(HERE, ALSO_HERE, 1)))
    world.inject(CLIENTS[0], 0, late)
    world.run_ms(20)
    world.finish(message)


def a_late_request_of_two_shards_runs_once() -> None:
    """The same with two shards, one of which gets the copy."""
    world = GranolaWorld()
    message = world.call(transfer(*FAR, 5))
    until_answered(world, message)
    late = next(sent for _, _, sent in world.sent if isinstance(sent, Request))
    for _ in range(3):
        until_answered(world, world.call(transfer(*FAR, 1)))
    world.run_ms(3 * LOCK_MS)
    world.inject(CLIENTS[0], 3, late)
    world.run_ms(50)
    world.finish(message)


# Memory and restarts


def what_was_settled_is_forgotten() -> None:
    """Its client says so with a later call; if it does not, the shards ask each other."""
    world = GranolaWorld()
    first = world.call(transfer(*FAR, 5))
    until_answered(world, first)
    world.run_ms(5)
    assert len(world.records(0)) == 1
    second = world.call(transfer(*FAR, 5))
    until_answered(world, second)
    world.run_ms(5)
    assert len(world.records(0)) == 1
    world.run_ms(4 * LOCK_MS)
    assert not any(world.records(node) for node in range(6))
    world.finish(first, second)


def a_shard_is_not_forgotten_that_has_not_settled() -> None:
    """Shard 1 has run it, and its client has died; shard 0 lacks the vote for long, and gets it."""
    world = GranolaWorld()
    world.lose(Vote, Ask, to=SHARD_0)
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(message) & set(SHARD_1))
    world.crash(GranolaWorld.CLIENT)
    world.run_ms(6 * LOCK_MS)
    assert not world.deliverers(message) & set(SHARD_0)
    world.finish()
    assert world.deliverers(message) == ALL


def a_client_gives_up_what_one_shard_has_run() -> None:
    """Shard 1 has run it, and the client makes other calls there; shard 0 lacks the vote meanwhile."""
    world = GranolaWorld(options={"calls": {"deadline_ns": 50_000_000}})
    world.lose(Vote, Ask, to=SHARD_0)
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(message) & set(SHARD_1))
    world.run_ms(LOCK_MS)
    later = world.call(transfer(THERE, ALSO_THERE, 1))
    until_answered(world, later)
    assert not world.answered(message)
    world.finish(later)
    require(world.deliverers(message) == ALL, "one shard has run it alone")


def a_replica_that_lags_does_not_say_what_was_forgotten() -> None:
    """Shard 0 has run it, and asks whether shard 1 knows that; the leader there lacks the vote, and another
    replica knows nothing of it. Then the client gives it up."""
    world = GranolaWorld(options={"calls": {"deadline_ns": 50_000_000}})

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        lags = to == 5 and "consensus" in type(message).__module__
        silent = isinstance(message, Vote) and to in SHARD_1
        return lags or silent or (isinstance(message, Ask) and source in SHARD_1)

    world.lost = lost
    message = world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.deliverers(message) & set(SHARD_0))
    world.run_ms(2 * LOCK_MS)
    later = world.call(transfer(HERE, ALSO_HERE, 1))
    until_answered(world, later)
    assert not world.deliverers(message) & set(SHARD_1)
    world.finish(later)
    require(world.deliverers(message) >= {0, 1, 2, 3, 4}, "one shard has run it alone")


def replicas_lose_their_memory() -> None:
    """One after the other, with something pending, settled and open."""
    world = GranolaWorld(options={"durable": False})
    opened = prepared(world, 2)
    world.lose(Vote, Ask)
    pending = world.call(transfer(ALSO_HERE, ALSO_THERE, 5))
    world.run_until(lambda: world.records(0) and world.records(3))
    for node in (1, 4, 0, 3):
        world.crash(node)
        world.restart(node, keep_state=False)
        world.run_ms(LOCK_MS)
    world.finish(pending, opened)


def a_replica_that_was_away_takes_over_a_state() -> None:
    world = GranolaWorld(options={"consensus": {"checkpoint": 2, "log_limit": 8}})
    world.crash(2)
    messages = [world.call(transfer(*FAR, 1), number % 3) for number in range(30)]
    world.run_ms(2 * LOCK_MS)
    opened = prepared(world)
    world.restart(2)
    world.run_ms(LOCK_MS / 2)
    end = world.call(pack_abort(opened, (0, 1)))
    until_answered(world, end)
    world.finish(*messages, end)


PLAYS = (
    one_shard_takes_one_round,
    two_shards_take_the_higher_timestamp,
    a_higher_timestamp_waits_for_a_lower_one_that_is_pending,
    what_waits_may_still_run_first,
    a_proposal_is_above_what_has_run,
    a_client_sees_its_own_order,
    a_client_that_restarts_sees_its_own_order,
    a_lost_vote_is_asked_for,
    a_shard_gets_a_lost_request_from_another_one,
    a_leader_dies_after_it_has_voted,
    a_leader_dies_before_its_proposal_is_in_the_log,
    all_leaders_die_before_they_settle,
    a_request_that_comes_again_runs_once,
    a_late_request_of_two_shards_runs_once,
    what_was_settled_is_forgotten,
    a_shard_is_not_forgotten_that_has_not_settled,
    a_client_gives_up_what_one_shard_has_run,
    a_replica_that_lags_does_not_say_what_was_forgotten,
    replicas_lose_their_memory,
    a_replica_that_was_away_takes_over_a_state,
)

"""Plays of Granola's shards, each of which ends with all promises kept.

`test_plays.py` plays each; `test_mutants.py` plays it again with something broken on purpose, which must
break a promise.
"""

from functools import partial

from ordercast.components.consensus.messages import Accept
from ordercast.core import Message, MessageId, NodeId, message_sender
from ordercast.core.general import pack_abort, pack_commit, pack_prepare
from ordercast.transactions.granola.messages import Ask, Request, State, Told, Vote
from tests.granola.lab import LOCK_MS, VOTE_MS, GranolaWorld, require
from tests.logged_shards.lab import ALSO_HERE, ALSO_THERE, FAR, HERE, THERE, transfer

SHARD_0, SHARD_1 = (0, 1, 2), (3, 4, 5)
CLIENTS = (6, 7, 8)
ALL = set(range(6))


def until_answered(world: GranolaWorld, message: MessageId) -> None:
    world.run_until(partial(world.answered, message))


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


# General transactions


def prepared(world: GranolaWorld, client: int = 0) -> MessageId:
    """A general transaction that has its locks."""
    message = world.call(pack_prepare(FAR), client)
    until_answered(world, message)
    return message


def a_general_transaction_locks_and_leaves_locking_mode() -> None:
    world = GranolaWorld()
    message = prepared(world)
    assert world.is_locking(0) and world.is_locking(1)
    free = world.call(transfer(ALSO_HERE, ALSO_THERE, 1), 1)
    until_answered(world, free)
    end = world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 2}))
    until_answered(world, end)
    world.run_ms(20)
    assert not world.is_locking(0) and not world.is_locking(1)
    world.finish(message, free, end)


def what_is_in_conflict_is_tried_again() -> None:
    """It runs in no shard while the general transaction is open, and in all of them afterwards."""
    world = GranolaWorld()
    message = prepared(world)
    other = world.call(transfer(HERE, ALSO_THERE, 5), 1)
    world.run_ms(LOCK_MS / 4)
    assert not world.deliverers(other)
    told = [sent for _, _, sent in world.sent if isinstance(sent, Told)]
    assert any(one.state is State.CONFLICT for one in told)
    end = world.call(pack_abort(message, (0, 1)))
    until_answered(world, end)
    world.run_ms(LOCK_MS)
    assert world.answered(other)
    world.finish(message, other, end)


def a_retry_takes_the_place_of_the_attempt_before() -> None:
    """Shard 0 has locked for an attempt that was in conflict in shard 1, and has not heard of that when the
    next attempt comes."""
    world = GranolaWorld()
    first = world.call(pack_prepare([THERE]), 1)
    until_answered(world, first)
    world.lose(Vote, Ask)
    second = world.call(pack_prepare(FAR))
    world.run_ms(LOCK_MS / 4)
    (record,) = world.records(0)
    require(record.prepares and record.attempt > 1, "a retry is in conflict with the attempt before")
    world.lose()
    end = world.call(pack_abort(first, (1,)), 1)
    until_answered(world, end)
    until_answered(world, second)
    done = world.call(pack_abort(second, (0, 1)))
    world.finish(first, second, end, done)


def a_general_one_does_not_lock_what_is_pending() -> None:
    """A pending transaction needs one of its keys, and may come to run behind it: it is tried again."""
    world = GranolaWorld()
    world.lose(Vote, Ask)
    pending = world.call(transfer(*FAR, 5), 1)
    world.run_until(lambda: world.records(0) and world.records(3))
    world.call(pack_prepare([HERE]))
    world.run_ms(5)
    assert not world.is_locking(0)
    world.lose()
    world.run_ms(LOCK_MS)
    assert world.is_locking(0) and world.answered(pending)
    world.finish(pending)


def a_client_dies_in_a_general_transaction() -> None:
    """Its shards end it, in both at one place."""
    world = GranolaWorld()
    message = prepared(world)
    waits = world.call(transfer(*FAR, 5), 1)
    world.crash(GranolaWorld.CLIENT)
    world.run_ms(LOCK_MS / 2)
    assert not world.answered(waits)
    world.run_ms(3 * LOCK_MS)
    assert world.answered(waits)
    require(len(world.ends(message)) == 1, f"it has ended at {world.ends(message)}")
    world.finish(message, waits)


def a_client_dies_between_two_prepared_shards() -> None:
    """It has reached one shard alone."""
    world = GranolaWorld()
    world.cut_client(0, 1)
    message = world.call(pack_prepare(FAR))
    world.run_until(lambda: world.records(0))
    world.crash(GranolaWorld.CLIENT)
    world.run_ms(6 * LOCK_MS)
    world.finish()
    assert len(world.ends(message)) == 1


def a_conclusion_meets_the_end_by_the_shards() -> None:
    """The client commits in shard 0 when shard 1, which it cannot reach, ends the transaction. Votes are
    lost for a while, so both are pending together."""
    world = GranolaWorld()
    message = prepared(world)
    world.run_ms(LOCK_MS * 0.8)
    world.lose(Vote, Ask)
    world.cut_client(0, 1)
    end = world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 2}))
    world.run_ms(LOCK_MS)
    world.crash(GranolaWorld.CLIENT)
    world.finish()
    require(len(world.ends(message)) == 1, f"it has ended at {world.ends(message)}")
    assert world.deliverers(end) == ALL


def a_conclusion_that_is_late_is_refused_in_all_shards() -> None:
    world = GranolaWorld()
    message = prepared(world)
    world.run_ms(4 * LOCK_MS)
    assert not world.is_locking(0) and not world.is_locking(1)
    late = world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 1}))
    until_answered(world, late)
    assert b"had ended before" in world.calls.results[late]
    world.finish(message, late)


def a_general_transaction_of_a_client_that_lives_is_left_alone() -> None:
    world = GranolaWorld()
    message = prepared(world)
    world.run_ms(LOCK_MS / 2)
    end = world.call(pack_commit(message, (0, 1), {HERE: 1}))
    until_answered(world, end)
    assert world.calls.results[end] == b"\0\xc0"
    world.finish(message, end)


def a_leader_dies_in_a_general_transaction() -> None:
    """Its successor has the locks, and ends what the dead client has left."""
    world = GranolaWorld()
    message = prepared(world)
    world.crash(GranolaWorld.CLIENT)
    world.crash(0)
    world.run_ms(6 * LOCK_MS)
    assert not world.is_locking(0) and not world.is_locking(1)
    world.finish(message)


def two_general_ones_want_each_others_keys() -> None:
    """Shard 0 hears of one first, and shard 1 of the other: nobody waits in a circle."""
    world = GranolaWorld()
    world.block(*((6, node) for node in SHARD_1), *((7, node) for node in SHARD_0))
    one, two = world.call(pack_prepare(FAR), 0), world.call(pack_prepare(FAR), 1)
    world.run_until(lambda: world.records(0) and world.records(3))
    world.block()
    world.run_until(lambda: world.answered(one) or world.answered(two))
    first, second = (one, two) if world.answered(one) else (two, one)
    assert not world.answered(second)
    until_answered(world, world.call(pack_abort(first, (0, 1)), (one, two).index(first)))
    until_answered(world, second)
    until_answered(world, world.call(pack_abort(second, (0, 1)), (one, two).index(second)))
    world.finish(one, two)


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
    a_general_transaction_locks_and_leaves_locking_mode,
    what_is_in_conflict_is_tried_again,
    a_retry_takes_the_place_of_the_attempt_before,
    a_general_one_does_not_lock_what_is_pending,
    a_client_dies_in_a_general_transaction,
    a_client_dies_between_two_prepared_shards,
    a_conclusion_meets_the_end_by_the_shards,
    a_conclusion_that_is_late_is_refused_in_all_shards,
    a_general_transaction_of_a_client_that_lives_is_left_alone,
    a_leader_dies_in_a_general_transaction,
    two_general_ones_want_each_others_keys,
    what_was_settled_is_forgotten,
    a_shard_is_not_forgotten_that_has_not_settled,
    a_client_gives_up_what_one_shard_has_run,
    replicas_lose_their_memory,
    a_replica_that_was_away_takes_over_a_state,
)


# Trouble at every step


def independent(world: GranolaWorld) -> list[MessageId]:
    """Two transactions of two shards, and one of each shard."""
    ways = (FAR, FAR[::-1], (HERE, ALSO_HERE), (THERE, ALSO_THERE))
    return [world.call(transfer(*way, 1), number % 2) for number, way in enumerate(ways)]


def general(world: GranolaWorld) -> list[MessageId]:
    """A general transaction, and one that wants its keys; the client concludes it when it is prepared."""
    message = world.call(pack_prepare(FAR))
    other = world.call(transfer(*FAR, 1), 1)

    def conclude() -> None:
        if world.envs[6].host.up and world.answered(message):
            world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 1}))
        elif world.envs[6].host.up and world.now < 1_000_000_000:
            world.scheduler.after(1_000_000, conclude)

    conclude()
    return [message, other]


STORIES = {"independent": independent, "general": general}


def one_message_is_lost(story: str, kind: type[Message], number: int) -> bool:
    """The first of a kind, or the second, and so on; return whether there were so many."""
    world = GranolaWorld()
    left = [number]

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        left[0] -= isinstance(message, kind)
        return isinstance(message, kind) and left[0] == 0

    world.lost = lost
    messages = STORIES[story](world)
    world.run_ms(3 * LOCK_MS)
    world.finish(*messages)
    return left[0] <= 0


def a_kind_is_lost_for_a_while(story: str, kind: type[Message]) -> None:
    """All messages of a kind."""
    world = GranolaWorld()
    world.lose(kind)
    messages = STORIES[story](world)
    world.run_ms(2 * LOCK_MS)
    world.finish(*messages)


def a_host_crashes(story: str, node: NodeId, number: int) -> bool:
    """After so many messages, also those of the logs; return whether there were so many."""
    world = GranolaWorld()
    left = [number]

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        left[0] -= 1
        if left[0] == 0:
            world.scheduler.after(0, world.crash, node)
        return False

    world.lost = lost
    messages = STORIES[story](world)
    world.run_ms(3 * LOCK_MS)
    world.finish(*(message for message in messages if message_sender(message) != node))
    return left[0] <= 0

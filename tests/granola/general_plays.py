"""Plays of general transactions with Granola, each of which ends with all promises kept."""

from ordercast.core.general import pack_abort, pack_commit, pack_prepare
from ordercast.transactions.granola.messages import Ask, State, Told, Vote
from tests.granola.lab import LOCK_MS, GranolaWorld, prepared, until_answered
from tests.hand_driven import require
from tests.logged_shards.lab import ALSO_HERE, ALSO_THERE, FAR, HERE, THERE, transfer

SHARD_0, SHARD_1 = (0, 1, 2), (3, 4, 5)
ALL = set(range(6))


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


def what_was_in_conflict_too_often_waits_in_its_turn() -> None:
    """Others come behind a general transaction that is open, among them another one. Each has its turn in the
    order of timestamps."""
    world = GranolaWorld(options={"conflicts_max": 2})
    first = prepared(world)
    operations = (transfer(*FAR, 5), pack_prepare(FAR), transfer(*FAR, 1))
    behind = [world.call(operation, 1 + (number == 1)) for number, operation in enumerate(operations)]
    world.run_ms(LOCK_MS / 2)
    assert all(world.deliverers(message) == ALL and not world.answered(message) for message in behind)
    until_answered(world, world.call(pack_abort(first, (0, 1))))
    world.run_ms(20)
    turns = sorted(behind, key=lambda message: min(time or 0 for time in world.times(message)))
    until = turns.index(behind[1])
    assert [world.answered(message) for message in turns] == [turns.index(m) <= until for m in turns]
    until_answered(world, world.call(pack_abort(behind[1], (0, 1)), 2))
    world.finish(*behind)


def who_waits_may_find_a_leader_gone() -> None:
    """The next leader answers what was waiting for locks."""
    world = GranolaWorld(options={"conflicts_max": 0})
    first = prepared(world)
    waits = world.call(transfer(*FAR, 5), 1)
    alone = world.call(transfer(HERE, ALSO_HERE, 5), 1)
    world.run_ms(5)
    world.crash(0)
    world.crash(3)
    world.run_ms(LOCK_MS / 2)
    world.call(pack_abort(first, (0, 1)))
    world.finish(waits, alone)


GENERAL_PLAYS = (
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
    what_was_in_conflict_too_often_waits_in_its_turn,
    who_waits_may_find_a_leader_gone,
)

"""Scenes of Lock-Store: who dies when, and that no shard does alone what belongs to two."""

from ordercast.core import Groups, MessageId
from ordercast.core.general import pack_abort, pack_commit, pack_prepare
from ordercast.trace import Kind
from ordercast.transactions.lock_store.commands import Command, Verb
from ordercast.transactions.lock_store.ending import Ending, Subject
from tests.lock_store.lab import StoreWorld
from tests.logged_shards.lab import FAR, transfer

LOCK_MS = 100


def test_a_call_of_two_shards_is_answered_and_leaves_no_lock() -> None:
    world = StoreWorld()
    message = world.call(transfer(*FAR, 5))
    world.run_ms(20)
    assert world.answered(message)
    assert world.deliverers(message) == set(range(6))
    assert world.locks() == 0


def test_calls_that_meet_are_all_answered() -> None:
    world = StoreWorld(clients=4)
    messages = [
        world.call(transfer(*(FAR if number % 2 else FAR[::-1]), 1), number % 4) for number in range(40)
    ]
    world.run_ms(3000)
    assert all(map(world.answered, messages))
    assert world.locks() == 0


def test_a_client_that_dies_with_its_locks_is_ended_in_all_shards() -> None:
    """It has locked in one shard, and never reached the other."""
    world = StoreWorld()
    world.cut_client(0, 1)
    message = world.call(transfer(*FAR, 5))
    world.run_ms(10)
    assert world.locks() == 3
    world.crash(StoreWorld.CLIENT)
    world.block()
    world.run_ms(4 * LOCK_MS)
    assert world.locks() == 0
    assert world.deliverers(message) == set()
    after = world.call(transfer(*FAR, 5), 1)
    world.run_ms(50)
    assert world.answered(after)


def dies_between_two_commits(world: StoreWorld) -> MessageId:
    """A client dies when one shard has committed its call, and the other has not heard of that."""
    message = world.call(transfer(*FAR, 5))
    while not world.deliverers(message):
        if message in world.server(3)._ledger.records:  # then it can be committed in shard 0 only
            world.cut_client(0, 1)
        world.run_ms(0.01)
    world.crash(StoreWorld.CLIENT)
    assert world.deliverers(message) <= {0, 1, 2}
    world.block()
    world.run_ms(6 * LOCK_MS)
    return message


def test_a_client_that_dies_between_two_commits_is_committed_in_all_shards() -> None:
    """The shard that waits freezes the call, asks, and commits it."""
    world = StoreWorld()
    message = dies_between_two_commits(world)
    assert world.deliverers(message) == set(range(6))
    assert world.locks() == 0


def test_to_abort_by_timeout_alone_would_split_the_transaction() -> None:
    """The same scene with a shard that asks nobody."""
    world = StoreWorld()
    for ending in (world.server(node)._ending for node in range(3, 6)):

        def ask(subject: Subject, groups: Groups, ending: Ending = ending) -> None:
            for verb in (Verb.FREEZE, Verb.CANCEL):
                ending._send(1, Command(verb, subject[1], subject[2], groups))

        ending._ask = ask  # type: ignore[method-assign]
    assert world.deliverers(dies_between_two_commits(world)) == {0, 1, 2}


def test_a_slow_client_makes_another_attempt_when_the_shards_have_ended_it() -> None:
    world = StoreWorld()
    world.cut_client(0, 1)
    message = world.call(transfer(*FAR, 5))
    world.run_ms(3 * LOCK_MS)
    assert world.locks() == 0 and not world.answered(message)
    world.block()
    world.run_ms(4 * LOCK_MS)
    assert world.answered(message)
    assert world.deliverers(message) == set(range(6))
    assert world.locks() == 0


def test_a_client_that_dies_in_a_general_transaction_is_ended_in_all_shards() -> None:
    world = StoreWorld()
    message = world.call(pack_prepare(FAR))
    world.run_ms(20)
    assert world.answered(message) and world.locks() == 6
    waits = world.call(transfer(*FAR, 5), 1)
    world.run_ms(LOCK_MS / 4)
    assert not world.answered(waits)
    world.crash(StoreWorld.CLIENT)
    world.run_ms(6 * LOCK_MS)
    assert world.answered(waits)
    assert world.locks() == 0


def test_a_conclusion_that_comes_too_late_is_refused_in_all_shards() -> None:
    world = StoreWorld()
    message = world.call(pack_prepare(FAR))
    world.run_ms(6 * LOCK_MS)
    assert world.locks() == 0
    late = world.call(pack_commit(message, (0, 1), {FAR[0]: 1, FAR[1]: 1}))
    world.run_ms(50)
    assert b"had ended before" in world.calls.results[late]
    after = world.call(pack_prepare(FAR), 1)
    world.run_ms(50)
    assert b"account" not in world.calls.results[after], "no key has a value"


def test_a_general_transaction_of_a_client_that_lives_is_left_alone() -> None:
    world = StoreWorld()
    message = world.call(pack_prepare(FAR))
    world.run_ms(LOCK_MS / 2)
    end = world.call(pack_commit(message, (0, 1), {FAR[0]: 1}))
    world.run_ms(50)
    assert world.calls.results[end] == b"\0\xc0"
    assert world.locks() == 0


def test_a_leader_that_dies_leaves_locks_that_its_successor_ends() -> None:
    world = StoreWorld()
    world.call(pack_prepare(FAR))
    world.run_ms(20)
    world.crash(StoreWorld.CLIENT)
    world.crash(0)
    world.run_ms(10 * LOCK_MS)
    assert sum(len(list(world.server(node)._ending.under_way())) for node in range(1, 6)) == 0


def test_a_committed_call_is_forgotten_although_its_client_says_nothing_more() -> None:
    world = StoreWorld()
    world.call(transfer(*FAR, 5))
    world.run_ms(20)
    assert any(world.server(node)._ledger.records for node in range(6))
    world.run_ms(8 * LOCK_MS)
    assert not any(world.server(node)._ledger.records for node in range(6))


def test_locks_and_their_ends_are_on_record() -> None:
    world = StoreWorld()
    message = world.call(pack_prepare(FAR))
    world.run_ms(20)
    end = world.call(pack_abort(message, (0, 1)))
    world.run_ms(20)
    locked = [event for event in world.events(Kind.LOCKED) if event.message == message]
    released = [event for event in world.events(Kind.RELEASED) if event.message == message]
    assert len(locked) == len(released) == 6
    assert {event.label for event in released} == {"aborted"}
    assert world.answered(end)


def test_a_busy_shard_is_asked_again_with_another_attempt() -> None:
    world = StoreWorld()
    world.call(pack_prepare(FAR))
    world.run_ms(20)
    message = world.call(transfer(*FAR, 5), 1)
    attempts: list[int] = []
    for _ in range(5):
        world.run_ms(LOCK_MS / 10)
        attempts.append(world.client(1).rounds[message].attempt)
    assert attempts == sorted(attempts)
    assert attempts[-1] > attempts[0] > 0
    world.run_ms(6 * LOCK_MS)
    assert world.answered(message), "the shards have ended the general transaction"

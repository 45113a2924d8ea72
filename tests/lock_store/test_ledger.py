"""The state machine of a shard of Lock-Store: what each command does to a call, and what it tells."""

from ordercast.core import message_id
from ordercast.core.general import pack_abort, pack_prepare
from ordercast.transactions.lock_store import ledger as ledger_module
from ordercast.transactions.lock_store.commands import State, Verb
from tests.lock_store.lab import ShardLab
from tests.logged_shards.lab import ALSO_HERE, CLIENT, FAR, call_of, transfer

LOCKED, BUSY, FROZEN, ABSENT = State.LOCKED, State.BUSY, State.FROZEN, State.ABSENT
COMMITTED, ABORTED, UNSETTLED = State.COMMITTED, State.ABORTED, State.UNSETTLED


def test_what_is_locked_is_executed_when_it_is_committed() -> None:
    lab = ShardLab()
    assert lab.lock(1) is LOCKED
    assert lab.lock(1) is LOCKED
    assert lab.ledger.known(message_id(CLIENT, 1)) is None
    assert lab.do(Verb.COMMIT, 1) is COMMITTED
    assert lab.value(FAR[0]) == 95
    assert lab.do(Verb.COMMIT, 1) is COMMITTED
    assert lab.value(FAR[0]) == 95


def test_a_call_that_finds_a_lock_taken_locks_nothing() -> None:
    lab = ShardLab()
    assert lab.lock(1) is LOCKED
    assert lab.lock(2) is BUSY
    assert lab.do(Verb.ABORT, 1) is ABORTED
    assert lab.lock(2, attempt=1) is LOCKED


def test_an_aborted_attempt_that_comes_late_takes_no_lock() -> None:
    lab = ShardLab()
    assert lab.do(Verb.ABORT, 1) is ABORTED
    assert lab.lock(1) is ABORTED
    assert lab.lock(2) is LOCKED
    assert lab.do(Verb.ABORT, 2) is ABORTED
    assert lab.lock(1, attempt=1) is LOCKED


def test_a_late_abort_does_not_touch_a_later_attempt() -> None:
    lab = ShardLab()
    lab.lock(1)
    assert lab.lock(1, attempt=1) is LOCKED
    assert lab.do(Verb.ABORT, 1) is None
    assert lab.do(Verb.COMMIT, 1) is None, "it was for the attempt before"
    assert lab.do(Verb.COMMIT, 1, attempt=1) is COMMITTED


def test_a_frozen_attempt_hears_its_client_no_more() -> None:
    lab = ShardLab()
    lab.lock(1)
    assert lab.do(Verb.FREEZE, 1) is FROZEN
    assert lab.do(Verb.COMMIT, 1) is FROZEN
    assert lab.lock(1, attempt=1) is FROZEN
    assert lab.lock(2) is BUSY, "it still has its locks"
    assert lab.do(Verb.CANCEL, 1) is ABORTED
    assert lab.lock(2) is LOCKED
    assert lab.do(Verb.COMMIT, 1) is ABORTED


def test_a_frozen_attempt_is_committed_if_another_shard_had_committed_it() -> None:
    lab = ShardLab()
    lab.lock(1)
    lab.do(Verb.FREEZE, 1)
    assert lab.do(Verb.APPLY, 1) is COMMITTED
    assert lab.value(FAR[0]) == 95
    assert lab.do(Verb.CANCEL, 1) is None
    assert lab.do(Verb.APPLY, 1) is COMMITTED
    assert lab.value(FAR[0]) == 95


def test_what_is_committed_cannot_be_frozen() -> None:
    lab = ShardLab()
    lab.lock(1)
    lab.do(Verb.COMMIT, 1)
    assert lab.do(Verb.FREEZE, 1) is COMMITTED
    assert lab.do(Verb.CANCEL, 1) is None
    assert lab.do(Verb.COMMIT, 1) is COMMITTED


def test_a_call_that_was_frozen_before_it_came_takes_no_lock() -> None:
    lab = ShardLab()
    assert lab.do(Verb.FREEZE, 1) is ABSENT
    assert lab.lock(1) is FROZEN
    assert lab.lock(2) is LOCKED
    lab.do(Verb.ABORT, 2)
    assert lab.do(Verb.CANCEL, 1) is ABORTED
    assert lab.lock(1) is ABORTED
    assert lab.lock(1, attempt=1) is LOCKED


def test_a_question_about_an_old_attempt_does_not_freeze_a_later_one() -> None:
    lab = ShardLab()
    lab.lock(1, attempt=2)
    assert lab.do(Verb.FREEZE, 1, attempt=1) is ABORTED
    assert lab.do(Verb.CANCEL, 1, attempt=1) is None
    assert lab.do(Verb.COMMIT, 1, attempt=2) is COMMITTED


def test_a_question_about_a_later_attempt_ends_an_old_one() -> None:
    """The client has left the old one, and its newer LOCK may still be on its way."""
    lab = ShardLab()
    lab.lock(1)
    assert lab.do(Verb.FREEZE, 1, attempt=1) is ABSENT
    assert lab.lock(2) is LOCKED
    assert lab.do(Verb.COMMIT, 1) is FROZEN


def test_a_promise_is_kept_although_the_client_waits_no_more() -> None:
    """Its floor has passed the call, which another shard has committed."""
    lab = ShardLab()
    lab.lock(1)
    lab.do(Verb.LOCK, 60, call=call_of(60, transfer(ALSO_HERE, ALSO_HERE, 0)), groups=(0,))
    lab.do(Verb.COMMIT, 60, groups=(0,))
    lab.do(Verb.FREEZE, 1)
    assert lab.do(Verb.APPLY, 1) is COMMITTED
    assert lab.value(FAR[0]) == 95


def test_a_committed_call_is_kept_until_all_shards_have_it() -> None:
    lab = ShardLab()
    lab.lock(1)
    lab.do(Verb.COMMIT, 1)
    lab.lock(2)
    assert lab.do(Verb.FORGET, 1) is None
    assert list(lab.ledger.records) == [message_id(CLIENT, 2)]
    lab.do(Verb.FORGET, 2)
    assert lab.ledger.records, "what holds locks is not forgotten"
    lab.do(Verb.COMMIT, 2)
    done = (message_id(CLIENT, 2), message_id(CLIENT + 1, 1))
    lab.do(Verb.LOCK, 3, call=call_of(3, transfer(*FAR, 5), floor=1), done=done)
    assert list(lab.ledger.records) == [message_id(CLIENT, 3)]


def test_a_call_of_one_shard_leaves_no_record() -> None:
    lab = ShardLab()
    lab.lock(1, transfer(FAR[0], FAR[0], 0), groups=(0,))
    lab.do(Verb.COMMIT, 1, groups=(0,))
    assert not lab.ledger.records


def test_aborted_calls_are_forgotten_oldest_first() -> None:
    lab = ShardLab()
    limit, ledger_module.ABORTED_MAX = ledger_module.ABORTED_MAX, 2
    try:
        for number in (1, 2, 1, 3):
            lab.do(Verb.ABORT, number)
    finally:
        ledger_module.ABORTED_MAX = limit
    assert lab.lock(1) is ABORTED
    assert lab.lock(3) is ABORTED
    assert lab.lock(2) is LOCKED


def test_a_general_transaction_cannot_be_concluded_when_it_is_halted() -> None:
    lab = ShardLab()
    lab.lock(1, pack_prepare(FAR))
    assert lab.do(Verb.HALT, 1) is UNSETTLED, "the call that prepares it is under way"
    lab.do(Verb.COMMIT, 1)
    assert lab.lock(2) is BUSY
    assert lab.do(Verb.HALT, 1) is FROZEN
    end = pack_abort(message_id(CLIENT, 1), (0, 1))
    assert lab.lock(3, end) is BUSY
    assert lab.do(Verb.END, 1) is ABORTED
    assert lab.lock(3, end) is LOCKED, "it is told now that the transaction has ended"
    assert lab.lock(2) is LOCKED
    assert lab.do(Verb.HALT, 1) is UNSETTLED
    lab.do(Verb.COMMIT, 3)
    assert lab.do(Verb.HALT, 1) is ABORTED


def test_a_conclusion_under_way_comes_before_the_shards() -> None:
    lab = ShardLab()
    lab.lock(1, pack_prepare(FAR))
    lab.do(Verb.COMMIT, 1)
    lab.lock(3, pack_abort(message_id(CLIENT, 1), (0, 1)))
    assert lab.do(Verb.HALT, 1) is UNSETTLED
    lab.do(Verb.FREEZE, 3)
    assert lab.do(Verb.HALT, 1) is UNSETTLED
    lab.do(Verb.APPLY, 3)
    assert lab.do(Verb.HALT, 1) is ABORTED
    assert lab.lock(2) is LOCKED


def test_it_goes_on_from_a_snapshot() -> None:
    lab, twin = ShardLab(), ShardLab()
    lab.lock(1)
    lab.lock(2, pack_prepare([ALSO_HERE]), groups=(0,))
    lab.do(Verb.COMMIT, 2, groups=(0,))
    lab.do(Verb.HALT, 2, groups=(0,))
    lab.do(Verb.ABORT, 4)
    twin.ledger.restore(lab.ledger.snapshot())
    twin.clock = lab.clock
    for one in (lab, twin):
        assert one.lock(5) is BUSY
        assert one.lock(4) is ABORTED
        assert one.do(Verb.COMMIT, 1) is COMMITTED
        assert one.do(Verb.END, 2, groups=(0,)) is ABORTED
    assert lab.ledger.snapshot() == twin.ledger.snapshot()

"""Calls that wait for locks: their answers are held back, once, and over snapshots."""

from collections.abc import Sequence

from ordercast.components.execution import Call, Execution, Executor, pack_call, unpack_call
from ordercast.core import Locked, Released, Stamp, message_id
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.core.general import pack_abort, pack_commit, pack_prepare
from ordercast.testing import RecordingEnv
from tests.core.shards import BANK

CLIENT = 5
DEPOSIT = BANK.find("deposit")


class Lab:
    """An executor of the only shard, and calls at places that count up."""

    def __init__(self) -> None:
        self.executor = Executor(RecordingEnv(), BANK.spec().for_group(0, 1))
        self.clock = 0

    def execute(self, call: Call) -> Execution:
        done = self.again(call)
        assert done is not None
        return done

    def again(self, call: Call) -> Execution | None:
        self.clock += 1
        return self.executor.execute(call, Stamp(self.clock, 0))


def call(number: int, *operations: bytes, floor: int = 1) -> Call:
    bundle = pack_bundle(message_id(CLIENT, number), [number] * len(operations), operations)
    return unpack_call(pack_call(message_id(CLIENT, floor), bundle), CLIENT)


def deposit(account: str, amount: int) -> bytes:
    return DEPOSIT.pack((account, amount), {})


def amounts(results: bytes) -> Sequence[object]:
    return [DEPOSIT.unpack_result(item.payload) for item in unpack(results)]


PREPARE = call(1, pack_prepare(["alice"]))
COMMIT = call(20, pack_commit(PREPARE.first, (0,), {"alice": 10}))


def test_a_call_that_waits_has_no_answer_until_it_runs() -> None:
    lab = Lab()
    assert lab.execute(PREPARE).finished
    waits = call(2, deposit("alice", 1))
    held = lab.execute(waits)
    assert held.fresh and not held.finished and not held.results
    assert lab.again(waits) is None
    assert lab.executor.knows(waits.first, CLIENT)
    assert lab.executor.take_released() == []
    assert lab.execute(COMMIT).finished
    (done,) = lab.executor.take_released()
    assert (done.first, done.stamp, amounts(done.results)) == (waits.first, held.stamp, [11])
    assert lab.execute(waits).results == done.results
    assert lab.executor.take_released() == []


def test_a_call_is_answered_when_its_last_operation_has_run() -> None:
    lab = Lab()
    lab.execute(PREPARE)
    lab.execute(call(2, pack_prepare(["bob"])))
    mixed = call(3, deposit("bob", 3), deposit("carol", 4), deposit("alice", 1))
    assert not lab.execute(mixed).finished
    lab.execute(COMMIT)
    assert lab.executor.take_released() == []
    lab.execute(call(21, pack_abort(message_id(CLIENT, 2), (0,))))
    (done,) = lab.executor.take_released()
    assert amounts(done.results) == [3, 4, 11]


def test_an_operation_may_wait_for_a_later_one_of_its_own_call() -> None:
    lab = Lab()
    lab.execute(PREPARE)
    own = call(2, deposit("alice", 1), pack_abort(PREPARE.first, (0,)))
    assert not lab.execute(own).finished
    (done,) = lab.executor.take_released()
    assert done.first == own.first


def test_what_waits_survives_a_snapshot() -> None:
    lab, twin = Lab(), Lab()
    lab.execute(PREPARE)
    waits = call(2, deposit("alice", 1), deposit("dora", 2))
    lab.execute(waits)
    twin.executor.restore(lab.executor.snapshot())
    assert twin.executor.shard is not None
    assert twin.executor.shard.pending == {PREPARE.first: (0,)}
    twin.clock = lab.clock
    for one in (lab, twin):
        assert one.again(waits) is None
        one.execute(COMMIT)
    assert lab.executor.take_released() == twin.executor.take_released() != []
    assert lab.executor.snapshot() == twin.executor.snapshot()


def test_a_call_below_the_floor_runs_and_is_forgotten() -> None:
    """Its client gave it up, but the others behind it must not wait for ever."""
    lab = Lab()
    lab.execute(PREPARE)
    waits = call(2, deposit("alice", 1))
    lab.execute(waits)
    commit = call(20, pack_commit(PREPARE.first, (0,), {"alice": 10}), floor=20)
    lab.execute(commit)
    assert [done.first for done in lab.executor.take_released()] == [waits.first]
    assert lab.executor.find(waits.first, CLIENT) is None
    assert amounts(lab.execute(call(30, deposit("alice", 0))).results) == [11]


def test_locks_are_on_record_with_the_place_where_they_changed() -> None:
    lab = Lab()
    lab.execute(PREPARE)
    assert lab.executor.take_lock_notices(0, Stamp(1, 0)) == [Locked(0, PREPARE.first, Stamp(1, 0))]
    lab.execute(COMMIT)
    told = [Released(0, PREPARE.first, Stamp(2, 0), True)]
    assert lab.executor.take_lock_notices(0, Stamp(2, 0)) == told
    assert lab.executor.take_lock_notices(0, Stamp(2, 0)) == []


def test_the_shards_may_end_a_transaction_and_go_on() -> None:
    lab = Lab()
    lab.execute(PREPARE)
    waits = call(2, deposit("alice", 1))
    lab.execute(waits)
    assert lab.executor.end(PREPARE.first, Stamp(9, 0))
    assert not lab.executor.end(PREPARE.first, Stamp(10, 0))
    assert [amounts(done.results) for done in lab.executor.take_released()] == [[1]]
    assert lab.executor.place == Stamp(9, 0)
    assert lab.executor.shard is not None and not lab.executor.shard.pending

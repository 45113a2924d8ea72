"""States of a shard with damaged bytes: refused, with no effect, or taken; then calls run as ever."""

from random import Random

from ordercast.components.execution import Call, Executor, pack_call, unpack_call
from ordercast.core import LocalError, Stamp, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.core.general import pack_commit, pack_prepare
from ordercast.testing import RecordingEnv
from tests.core.shards import BANK

ONE, OTHER = 5, 6
DAMAGES = 2000


def call(client: int, number: int, operation: bytes) -> Call:
    bundle = pack_bundle(message_id(client, number), [number], [operation])
    return unpack_call(pack_call(message_id(client, 1), bundle), client)


def deposit(account: str) -> bytes:
    return BANK.find("deposit").pack((account, 7), {})


def with_locks() -> Executor:
    """A shard with a general transaction, and two operations of another client that wait for its locks."""
    executor = Executor(RecordingEnv(), BANK.spec().for_group(0, 1))
    executor.execute(call(ONE, 1, deposit("alice")), Stamp(1, 0, (1,)))
    executor.execute(call(ONE, 2, pack_prepare(["alice"], ["bob"])), Stamp(2, 0, (2,)))
    transfer = BANK.find("transfer").pack(("alice", "bob", 3), {})
    executor.execute(call(OTHER, 1, transfer), Stamp(3, 0, (3,)), groups=(0, 1))
    executor.execute(call(OTHER, 2, pack_prepare(["bob"])), Stamp(4, 0, (4,)))
    return executor


def damaged(state: bytes, rng: Random) -> bytes:
    found = bytearray(state)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(found))
        found[place] = rng.choice((0, 0x91, 0xA1, 0xC1, 0xFF, (found[place] + 1) % 256, rng.randrange(256)))
    return bytes(found)


def test_damaged_states_are_refused_as_a_whole_or_taken() -> None:
    rng, state, refused = Random(1), with_locks().snapshot(), 0
    for _ in range(DAMAGES):
        executor = with_locks()
        try:
            executor.restore(damaged(state, rng))
        except LocalError:
            assert executor.snapshot() == state
            refused += 1
        executor.execute(call(ONE, 3, pack_commit(message_id(ONE, 2), (0,), {"alice": 9})), Stamp(10, 0))
        executor.execute(call(ONE, 4, deposit("alice")), Stamp(11, 0))
        executor.restore(executor.snapshot())
    assert DAMAGES // 2 < refused < DAMAGES

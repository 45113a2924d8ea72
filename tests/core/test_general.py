"""General transactions at one shard: locks, waiting, conclusions, and what survives a snapshot."""

import msgspec
import pytest

from ordercast.core import HELD, Context, LocalError, Refused, ServiceFailed, ShardMachine, message_id
from ordercast.core.general import (
    DONE,
    check_done,
    pack_abort,
    pack_commit,
    pack_prepare,
    unpack_values,
)
from tests.core.shards import BANK

CLIENT, OTHER = 9, 10


class Lab:
    """One shard with all keys, and operations whose numbers count up."""

    def __init__(self) -> None:
        self.machine = BANK.make(0, 1)
        assert isinstance(self.machine, ShardMachine)
        self.shard = self.machine
        self.number = 0

    def run(self, operation: bytes, client: int = CLIENT) -> tuple[int, bytes]:
        """Run an operation; its identity and its result."""
        self.number += 1
        message = message_id(client, self.number)
        return message, self.machine.apply(operation, Context(message, self.number))

    def call(self, name: str, *args: object) -> tuple[int, bytes]:
        return self.run(BANK.find(name).pack(args, {}))

    def prepare(self, *writes: str, reads: tuple[str, ...] = ()) -> tuple[int, bytes]:
        return self.run(pack_prepare(writes, reads))

    def commit(self, transaction: int, **values: object) -> bytes:
        return self.run(pack_commit(transaction, (0,), values))[1]

    def abort(self, transaction: int) -> bytes:
        return self.run(pack_abort(transaction, (0,)))[1]

    def take(self) -> dict[int, bytes]:
        """What has waited and has a result now."""
        released, self.shard.released = self.shard.released, []
        return dict(released)

    def money(self, *accounts: str) -> object:
        return BANK.find("show").unpack_result(self.call("show", list(accounts))[1])

    def ends(self) -> list[tuple[int, bool | None]]:
        changes, self.shard.changes = self.shard.changes, []
        return [(change.transaction, change.committed) for change in changes]


def text(result: bytes) -> str:
    with pytest.raises((Refused, ServiceFailed)) as raised:
        check_done(result)
    return str(raised.value)


def test_a_general_transaction_reads_and_then_writes() -> None:
    lab = Lab()
    lab.call("deposit", "alice", 50)
    transaction, result = lab.prepare("alice", "bob")
    assert {key: msgspec.msgpack.decode(value) for key, value in unpack_values(result).items()} == {
        "alice": 50
    }
    assert lab.shard.pending == {transaction: (0,)}
    assert lab.commit(transaction, alice=20, bob=30) == DONE
    assert lab.money("alice", "bob") == {"alice": 20, "bob": 30}
    assert lab.ends() == [(transaction, None), (transaction, True)]
    assert not lab.shard.pending


def test_an_abort_changes_nothing() -> None:
    lab = Lab()
    lab.call("deposit", "alice", 50)
    transaction, _ = lab.prepare("alice")
    assert lab.abort(transaction) == DONE
    assert lab.money("alice") == {"alice": 50}
    assert lab.ends()[-1] == (transaction, False)


def test_a_key_is_removed_by_writing_none() -> None:
    lab = Lab()
    lab.call("deposit", "alice", 50)
    transaction, _ = lab.prepare("alice")
    lab.commit(transaction, alice=None)
    assert lab.money("alice") == {}


def test_others_wait_for_its_locks_in_their_order_and_strangers_do_not() -> None:
    lab = Lab()
    transaction, _ = lab.prepare("alice")
    first, held = lab.call("deposit", "alice", 1)
    assert held == HELD
    second, _ = lab.call("deposit", "alice", 2)
    assert lab.call("deposit", "carol", 7)[1] != HELD
    assert lab.take() == {}
    lab.commit(transaction, alice=10)
    released = lab.take()
    assert list(released) == [first, second]
    assert [BANK.find("deposit").unpack_result(result) for result in released.values()] == [11, 13]


def test_readers_of_one_key_do_not_wait_for_each_other() -> None:
    lab = Lab()
    lab.call("deposit", "alice", 5)
    one, _ = lab.prepare(reads=("alice",))
    other, result = lab.prepare(reads=("alice",))
    assert result != HELD
    assert lab.money("alice") == {"alice": 5}
    _, held = lab.call("deposit", "alice", 1)
    assert held == HELD
    assert lab.call("show", ["alice"])[1] == HELD, "it must not overtake the deposit"
    lab.abort(one)
    assert lab.take() == {}
    lab.abort(other)
    assert len(lab.take()) == 2


def test_two_general_transactions_take_turns() -> None:
    lab = Lab()
    one, _ = lab.prepare("alice", "bob")
    other, result = lab.prepare("bob", "alice")
    assert result == HELD
    lab.commit(one, alice=1, bob=1)
    assert unpack_values(lab.take()[other]) == {"alice": b"\x01", "bob": b"\x01"}
    assert lab.commit(other, alice=2) == DONE
    assert lab.ends() == [(one, None), (one, True), (other, None), (other, True)]


def test_the_first_conclusion_counts() -> None:
    lab = Lab()
    transaction, _ = lab.prepare("alice")
    assert lab.shard.end(transaction, Context(1, 1))
    assert text(lab.commit(transaction, alice=5)) == "the transaction had ended before"
    assert lab.money("alice") == {}
    assert not lab.shard.end(transaction, Context(1, 1))
    assert lab.ends() == [(transaction, None), (transaction, False)]


def test_one_that_comes_after_its_conclusion_takes_no_lock() -> None:
    lab = Lab()
    transaction = message_id(CLIENT, 1)
    lab.number = 1
    lab.abort(transaction)
    late = lab.machine.apply(pack_prepare(["alice"]), Context(transaction, 3))
    assert text(late) == "the transaction was ended before it was prepared"
    assert not lab.shard.pending
    assert lab.call("deposit", "alice", 1)[1] != HELD


def test_ending_one_that_waits_answers_it() -> None:
    lab = Lab()
    one, _ = lab.prepare("alice")
    other, _ = lab.prepare("alice")
    lab.abort(other)
    assert text(lab.take()[other]) == "the transaction was ended while it waited"
    lab.abort(one)
    assert not lab.shard.pending


def test_what_was_not_locked_cannot_be_written() -> None:
    lab = Lab()
    transaction, _ = lab.prepare("alice", reads=("bob",))
    assert "had not locked" in text(lab.commit(transaction, alice=1, bob=2))
    assert lab.money("alice", "bob") == {}
    assert lab.ends()[-1] == (transaction, False)


def test_only_its_client_concludes_a_transaction() -> None:
    lab = Lab()
    transaction, _ = lab.prepare("alice")
    assert "only the client" in text(lab.run(pack_abort(transaction, (0,)), OTHER)[1])
    assert lab.shard.pending


def test_it_goes_on_from_a_snapshot() -> None:
    lab, twin = Lab(), Lab()
    lab.call("deposit", "alice", 5)
    transaction, _ = lab.prepare("alice", "bob")
    waiting, _ = lab.call("deposit", "alice", 1)
    other, _ = lab.prepare("bob")
    lab.abort(message_id(CLIENT, 1))
    twin.machine.restore(lab.machine.snapshot())
    twin.number = lab.number
    assert twin.machine.snapshot() == lab.machine.snapshot()
    for one in (lab, twin):
        one.take()
        one.commit(transaction, alice=6)
    released = lab.take()
    assert list(released) == [waiting, other]
    assert twin.take() == released
    assert twin.machine.snapshot() == lab.machine.snapshot()


def test_malformed_halves_are_answers() -> None:
    lab = Lab()
    for bad in (b"\x08*prepare", b"\x09*conclude\xc1", pack_abort(message_id(CLIENT, 1), (3,)), b"\x04none"):
        before = lab.machine.snapshot()
        assert text(lab.run(bad)[1])
        assert lab.machine.snapshot() == before


@pytest.mark.parametrize("keys", ["text", [], [1], ["a", None], ["\ud800"]])
def test_keys_that_are_none_are_refused_before_they_are_sent(keys: list[object]) -> None:
    with pytest.raises(LocalError):
        pack_prepare(keys)


def test_values_that_cannot_be_written_are_refused_before_they_are_sent() -> None:
    with pytest.raises(LocalError, match="a value cannot be written"):
        pack_commit(1, (0,), {"a": object()})


def test_a_general_transaction_goes_to_the_shards_of_its_keys() -> None:
    accounts = [f"account-{number}" for number in range(12)]
    assert BANK.groups(pack_prepare(accounts[:6], accounts[6:]), 3) == (0, 1, 2)
    assert BANK.groups(pack_abort(1, (0, 2)), 3) == (0, 2)
    for groups in ((), (2, 0), (0, 0), (0, 3), (-1,)):
        with pytest.raises(LocalError):
            BANK.groups(pack_abort(1, groups), 3)
    parts = [b"\0" + msgspec.msgpack.encode({key: b"\x01"}) for key in ("a", "b")]
    assert unpack_values(BANK.combine(pack_prepare(["a", "b"]), parts)) == {"a": b"\x01", "b": b"\x01"}
    assert text(BANK.combine(pack_prepare(["a", "b"]), [parts[0], b"\x01no"])) == "no"

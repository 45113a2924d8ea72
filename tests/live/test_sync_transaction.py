"""General transactions of programs without asyncio, over two shards on real sockets."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ordercast
from ordercast.core import LocalError, shard_of
from tests.live.cluster_files import write_cluster
from tests.live.serving import replicas_in_thread

THREADS = 4


class Bank(ordercast.Shard):
    """Accounts and the money on them."""

    @ordercast.transaction(keys="accounts")
    def deposit(self, accounts: list[str], amount: int) -> None:
        """Put an amount on each account."""
        for account in self.held:
            self[account] = self.get(account, 0) + amount

    @ordercast.transaction(reads="accounts")
    def balances(self, accounts: list[str]) -> dict[str, int]:
        """What is on the accounts that there are."""
        return {account: self[account] for account in self.held if account in self}


ALICE, BOB = "alice", "bob"
assert shard_of(ALICE, 2) != shard_of(BOB, 2), "both shards take part"


def write_bank(folder: Path, options: str = "") -> Path:
    """A cluster of two shards."""
    return write_cluster(
        folder,
        protocol="lock_store",
        receivers=1,
        top=f'service = "{__name__}:Bank"\nclients = 1',
        options=options,
        more="others = 1",
        hosts=(0, 1, 2),
        spares=(2,),
    )


@contextmanager
def bank_of(folder: Path, options: str = "") -> Iterator[Bank]:
    """A bank of two shards, in which Alice has 50."""
    file = write_bank(folder, options)
    with replicas_in_thread(file), ordercast.connect_sync(file, Bank) as bank:
        bank.deposit([ALICE], 50)
        yield bank


def test_leaving_the_block_writes_in_all_shards(tmp_path: Path) -> None:
    with bank_of(tmp_path) as bank:
        with bank.transaction(writes=(ALICE, BOB), reads=("carol",)) as t:
            assert t[ALICE] == 50 and BOB not in t and t.get("carol", 3) == 3
            t[ALICE] -= 30
            t[BOB] = 30
        assert bank.balances([ALICE, BOB]) == {ALICE: 20, BOB: 30}
        with bank.transaction([BOB]) as t:
            del t[BOB]
        assert bank.balances([ALICE, BOB]) == {ALICE: 20}
        with pytest.raises(LocalError, match="the transaction has ended"):
            t.get(BOB)


def test_what_is_raised_in_the_block_aborts_it_and_frees_the_locks(tmp_path: Path) -> None:
    with bank_of(tmp_path) as bank:
        with bank.transaction(writes=(ALICE, BOB)) as t:
            t[BOB] = 1
            raise ordercast.Abort
        with pytest.raises(ValueError, match="mine"), bank.transaction(writes=(ALICE, BOB)) as t:
            t[BOB] = 1
            raise ValueError("mine")
        with (
            pytest.raises(LocalError, match=f"has locked the key '{BOB}' for reading only"),
            bank.transaction(writes=[ALICE], reads=[BOB]) as t,
        ):
            t[BOB] = 1
        with pytest.raises(LocalError, match="cannot be written"), bank.transaction([ALICE, BOB]) as t:
            t[BOB] = object()
        with bank.transaction(writes=(ALICE, BOB)) as t:
            assert t[ALICE] == 50 and BOB not in t


def test_bad_input_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with bank_of(tmp_path) as bank:
        wrong: list[tuple[Callable[[], object], str]] = [
            (bank.transaction, "a general transaction needs a key"),
            (lambda: bank.transaction(ALICE), "needs a list of keys, not the text"),
            (lambda: bank.transaction([3]), "a key must be text, not 3"),  # type: ignore[list-item]
        ]
        for make, text in wrong:
            with pytest.raises(LocalError, match=text):
                make()
        transacting = bank.transaction([ALICE])
        with transacting:
            pass
        with pytest.raises(LocalError, match="can be entered once"), transacting:
            pass
    with pytest.raises(LocalError, match="its with block has ended"), bank.transaction([ALICE]):
        pass


def test_transactions_of_threads_exclude_each_other(tmp_path: Path) -> None:
    with bank_of(tmp_path) as bank:

        def move() -> None:
            for _ in range(5):
                with bank.transaction(writes=(ALICE, BOB)) as t:
                    left = t[ALICE]
                    t[BOB] = t.get(BOB, 0) + 1
                    t[ALICE] = left - 1

        threads = [threading.Thread(target=move) for _ in range(THREADS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert bank.balances([ALICE, BOB]) == {ALICE: 50 - 5 * THREADS, BOB: 5 * THREADS}


def test_a_block_that_takes_too_long_is_refused_and_wrote_nothing(tmp_path: Path) -> None:
    with bank_of(tmp_path, options="lock_ns = 400_000_000") as bank:
        with pytest.raises(ordercast.Refused), bank.transaction(writes=(ALICE, BOB)) as t:
            t[ALICE] = t[BOB] = 1
            with bank.transaction(writes=[ALICE]) as other:  # it waits until the shards have ended the first
                assert other[ALICE] == 50
        assert bank.balances([ALICE, BOB]) == {ALICE: 50}


def test_a_shard_itself_makes_no_general_transaction() -> None:
    with pytest.raises(LocalError, match="only a program that is connected makes one"):
        Bank().transaction([ALICE])

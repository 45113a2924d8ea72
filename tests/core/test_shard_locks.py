"""Which operations lock keys until their client gives them up: the first half of a general transaction."""

from dataclasses import replace

from ordercast.core.general import pack_abort, pack_commit, pack_prepare
from tests.core.shards import Bank, shard_type

BANK = shard_type(Bank)


def test_only_the_first_half_of_a_general_transaction_locks() -> None:
    (deposit,) = (kind for kind in BANK.transactions.values() if kind.name == "deposit")
    assert BANK.locks(pack_prepare(["a"], ["b"]))
    assert not BANK.locks(deposit.pack(("a", 5), {}))
    assert not BANK.locks(pack_commit(7, (0,), {"a": 1})) and not BANK.locks(pack_abort(7, (0,)))


def test_a_service_that_is_not_cut_into_shards_has_nothing_that_locks() -> None:
    assert BANK.spec().locks is not None
    assert replace(BANK.spec(), sharding=None).locks is None

"""The results of a call that ran in several shards become one."""

import pytest

from ordercast.components.execution import combine_results
from ordercast.core import Refused, RemoteError
from ordercast.core.bundle import pack_bundle, unpack
from tests.core.shards import BANK, SHARDS, Shards

ACCOUNTS = ["account-0", "account-1", "account-2", "account-3"]


def test_each_operation_of_a_call_gets_one_result() -> None:
    shards = Shards(BANK)
    for account in ACCOUNTS:
        shards.call("deposit", account, 4)
    total, show = BANK.find("total"), BANK.find("show")
    payloads = [total.pack((ACCOUNTS,), {}), show.pack((ACCOUNTS,), {})]
    groups = [BANK.groups(payload, SHARDS) for payload in payloads]
    assert groups[0] == groups[1]
    ran = [shards.results(payload) for payload in payloads]
    parts = [pack_bundle(7, [5, 5], [one[group] for one in ran]) for group in groups[0]]
    first, second = unpack(combine_results(BANK, pack_bundle(7, [5, 5], payloads), parts))
    assert (first.message, second.message) == (7, 8)
    assert total.unpack_result(first.payload) == 16
    assert show.unpack_result(second.payload) == dict.fromkeys(ACCOUNTS, 4)


def test_one_shard_that_refuses_is_enough() -> None:
    shards = Shards(BANK)
    payload = BANK.find("transfer").pack((ACCOUNTS[0], ACCOUNTS[1], -1), {})
    results = list(shards.results(payload).values())
    with pytest.raises(Refused, match="nothing to move"):
        BANK.find("transfer").unpack_result(BANK.combine(payload, results))


def test_a_shard_that_answers_something_else_is_an_error_of_the_peer() -> None:
    payload = BANK.find("deposit").pack(("a", 1), {})
    call = pack_bundle(7, [5], [payload])
    for wrong in (pack_bundle(8, [5], [b"\0"]), pack_bundle(7, [5, 5], [b"\0", b"\0"]), b"short"):
        with pytest.raises(RemoteError):
            combine_results(BANK, call, [wrong])

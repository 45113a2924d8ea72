"""The built-in services over shards: their operations run, and their generators draw what they say."""

from collections import Counter
from random import Random

import msgspec
import pytest

from ordercast.core import HELD, Context, Outcome, ServiceType, ShardMachine, message_id, outcome_of
from ordercast.core.general import PREPARE, combine_general, read_general
from ordercast.services import SHARDED, Operations, ServiceWorkload, workload_of
from ordercast.services.draw import draw_arguments
from ordercast.services.keys import DrawnKeys
from ordercast.services.sharded import ALL_ACCOUNTS, KEYS, START, ycsb
from tests.core.shards import BANK, Shards, shard_type

SHARDS = 3


class Rig:
    """All shards of a built-in service, and a client that concludes what it prepares."""

    def __init__(self, name: str, shards: int = SHARDS) -> None:
        workload = workload_of(name)
        self.shards = Shards(shard_type(workload.service), shards)
        self.operations = Operations(workload, 0.3, 8, shards)
        self.outcomes: Counter[Outcome] = Counter()
        self.general = 0

    def run(self, count: int) -> None:
        rng = Random(3)
        for number in range(count):
            payload, _, groups = self.operations.draw(rng, number)
            self._run(number * 2, payload, groups or ())

    def _run(self, number: int, payload: bytes, groups: tuple[int, ...]) -> None:
        message = message_id(1, number)
        results = [self.shards.machines[one].apply(payload, Context(message, number)) for one in groups]
        assert HELD not in results
        result = self.shards.kind.combine(payload, results)
        self.outcomes[outcome_of(result)] += 1
        following = self.operations.proceed(message, payload, result)
        if following is not None:
            self.general += 1
            assert following.groups == groups
            self._run(number + 1, following.payload, groups)


@pytest.mark.parametrize("name", SHARDED)
def test_drawn_transactions_are_answered_and_leave_no_lock(name: str) -> None:
    rig = Rig(name)
    rig.run(600)
    assert set(rig.outcomes) == {Outcome.ANSWERED}
    assert rig.outcomes.total() == 600 + rig.general
    assert (rig.general > 100) == (name in ("bank", "ycsb_two"))
    for machine in rig.shards.machines:
        assert isinstance(machine, ShardMachine) and not machine.pending


def test_the_money_of_the_bank_stays_the_same() -> None:
    rig = Rig("bank")
    rig.run(500)
    assert rig.shards.call("total", ALL_ACCOUNTS) == KEYS * START
    balances = [rig.shards.call("total", [account]) for account in ALL_ACCOUNTS]
    assert len(set(map(str, balances))) > 5


def test_the_sum_of_the_closed_economy_stays_the_same() -> None:
    rig = Rig("ycsb_two")
    rig.run(500)
    values = [rig.shards.call("read", f"key-{number}") for number in range(KEYS)]
    moved = [value - START for value in values if isinstance(value, int)]
    assert sum(moved) == 0 and any(moved)


def test_the_number_of_shards_changes_no_value() -> None:
    states = []
    for shards in (1, 3, 15):
        rig = Rig("ycsb_two", shards)
        rig.run(300)
        states.append([rig.shards.call("read", f"key-{number}") for number in range(KEYS)])
    assert states[0] == states[1] == states[2]


def test_ycsb_reads_and_writes_single_keys_in_equal_shares() -> None:
    operations, rng = Operations(ycsb(DrawnKeys(100)), 0.5, 8, SHARDS), Random(1)
    drawn = [operations.draw_call(rng, number) for number in range(2000)]
    assert 900 < sum(name == "read" for name, _ in drawn) < 1100
    assert all(len(operations.draw(rng, 0).groups or ()) == 1 for _ in range(100))


def test_the_shares_of_retwis_are_those_that_are_published() -> None:
    operations, rng = Operations(workload_of("retwis"), 0.0, 8), Random(1)
    counts = Counter(operations.draw_call(rng, number)[0] for number in range(10_000))
    shares = {"add_user": 0.05, "follow": 0.15, "post": 0.3, "timeline": 0.5}
    assert counts.keys() == shares.keys()
    assert all(abs(counts[name] / 10_000 - share) < 0.015 for name, share in shares.items())


def test_keys_are_drawn_alike_or_by_zipf() -> None:
    rng = Random(1)
    alike, skewed = DrawnKeys(10), DrawnKeys(10, 1.0)
    even = Counter(alike.draw(rng) for _ in range(10_000))
    assert 900 < min(even.values()) <= max(even.values()) < 1100
    zipf = Counter(skewed.draw(rng) for _ in range(10_000))
    assert 1.8 < zipf["key-0"] / zipf["key-1"] < 2.2
    assert 9 < zipf["key-0"] / zipf["key-9"] < 11.5
    assert sorted(alike.draw_some(rng, 99)) == sorted(f"key-{number}" for number in range(10))


def test_a_general_transaction_that_was_refused_is_aborted() -> None:
    operations = Operations(workload_of("bank"), 0.0, 8, SHARDS)
    rng = Random(1)
    drawn = next(
        one for one in (operations.draw(rng, n) for n in range(99)) if one.payload.startswith(PREPARE)
    )
    following = operations.proceed(7, drawn.payload, bytes((Outcome.REFUSED,)))
    assert following is not None
    end = read_general(following.payload)
    assert msgspec.to_builtins(end)[2] is False
    prepare = read_general(drawn.payload)
    assert prepare is not None
    assert combine_general(prepare, [b"\x01no", b"\0\x80"]) == b"\x01no"


def test_arguments_drawn_by_types_name_a_key() -> None:
    rng = Random(1)
    for _ in range(200):
        arguments = draw_arguments(BANK.find("total"), rng)
        assert BANK.find("total").pack(arguments, {})


def test_a_workload_without_general_transactions_goes_on_with_nothing() -> None:
    workload = ServiceWorkload(workload_of("ycsb").service, workload_of("ycsb").generate)
    assert Operations(workload, 0.0, 8).proceed(1, PREPARE, b"\0") is None
    assert isinstance(ServiceType.of(workload.service).find("read").reads, bool)

"""The comparison of transactions: its load finds stores that lose money, and its report adds up."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.services.contender import MeasureError
from benchmarks.transactions.__main__ import TASKS, contenders, report, table_of
from benchmarks.transactions.contender import Contender, Figures, Session
from benchmarks.transactions.etcd_transactions import EtcdTransactions
from benchmarks.transactions.load import drive
from benchmarks.transactions.ours import Ours
from benchmarks.transactions.redis_script import RedisScript
from benchmarks.transactions.store import ALL_PAIRS, MAIN, WORKLOADS, Drawn, Draws, Store, change_of
from ordercast.core import LocalError, ServiceType
from ordercast.services.sharded import START


class Memory(Session):
    """A store in this process, which gives money away if it `leaks`, and aborts every other transaction."""

    def __init__(self, data: dict[str, Any], *, leaks: bool = False) -> None:
        self._data = data
        self._leaks = leaks
        self._turns = 0

    async def run(self, drawn: Drawn) -> int:
        await asyncio.sleep(0.001)
        self._turns += 1
        if drawn.name not in ("read", "write", "timeline"):
            change = change_of(drawn)
            written = change.write({key: self._data[key] for key in change.keys if key in self._data})
            if self._leaks:
                written.popitem()
            self._data |= written
        return self._turns % 2

    async def total(self, keys: list[str]) -> int:
        return sum(self._data.get(key, START) for key in keys)


class Held(dict[str, Any]):
    """What a procedure sees of a shard that holds all of its keys."""

    @property
    def held(self) -> list[str]:
        return list(self)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.services.load.WARM_UP_S", 0.05)


def driven(workload: str, make: Callable[[dict[str, Any]], Session]) -> Figures:
    data: dict[str, Any] = {}

    async def open_session() -> Session:
        return make(data)

    return asyncio.run(drive(open_session, workload, 4, 0.3))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_nothing_is_wrong_with_a_good_store_and_aborts_are_counted(workload: str) -> None:
    found = driven(workload, Memory)
    assert found.violations == 0
    assert 0 < found.transactions_per_s < 4000 and 1000 <= found.p50_us <= found.p99_us
    assert found.aborted >= 0.3 * found.transactions_per_s / 4


def test_a_store_that_loses_money_is_found_out() -> None:
    assert driven("two", lambda data: Memory(data, leaks=True)).violations == 1


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), LocalError("gone")])
def test_a_store_that_fails_is_no_measurement(error: Exception) -> None:
    class Gone(Memory):
        async def run(self, drawn: Drawn) -> int:
            raise error

    with pytest.raises(MeasureError, match="gone"):
        driven(MAIN, Gone)


def test_stores_without_procedures_do_what_ours_does() -> None:
    """For every kind of transaction: what it writes is what the procedure writes."""
    kinds = ServiceType.of(Store).operations
    for workload in WORKLOADS:
        draws, seen = Draws(workload, 1), set()
        for _ in range(200):
            drawn = draws.next()
            seen.add(drawn.name)
            assert drawn.name in kinds or drawn.name == "general move"
            if drawn.name in ("read", "write", "timeline"):
                continue
            before = {key: START if workload == "two" else ["old"] for key in change_of(drawn).keys}
            held = Held(before)
            getattr(Store, drawn.name.removeprefix("general "))(held, *drawn.arguments)
            assert change_of(drawn).write(before) == held
        assert len(seen) == (4 if workload == "retwis" else 2)


def test_the_report_has_medians_ratios_and_who_is_absent() -> None:
    def rounds(*rates: float) -> list[Figures]:
        return [Figures(rate, 1.0, 2.0, 3, 0) for rate in rates]

    measured = {
        "hydra_txn": {"ycsb": rounds(30, 10, 20), "two": rounds(6), "retwis": []},
        "other": {"ycsb": rounds(10, 10, 10), "two": rounds(3), "retwis": rounds(1)},
    }
    found: Any = report(measured, {"etcd_disk": "no etcd"})
    assert found["ratios"] == {
        "hydra_txn_to": {"other": 2.0},
        "hydra_txn_to_with_two": {"other": 2.0},
        "hydra_txn_to_with_retwis": {},
    }
    assert found["absent"] == {"etcd_disk": "no etcd"}
    mine = found["contenders"]["hydra_txn"]
    assert (mine["transactions_per_s"], mine["aborted"], mine["tasks"]) == (20, 3, TASKS)
    assert (mine["two"]["transactions_per_s"], mine["retwis"]) == (6, None)
    assert table_of(measured).row_count == 2


def test_who_takes_part_and_who_is_absent() -> None:
    everybody = contenders()
    assert [one.name for one in everybody] == [
        "hydra_txn", "eris", "granola", "lock_store", "hydra_txn_one_shard", "hydra_paxos", "etcd_memory",
        "etcd_disk", "redis_script",
    ]  # fmt: skip
    assert not any(one.missing() for one in everybody if isinstance(one, Ours))
    assert Ours("tapir").missing() == "there is no protocol tapir"


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    "contender", [RedisScript(), EtcdTransactions(in_memory=True)], ids=lambda one: one.name
)
def test_a_peer_is_measured_if_it_is_here(tmp_path: Path, contender: Contender, workload: str) -> None:
    if missing := contender.missing():
        pytest.skip(missing)
    found = contender.measure(workload, 4, 0.3, tmp_path)
    assert found.transactions_per_s > 0 and found.violations == 0


def test_ours_is_measured_with_general_transactions_of_many_tasks(tmp_path: Path) -> None:
    """What locks keys is alone in its bundle; otherwise tasks of one program would wait for each other."""
    found = Ours("hydra_txn", shards=2).measure("two", 32, 1.0, tmp_path)
    assert found.transactions_per_s > 0 and found.violations == 0
    assert len(ALL_PAIRS) == 1000

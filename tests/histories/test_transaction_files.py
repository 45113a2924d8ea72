"""Files of transactions: what is read of them, and how a wrong line is reported."""

from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.judge.histories import Balances, judge_balances, read_history, read_recorded
from ordercast.judge.histories.transactions import Append, Fate, Read, Transaction, Transactions
from tests.histories.test_files import log, written


def read_transactions(tmp_path: Path, text: str) -> list[Transaction]:
    recorded = read_recorded(written(tmp_path, text))
    assert isinstance(recorded, Transactions)
    return list(recorded.transactions)


def test_a_history_of_jepsen_is_read(tmp_path: Path) -> None:
    text = """\
{:type :invoke, :f :txn, :value [[:append 3 1] [:r 4 nil]], :process 0, :time 17, :index 0}
#jepsen.history.Op{:type :invoke, :f :txn, :value [[:r 3 nil]], :process 1, :error (a #{c}) :at #inst "2026"}
{:process :nemesis, :type :info, :f :kill, :value {"n1" :done}}
{:type :ok, :f :txn, :value [[:append 3 1] [:r 4 nil]], :process 0, :stopped true, :rate 1.5}
{:type :info, :f :txn, :value [[:r 3 nil]], :process 1, :error [:timeout "no"]}
{:type :invoke, :f :txn, :value [[:r 3 nil] [:append :x "e"]], :process 2}
{:type :fail, :f :txn, :value [[:r 3 nil] [:append :x "e"]], :process 2}
{:type :invoke, :f :txn, :value [[:r 3 nil]], :process 2}
{:type :ok, :f :txn, :value [[:r 3 [1, 2]]], :process 2}
{:type :invoke, :f :txn, :value [[:append 3 2]], :process 3}
"""
    first, second, third, fourth, last = read_transactions(tmp_path, text)
    assert first == Transaction(0, 1, 4, Fate.COMMITTED, (Append(3, 1), Read(4, ())), "lines 1 and 4")
    assert (second.fate, second.answered, second.operations) == (Fate.UNKNOWN, None, (Read(3, None),))
    assert (third.fate, third.answered, third.client) == (Fate.ABORTED, 7, 2)
    assert fourth.operations == (Read(3, (1, 2)),)
    assert (last.fate, last.source) == (Fate.UNKNOWN, "line 10")


WRONG_LINES: dict[str, tuple[int, str, str]] = {
    "no vector": (1, "must be a vector of operations, not 5", log("0 :invoke :txn 5")),
    "an unknown operation": (1, "must be [:append key element] or", log("0 :invoke :txn [[:w 1 2]]")),
    "a key of several values": (1, "must be a single value, not (1,)", log("0 :invoke :txn [[:r [1] nil]]")),
    "fewer answers": (
        2,
        "the transaction of line 1 has 2 operations, not 1",
        log("0 :invoke :txn [[:r 1 nil] [:r 2 nil]]", "0 :ok :txn [[:r 1 [1]]]"),
    ),
    "an answer to something else": (
        2,
        "does not answer what line 1 asks: append 2 to 1",
        log("0 :invoke :txn [[:append 1 2]]", "0 :ok :txn [[:append 1 3]]"),
    ),
    "a list that is no vector": (
        2,
        "must be a vector or nil, not 7",
        log("0 :invoke :txn [[:r 1 nil]]", "0 :ok :txn [[:r 1 7]]"),
    ),
    "an element twice": (
        2,
        "line 1 does this too: append 2 to 1",
        log("0 :invoke :txn [[:append 1 2]]", "1 :invoke :txn [[:append 1 2]]"),
    ),
    "a register among them": (
        2,
        "operation :read does not belong to transactions",
        log("0 :invoke :txn [[:append 1 2]]", "1 :invoke :read nil", "1 :ok :read 1"),
    ),
    "a balance that is a text": (
        2,
        "a balance must be a number",
        log("0 :invoke :read nil", '0 :ok :read {1 10, 2 "x"}'),
    ),
    "a bank read as a number": (
        4,
        "read as a map of balances, not as 3",
        log("0 :invoke :read nil", "0 :ok :read {1 10}", "0 :invoke :read nil", "0 :ok :read 3"),
    ),
    "a write to a bank": (
        3,
        "operation :write does not belong to a bank",
        log("0 :invoke :read nil", "0 :ok :read {1 10}", "0 :invoke :write 3"),
    ),
}


@pytest.mark.parametrize("name", WRONG_LINES)
def test_a_wrong_line_is_named(name: str, tmp_path: Path) -> None:
    line, what, text = WRONG_LINES[name]
    path = written(tmp_path, text)
    with pytest.raises(LocalError) as caught:
        read_recorded(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert what in str(caught.value)


def test_transactions_are_no_operations_on_one_object(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="has transactions"):
        read_history(written(tmp_path, log("0 :invoke :txn [[:append 1 2]]")))


def test_the_total_of_a_bank_is_kept_or_not(tmp_path: Path) -> None:
    text = log(
        "0 :invoke :transfer {:from 0 :to 1 :amount 5}",
        "1 :invoke :read nil",
        "1 :ok :read {0 95, 1 105}",
        "0 :info :transfer {:from 0 :to 1 :amount 5}",
        "1 :invoke :read nil",
    )
    kept = read_recorded(written(tmp_path, text + log("1 :ok :read {0 100, 1 100}")))
    assert isinstance(kept, Balances) and kept.operations == 3
    assert judge_balances(kept).total_kept
    for told in ("{0 95, 1 100}", "{0 200}"):
        lost = read_recorded(written(tmp_path, text + log(f"1 :ok :read {told}")))
        assert isinstance(lost, Balances)
        judgement = judge_balances(lost)
        assert not judgement.total_kept and judgement.wrong[0].source == "lines 5 and 6"


def test_a_bank_that_nobody_read_kept_its_total(tmp_path: Path) -> None:
    bank = read_recorded(written(tmp_path, log("0 :invoke :transfer {:from 0 :to 1 :amount 5}")))
    assert isinstance(bank, Balances) and judge_balances(bank).total_kept

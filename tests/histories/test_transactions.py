"""Histories of transactions: each anomaly is found and named, and the judge agrees with the definition."""

from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.judge.histories import read_recorded
from ordercast.judge.histories.transactions import (
    Append,
    Fate,
    Read,
    Transaction,
    Transactions,
    judge_transactions,
)
from tests.histories.made_transactions import STORES, Store, as_edn, has_order, made, transaction
from tests.histories.test_files import written


def a(element: int, key: str = "x") -> Append:
    return Append(key, element)


def r(*elements: int, key: str = "x") -> Read:
    return Read(key, elements)


t = transaction

WITHOUT_CYCLE: dict[str, tuple[Transaction, ...]] = {
    "G1a": (t(0, 1, 2, a(1), fate=Fate.ABORTED), t(1, 3, 4, r(1))),
    "G1b": (t(0, 1, 4, a(1), a(2)), t(1, 2, 3, r(1)), t(1, 5, 6, r(1, 2))),
    "garbage-read": (t(0, 1, 2, r(7)),),
    "duplicate-elements": (t(0, 1, 2, a(1)), t(0, 3, 4, r(1, 1))),
    "incompatible-order": (t(0, 1, 9, a(1)), t(1, 1, 9, a(2)), t(2, 1, 9, r(1, 2)), t(3, 1, 9, r(2, 1))),
    "internal": (t(0, 1, 2, a(1), r()),),
}
CYCLES: dict[str, tuple[Transaction, ...]] = {
    "G0": (
        t(0, 1, 9, a(1), a(1, "y")),
        t(1, 1, 9, a(2), a(2, "y")),
        t(2, 1, 9, r(1, 2), r(2, 1, key="y")),
    ),
    "G1c": (t(0, 1, 9, a(1), r(2, key="y")), t(1, 1, 9, a(2, "y"), r(1))),
    "lost-update": (t(0, 1, 9, r(), a(1)), t(1, 1, 9, r(), a(2)), t(2, 1, 9, r(1, 2))),
    "G-single": (t(0, 1, 9, a(1), a(1, "y")), t(1, 1, 9, r(1), r(key="y"))),
    "G2": (t(0, 1, 9, r(), a(1, "y")), t(1, 1, 9, r(key="y"), a(1))),
    "G1c-process": (t(0, 1, 2, r(1)), t(0, 3, 4, a(1, "x"))),
    "G-single-process": (t(0, 1, 2, a(1)), t(0, 3, 4, r())),
    "G-single-realtime": (t(0, 1, 2, a(1)), t(1, 3, 4, r())),
    "G0-realtime": (t(0, 1, 2, a(1)), t(1, 3, 4, a(2)), t(2, 1, 9, r(2, 1))),
    "G2-realtime": (t(0, 5, 6, r()), t(1, 1, 9, a(1), r(key="y")), t(2, 1, 2, a(1, "y"))),
}


@pytest.mark.parametrize("kind", WITHOUT_CYCLE)
def test_a_wrong_read_is_named(kind: str) -> None:
    found = judge_transactions(WITHOUT_CYCLE[kind]).anomalies
    assert [one.kind for one in found][:1] == [kind]
    assert not has_order(WITHOUT_CYCLE[kind], strict=False)


@pytest.mark.parametrize("kind", CYCLES)
def test_a_cycle_is_named(kind: str) -> None:
    judgement = judge_transactions(CYCLES[kind])
    (found,) = judgement.anomalies
    assert found.kind == kind
    assert found.steps and [step.after for step in found.steps] == [
        step.before for step in (*found.steps[1:], found.steps[0])
    ]
    assert judgement.serializable == has_order(CYCLES[kind], strict=False) == kind.endswith("-realtime")
    assert not has_order(CYCLES[kind], strict=True)


ANOMALIES = {kind: one for kind, one in (WITHOUT_CYCLE | CYCLES).items() if not kind.endswith("-process")}
"""In a file of `as_edn`, each transaction has a client of its own."""


@pytest.mark.parametrize("kind", ANOMALIES)
def test_each_anomaly_is_found_in_a_file(kind: str, tmp_path: Path) -> None:
    recorded = read_recorded(written(tmp_path, as_edn(ANOMALIES[kind])))
    assert isinstance(recorded, Transactions)
    found = judge_transactions(recorded.transactions).anomalies
    assert [one.kind for one in found][:1] == [kind]
    assert all("line" in str(one) for one in found[0].transactions)


def test_a_cycle_is_told_in_words() -> None:
    (found,) = judge_transactions(CYCLES["G-single"]).anomalies
    assert {step.text for step in found.steps} == {
        "the second read 1 in 'x', which the first appended",
        "the first read 'y' before the second appended 1",
    }


def test_a_transaction_may_append_to_the_end_of_what_it_read() -> None:
    history = [t(0, 1, 2, r(), a(1)), t(1, 3, 4, r(1), a(2)), t(1, 5, 6, r(1, 2), a(3), r(1, 2, 3))]
    assert judge_transactions(history).strict_serializable


def test_what_nobody_read_comes_after_all_that_was_read() -> None:
    history = [t(0, 1, 2, a(1)), t(1, 3, 4, a(2)), t(2, 5, 6, r(1))]
    (found,) = judge_transactions(history).anomalies
    assert found.kind == "G-single-realtime" and not has_order(history, strict=True)


def test_an_unknown_transaction_counts_if_something_of_it_was_read() -> None:
    seen = [t(0, 1, None, a(1), a(1, "y")), t(1, 2, 3, r(1), r(key="y"))]
    (found,) = judge_transactions(seen).anomalies
    assert found.kind == "G-single"
    unseen = [t(0, 1, None, a(1), a(1, "y")), t(1, 2, 3, r(), r(key="y"))]
    assert judge_transactions(unseen).strict_serializable


def test_an_element_is_appended_once() -> None:
    with pytest.raises(LocalError, match="appends what another one appends"):
        judge_transactions([t(0, 1, 2, a(1)), t(1, 1, 2, a(1))])


@pytest.mark.parametrize("store", STORES)
def test_the_judge_agrees_with_the_definition(store: type[Store]) -> None:
    broken = 0
    for seed in range(300):
        history = made(seed, store, size=5)
        judgement = judge_transactions(history)
        assert judgement.strict_serializable == has_order(history, strict=True), seed
        assert judgement.serializable == has_order(history, strict=False), seed
        broken += not judgement.strict_serializable
    assert (broken == 0) if store is Store else (broken > 20)


def test_long_histories_of_a_correct_store_are_accepted() -> None:
    assert judge_transactions(made(7, Store, size=3000, clients=12, keys=40)).strict_serializable


def test_each_part_has_its_own_finding() -> None:
    both = [*CYCLES["G0"], t(7, 20, 21, a(1, "p")), t(8, 22, 23, r(key="p"))]
    found = judge_transactions(both)
    assert [one.kind for one in found.anomalies] == ["G0", "G-single-realtime"]

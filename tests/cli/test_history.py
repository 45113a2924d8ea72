"""`ordercast history`: verdicts, exit codes, and what it prints for people and for programs."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.histories.made_transactions import as_edn
from tests.histories.test_transactions import CYCLES

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"
GOOD, STALE, TEXTS = EXAMPLES / "register.log", EXAMPLES / "stale-read.log", EXAMPLES / "texts.edn"
APPENDS, SKEW, BANK = EXAMPLES / "list-append.edn", EXAMPLES / "write-skew.edn", EXAMPLES / "bank.edn"


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """A history with very many orders: ten appends at once, and a text that they do not make."""
    lines = [f'{{:process {n} :type :invoke :f :append :key "k" :value "{n}"}}' for n in range(10)]
    lines += [line.replace("invoke", "ok") for line in lines]
    lines.append('{:process 0 :type :invoke :f :get :key "k"}')
    lines.append('{:process 0 :type :ok :f :get :key "k" :value "?"}')
    path = tmp_path / "hard.edn"
    path.write_text("\n".join(lines))
    return path


def test_linearizable_histories_are_success(ordercast: Command) -> None:
    said = ordercast("history", GOOD, TEXTS)
    assert (said.code, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith(f"linearizable: {GOOD} (register, 5 operations, ")
    assert second.startswith(f"linearizable: {TEXTS} (kv, 4 operations, ")


def test_a_stale_read_is_told_in_words(ordercast: Command) -> None:
    said = ordercast("history", GOOD, STALE)
    assert said.code == 1
    assert f"\nnot linearizable: {STALE} (register, 4 operations, " in said.out
    assert "  no order explains this answer: client 2 read = 1 (lines 6 and 7)\n" in said.out


def test_programs_get_one_object(ordercast: Command) -> None:
    said = ordercast("history", GOOD, STALE, "--json")
    assert said.code == 1
    good, stale = said.json()["histories"]
    assert good | {"seconds": 0} == {
        "file": str(GOOD),
        "model": "register",
        "linearizable": True,
        "operations": 5,
        "seconds": 0,
        "counterexample": None,
    }
    assert 0 <= good["seconds"] < 60
    assert stale["linearizable"] is False
    found = stale["counterexample"]
    assert (found["key"], found["values"]) == (None, [2])
    assert found["operation"] == {
        "client": 2,
        "call": "read",
        "arguments": [],
        "result": 1,
        "known": True,
        "source": "lines 6 and 7",
    }
    assert [one["source"] for one in found["order"]] == ["lines 1 and 2", "lines 3 and 8", "lines 4 and 5"]
    assert [one["source"] for one in found["under_way"]] == ["lines 3 and 8"]


def test_an_unreadable_file_is_one_line_and_hides_no_verdict(ordercast: Command, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.log"
    wrong.write_text("INFO  jepsen.util - 0\t:ok\t:read\t1\n")
    detail = f"{wrong}, line 1: process 0 ends an operation that it did not invoke"
    said = ordercast("history", wrong, GOOD, "--json")
    assert (said.code, said.err) == (2, f"ordercast: {detail}\n")
    assert [one["linearizable"] for one in said.json()["histories"]] == [True]
    assert said.json()["unreadable"] == [{"file": str(wrong), "detail": detail}]
    assert ordercast("history", wrong, STALE).code == 1
    assert ordercast("history", tmp_path / "none").code == 2
    assert ordercast("history").code == 2


@pytest.mark.parametrize("limit", [("--placements", 500), ("--seconds", 0)])
def test_a_search_that_reaches_a_limit_decides_nothing(
    ordercast: Command, hard: Path, limit: tuple[str, int]
) -> None:
    said = ordercast("history", hard, *limit)
    assert said.code == 2
    assert said.out.startswith(f"not decided: {hard} (kv, 11 operations, ")
    assert "the search reached a limit for the keys 'k'; --seconds and --placements raise" in said.out
    (judged,) = ordercast("history", hard, *limit, "--json").json()["histories"]
    assert judged["linearizable"] is None
    assert ordercast("history", hard, STALE, *limit).code == 1


def test_transactions_without_an_order_are_told_in_words(ordercast: Command) -> None:
    said = ordercast("history", APPENDS, SKEW)
    assert said.code == 1
    first, second, *told = said.out.splitlines()
    assert first.startswith(f"strict serializable: {APPENDS} (list-append, 4 operations, ")
    assert second.startswith(f"not serializable: {SKEW} (list-append, 3 operations, ")
    assert told[0] == "  G2: no order has these 2 transactions"
    assert "      rw: the first read :x before the second appended 1:" in told


def test_programs_get_the_steps_of_a_cycle(ordercast: Command) -> None:
    (judged,) = ordercast("history", SKEW, "--json").json()["histories"]
    assert (judged["strict_serializable"], judged["serializable"], judged["more"]) == (False, False, 0)
    (anomaly,) = judged["anomalies"]
    assert anomaly["kind"] == "G2"
    assert [(step["kind"], step["key"]) for step in anomaly["steps"]] == [("rw", ":x"), ("rw", ":y")]


def test_real_time_may_be_left_aside(ordercast: Command, tmp_path: Path) -> None:
    stale = tmp_path / "stale.edn"
    stale.write_text(as_edn(CYCLES["G-single-realtime"]))
    said = ordercast("history", stale)
    assert said.code == 1 and said.out.startswith("serializable, but not strict serializable: ")
    assert ordercast("history", stale, "--consistency", "serializable").code == 0
    assert ordercast("history", SKEW, "--consistency", "serializable").code == 1
    refused = ordercast("history", stale, "--consistency", "eventual")
    assert refused.code == 2 and "must be strict-serializable or serializable" in refused.err


def test_a_bank_keeps_its_total_or_not(ordercast: Command, tmp_path: Path) -> None:
    said = ordercast("history", BANK)
    assert said.code == 0 and said.out.startswith(f"total kept: {BANK} (bank, 3 operations, ")
    poor = tmp_path / "poor.edn"
    poor.write_text(BANK.read_text().replace("{0 5,", "{0 4,"))
    said = ordercast("history", poor)
    assert said.code == 1 and said.out.startswith("total not kept: ")
    assert "  client 1 read 3 accounts with 29 together (lines 5 and 6)\n" in said.out
    (judged,) = ordercast("history", poor, "--json").json()["histories"]
    assert judged["total_kept"] is False and [one["total"] for one in judged["wrong"]] == [29]


def test_the_help_has_an_example(ordercast: Command) -> None:
    said = ordercast("history", "--help")
    assert said.code == 0
    assert "ordercast history examples/histories/register.log" in said.out


def test_the_page_shows_what_the_command_says(ordercast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parents[1])
    said = ordercast("history", "examples/histories/stale-read.log").out
    _, *reasons = said.splitlines()
    assert "\n".join(reasons) in Path("docs/histories.md").read_text()

"""What a counterexample says, and which operations a history refuses."""

import re
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.judge.histories import Counterexample, History, Operation, explained, judge_history, shown
from tests.histories.made import REGISTER, TEXTS

PAGE = Path(__file__).parents[2] / "docs" / "histories.md"


def reasons(history: History) -> list[str]:
    found = judge_history(history).counterexample
    assert isinstance(found, Counterexample)
    return explained(found)


def test_a_stale_read_is_explained() -> None:
    operations = (
        Operation(0, "write", 1, 2, (1,), source="lines 1 and 2"),
        Operation(0, "write", 3, 9, (2,), source="lines 3 and 9"),
        Operation(1, "read", 4, 5, (), 2),
        Operation(3, "cas", 5, None, (7, 8)),
        Operation(2, "read", 6, 7, (), 1, source="lines 6 and 7"),
    )
    assert reasons(History(REGISTER, operations)) == [
        "no order explains this answer: client 2 read = 1 (lines 6 and 7)",
        "every order that explains all earlier answers leads to a value of 2",
        "one of them has 3 operations: client 0 write 1 (lines 1 and 2), client 0 write 2 (lines 3 and 9),"
        " client 1 read = 2",
        "placing more of what was under way does not help: client 3 cas 7 8 = unknown",
    ]


def test_the_first_answer_may_be_the_wrong_one() -> None:
    operations = (
        Operation(4, "get", 0, 1, (), "x", key="a"),
        Operation(5, "append", 0, None, ("y",), key="a"),
    )
    assert reasons(History(TEXTS, operations)) == [
        "no order explains this answer: client 4 get ['a'] = 'x'",
        "every order that explains all earlier answers leads to a value of 'a' of '' or 'y'",
        "placing more of what was under way does not help: client 5 append ['a'] 'y' = unknown",
    ]


def test_many_values_and_operations_are_cut_short() -> None:
    operations = [Operation(client, "write", 0, None, (client,)) for client in range(30)]
    operations.append(Operation(99, "read", 1, 2, (), 77))
    _, values, rest = reasons(History(REGISTER, tuple(operations)))
    assert values.endswith(" of nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, and perhaps others")
    assert rest.endswith("and 25 more")


def test_values_are_shown_as_people_write_them() -> None:
    assert [shown(value) for value in (None, True, False, 3, "a")] == ["nil", "true", "false", "3", "'a'"]
    assert len(shown("long" * 100)) < 70


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (Operation(0, "get", 0, 1), "a register has no operation 'get'; there are: read, write, cas"),
        (Operation(0, "cas", 0, 1, (1,)), "'cas' has 2 arguments, not 1"),
        (Operation(0, "read", 5, 4), "answered at 4, before it was invoked"),
    ],
)
def test_a_history_refuses_what_its_model_does_not_have(operation: Operation, what: str) -> None:
    with pytest.raises(LocalError, match=what):
        History(REGISTER, (operation,))


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    exec(program, {})
    assert "client 2 read = nil" in capsys.readouterr().out

"""Files of histories: what is read from both formats, and how a wrong line is reported."""

from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.judge.histories import Operation, files, read_history, record
from ordercast.judge.histories.edn import DEPTH_MAX, Keyword, parse_forms


def log(*lines: str) -> str:
    """A log of Jepsen; each line has the words of one record."""
    return "".join("INFO  jepsen.util - " + "\t".join(line.split(" ", 3)) + "\n" for line in lines)


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "history.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_operations(tmp_path: Path, text: str) -> list[Operation]:
    return sorted(read_history(written(tmp_path, text)).operations, key=lambda operation: operation.invoked)


def test_a_log_of_jepsen_is_read(tmp_path: Path) -> None:
    text = log("0 :invoke :write 3", "1 :invoke :cas [3 4]", "0 :ok :write 3", "1 :fail :cas [3 4]")
    assert read_operations(tmp_path, text + log("2 :invoke :read nil", "2 :ok :read 3")) == [
        Operation(0, "write", 1, 3, (3,), source="lines 1 and 3"),
        Operation(1, "cas", 2, 4, (3, 4), False, source="lines 2 and 4"),
        Operation(2, "read", 5, 6, (), 3, source="lines 5 and 6"),
    ]


def test_maps_are_read(tmp_path: Path) -> None:
    text = r"""
{:process 0, :type :invoke, :f :put, :key "a", :value "x \"y\" é\n", :time 17}
{:key "a" :value "x \"y\" é\n" :f :put :type :ok :process 0}

{:process 1, :type :invoke, :f :get, :key "b"}
{:process 1, :type :ok, :f :get, :key "b", :value nil}
{:process 2, :type :invoke, :f :cas, :key "b", :value ["" "z"]}
{:process 2, :type :ok, :f :cas, :key "b", :value ["" "z"]}
"""
    history = read_history(written(tmp_path, text))
    assert history.model.name == "kv"
    put, get, cas = history.operations
    assert put == Operation(0, "put", 2, 3, ('x "y" é\n',), key="a", source="lines 2 and 3")
    assert (get.key, get.result) == ("b", "")
    assert (cas.arguments, cas.result) == (("", "z"), True)


def test_the_outcome_is_unknown_without_an_answer(tmp_path: Path) -> None:
    text = log("0 :invoke :write 3", "0 :info :write :timed-out", "0 :invoke :write 4", "1 :invoke :read nil")
    first, second, third = read_operations(tmp_path, text)
    assert (first.answered, second.answered, third.answered) == (None, None, None)
    assert first.source == "line 1"


def test_an_operation_that_failed_without_a_reading_is_left_out(tmp_path: Path) -> None:
    text = log("0 :invoke :write 3", "0 :fail :write 3", "1 :invoke :cas [1 2]", "1 :fail :cas :refused")
    assert read_operations(tmp_path, text + log("2 :invoke :write 5")) == [
        Operation(2, "write", 5, None, (5,), source="line 5")
    ]


def test_other_lines_of_a_log_are_passed_over(tmp_path: Path) -> None:
    text = "INFO  jepsen.core - Setting up nodes\n" + log(":nemesis :info :start [:n1 :n2]")
    assert len(read_operations(tmp_path, text + log("0 :invoke :read nil", "0 :ok :read nil"))) == 1


def entry(words: str) -> str:
    return f"{{:process 0 {words}}}\n"


WRONG_LINES: dict[str, tuple[int, str, str]] = {
    "prose": (1, "neither a line of a Jepsen log nor a map", "Dear reader,\n"),
    "a line cut off": (2, "not 3 words", log("0 :invoke :read nil", "0 :ok :read")),
    "a process that is no number": (
        1,
        "a process must be a number",
        log(":x :invoke :read nil"),
    ),
    "a word that is no value": (1, "'4.5' is no number", log("0 :invoke :write 4.5")),
    "a number that is too large": (1, "no number of 64 bits", log("0 :invoke :write 9223372036854775808")),
    "a type that is no keyword": (1, "must be keywords", log("0 7 :read nil")),
    "an unknown type": (2, "unknown type :okay", log("0 :invoke :read nil", "0 :okay :read 1")),
    "an answer to nothing": (1, "did not invoke", log("0 :ok :read 1")),
    "two operations of one process at once": (
        2,
        "while the one that line 1 invokes is under way",
        log("0 :invoke :read nil", "0 :invoke :read nil"),
    ),
    "an answer to another operation": (
        2,
        "does not end the operation that line 1 invokes",
        log("0 :invoke :read nil", "0 :ok :write 1"),
    ),
    "an answer about another value": (
        3,
        "differs from the one that line 1 gives",
        log("0 :invoke :write 1", "1 :invoke :write 2", "0 :ok :write 2"),
    ),
    "an unknown operation": (1, "operation :increment does not belong", log("0 :invoke :increment 1")),
    "operations of two models": (
        2,
        "operation :get does not belong to a register",
        log("0 :invoke :read nil", "1 :invoke :get nil"),
    ),
    "a swap with one value": (1, "needs a vector of 2 values", log("0 :invoke :cas 3")),
    "a vector in a register": (1, "must be a single value", log("0 :invoke :write [1 2]")),
    "a vector that is read": (2, "must be a single value", log("0 :invoke :read nil", "0 :ok :read [1]")),
    "a text store without a key": (1, "needs a :key", entry(":type :invoke :f :get")),
    "a number in a text store": (
        1,
        "must be a text, not 5",
        entry(':type :invoke :f :put :key "a" :value 5'),
    ),
    "a key of several values": (1, "a key must be a single value", entry(":type :invoke :f :get :key [1 2]")),
    "a map without a type": (1, "the key :type is missing", entry(":f :get")),
    "a map with a key twice": (1, "has the key :f twice", entry(":type :invoke :f :get :f :put")),
    "a map with a text as its key": (1, "the key :type is missing", entry('"type" :invoke')),
    "a map with a vector as its key": (1, "must be a keyword, a number or a text, not (1,)", entry("[1] 2")),
    "a tag without a value": (1, "nothing follows the tag '#inst'", "#inst"),
    "tags of tags": (1, f"tags are nested more than {DEPTH_MAX} deep", "#a " * 100 + "1\n"),
    "a set that does not begin": (1, "'#' begins nothing", "{:process # 1}\n"),
    "a list as a value": (1, "'(' is no number", entry(":type :invoke :f :write :value (1 2)")),
    "a fraction in a vector": (1, "'1.5' is no number", entry(":type :invoke :f :cas :value [1 [1.5]]")),
    "a transaction in a register": (
        2,
        "operation :txn does not belong to a register",
        log("0 :invoke :write 1", "1 :invoke :txn [[:r 1 nil]]"),
    ),
    "a map with a key without value": (1, "a key without a value", entry(":type")),
    "two maps in a line": (1, "a line has one map", "{:process 0} {:process 1}\n"),
    "a map that does not end": (1, "'}' is missing", "{:process 0 :type :invoke\n"),
    "a text that does not end": (1, "a text that begins at column 13", '{:process 0 "typ\n'),
    "a bracket that closes nothing": (1, "']' closes nothing", "{:process 0 ]\n"),
    "vectors in vectors": (1, f"nested more than {DEPTH_MAX} deep", "{:process " + "[" * 100 + "\n"),
    "an unknown escape": (1, "unknown escape \\q", entry(':type "\\q"')),
}


@pytest.mark.parametrize("name", WRONG_LINES)
def test_a_wrong_line_is_named(name: str, tmp_path: Path) -> None:
    line, what, text = WRONG_LINES[name]
    path = written(tmp_path, text)
    with pytest.raises(LocalError) as caught:
        read_history(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert what in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, log("0 :invoke :read nil").encode() + b"\xff\xfe\n")
    with pytest.raises(LocalError, match="line 2: not UTF-8"):
        read_history(path)


@pytest.mark.parametrize("text", ["", "\n\n", "INFO  jepsen.core - nothing happened\n"])
def test_a_file_without_operations_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"history\.log: the file has no operations"):
        read_history(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="none: cannot be read: No such file"):
        read_history(tmp_path / "none")
    with pytest.raises(LocalError, match="cannot be read: Is a directory"):
        read_history(tmp_path)


def test_files_lines_and_histories_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, log("0 :invoke :read nil", "0 :ok :read 1", "0 :invoke :read nil"))
    for module, name, limit, what in (
        (record, "OPERATIONS_MAX", 1, "line 3: a history may have 1 operations"),
        (files, "FILE_BYTES_MAX", 60, "line 2: a file may have 60 bytes"),
        (files, "LINE_BYTES_MAX", 20, "line 1: a line may have 20 bytes"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, limit)
            with pytest.raises(LocalError, match=what):
                read_history(path)


def test_values_of_all_kinds_are_parsed() -> None:
    text = r'[-7, nil :a "\u00e9\t\\" [[]]] +3'
    assert parse_forms(text) == [(-7, None, Keyword("a"), "é\t\\", ((),)), 3]

"""Files of histories: logs of Jepsen, and one EDN map per line."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from ordercast.core import LocalError
from ordercast.judge.histories.bank import Balances, balances_of
from ordercast.judge.histories.edn import Form, Keyword, Table, parse_forms, refuse_other
from ordercast.judge.histories.history import History
from ordercast.judge.histories.record import LineError, Record, history_of, pairs_of
from ordercast.judge.histories.transaction_records import transactions_of
from ordercast.judge.histories.transactions import Transactions

FILE_BYTES_MAX = 256 << 20
LINE_BYTES_MAX = 1 << 20

_LOG = re.compile(r"[A-Z]+\s+(?P<logger>[\w.$-]+)\s+-\s+(?P<text>.*)", re.DOTALL)
_LOGGER = "jepsen.util"
"""Who logs operations; other loggers log other things."""
_PROCESS, _TYPE, _CALL, _KEY, _VALUE = map(Keyword, ("process", "type", "f", "key", "value"))
_NEMESIS = Keyword("nemesis")
"""The process that causes faults; it is no client."""


Recorded: TypeAlias = History | Transactions | Balances
"""What a file may have: operations on one object, transactions on lists, or those of a bank."""


def read_history(path: Path) -> History:
    """The history of operations on one object in a file."""
    recorded = read_recorded(path)
    if not isinstance(recorded, History):
        raise LocalError(f"{path}: has transactions, and not operations on one object")
    return recorded


def read_recorded(path: Path) -> Recorded:
    """The history in a file. An error names the file, and the line if one is wrong."""
    try:
        return _recorded(_records(path))
    except LineError as error:
        raise LocalError(f"{path}, line {error.line}: {error}") from error
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from error
    except LocalError as error:
        raise LocalError(f"{path}: {error}") from error


def _recorded(records: Iterator[Record]) -> Recorded:
    """What the records tell. The first ones decide which kind of history it is."""
    first: list[Record] = []
    for record in records:
        first.append(record)
        if record.call != "read" or record.value is not None:
            break
    every = chain(first, records)
    if first and first[-1].call == "txn":
        return transactions_of(pairs_of(every))
    if first and (first[-1].call == "transfer" or isinstance(first[-1].value, Table)):
        return balances_of(pairs_of(every))
    return history_of(every)


def _records(path: Path) -> Iterator[Record]:
    for number, line in _lines(path):
        try:
            record = _record(number, line)
        except LineError:
            raise
        except LocalError as error:
            raise LineError(number, str(error)) from error
        if record is not None:
            yield record


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without empty ones."""
    size = 0
    with path.open("rb") as file:
        for number, content in enumerate(iter(lambda: file.readline(LINE_BYTES_MAX + 1), b""), 1):
            size += len(content)
            if len(content) > LINE_BYTES_MAX:
                raise LineError(number, f"a line may have {LINE_BYTES_MAX} bytes")
            if size > FILE_BYTES_MAX:
                raise LineError(number, f"a file may have {FILE_BYTES_MAX} bytes")
            if content.strip():
                yield number, _decoded(number, content)


def _decoded(number: int, content: bytes) -> str:
    try:
        return content.decode().strip()
    except UnicodeDecodeError as error:
        raise LineError(number, "not UTF-8 text") from error


def _record(number: int, line: str) -> Record | None:
    """The record of a line; none if the line is about something else than a client."""
    if line.startswith(("{", "#")):
        return _of_map(number, parse_forms(line))
    logged = _LOG.fullmatch(line)
    if logged is None:
        raise LineError(number, "neither a line of a Jepsen log nor a map")
    return _of_log(number, parse_forms(logged["text"])) if logged["logger"] == _LOGGER else None


def _of_log(number: int, forms: list[Form]) -> Record | None:
    """A line of a log: process, type, operation, value."""
    if len(forms) != 4:
        raise LineError(
            number, f"a record has a process, a type, an operation and a value, not {len(forms)} words"
        )
    process, type_, call, value = forms
    return _made(number, process, type_, call, None, value)


def _of_map(number: int, forms: list[Form]) -> Record | None:
    """A map with the keys :process, :type and :f, and mostly :value and :key."""
    if len(forms) != 1 or not isinstance(forms[0], Table):
        raise LineError(number, "a line has one map")
    entries = forms[0].entries
    missing = [name for name in (_PROCESS, _TYPE, _CALL) if name not in entries]
    if missing:
        raise LineError(number, f"the key {missing[0]} is missing")
    return _made(
        number, entries[_PROCESS], entries[_TYPE], entries[_CALL], entries.get(_KEY), entries.get(_VALUE)
    )


def _made(number: int, process: Form, type_: Form, call: Form, key: Form, value: Form) -> Record | None:
    if process == _NEMESIS:
        return None
    for form in (process, type_, call, key):
        refuse_other(form)
    if not isinstance(process, int):
        raise LineError(number, f"a process must be a number, not {process!r}")
    if not isinstance(type_, Keyword) or not isinstance(call, Keyword):
        raise LineError(number, "the type and the operation must be keywords, such as :invoke and :read")
    if not isinstance(key, int | str | Keyword | None):
        raise LineError(number, f"a key must be a single value, not {key!r}")
    refuse_other(value)
    return Record(number, process, type_.name, call.name, key, value)

"""Records of what clients did, line by line, and how pairs of them become operations."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ordercast.core import LocalError
from ordercast.judge.histories.edn import Form, Keyword
from ordercast.judge.histories.history import History
from ordercast.judge.histories.models import Model, Register, TextStore
from ordercast.judge.histories.operation import Operation, Value

OPERATIONS_MAX = 1_000_000

_MODELS: tuple[Model, ...] = (Register(), TextStore())
_TYPES = ("invoke", "ok", "fail", "info")


class Record(NamedTuple):
    """A line of a history: a client invoked an operation (`invoke`), or learned what became of it.

    `ok`: it took effect. `fail`: it did not; a `cas` that repeats its arguments found another value. `info`:
    it may take effect at any later time, or never.
    """

    line: int
    process: int
    type: str
    call: str
    key: Value
    value: Form


class LineError(LocalError):
    """A wrong line of a file."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def history_of(records: Iterable[Record]) -> History:
    """The history that these records tell. Its operations decide on the model."""
    pairs = list(pairs_of(records))
    if not pairs:
        raise LocalError("the file has no operations")
    model = _model(begun for begun, _ in pairs)
    operations = (_operation(model, begun, ended) for begun, ended in pairs)
    return History(model, tuple(operation for operation in operations if operation is not None))


def pairs_of(records: Iterable[Record]) -> Iterator[tuple[Record, Record | None]]:
    """Each invocation with the record of its end, if there is one."""
    under_way: dict[int, Record] = {}
    for count, record in enumerate(records):
        if count >= 2 * OPERATIONS_MAX:
            raise LineError(record.line, f"a history may have {OPERATIONS_MAX} operations")
        if record.type == "invoke":
            _check_idle(record, under_way.get(record.process))
            under_way[record.process] = record
        else:
            yield _begun(record, under_way.pop(record.process, None)), record
    yield from ((record, None) for record in under_way.values())


def source_of(begun: Record, ended: Record | None) -> str:
    """Where an operation is recorded, for people."""
    return f"line {begun.line}" if ended is None else f"lines {begun.line} and {ended.line}"


def _check_idle(record: Record, earlier: Record | None) -> None:
    if earlier is not None:
        since = f"the one that line {earlier.line} invokes is under way"
        raise LineError(record.line, f"process {record.process} invokes an operation while {since}")


def _begun(record: Record, begun: Record | None) -> Record:
    """The invocation that this record ends."""
    if record.type not in _TYPES:
        raise LineError(record.line, f"unknown type :{record.type}; there are: {', '.join(_TYPES)}")
    if begun is None:
        raise LineError(record.line, f"process {record.process} ends an operation that it did not invoke")
    if (begun.call, begun.key) != (record.call, record.key):
        raise LineError(record.line, f"this does not end the operation that line {begun.line} invokes")
    return begun


def _model(invocations: Iterable[Record]) -> Model:
    """The first model that has all these operations."""
    left = list(_MODELS)
    for record in invocations:
        left, before = [model for model in left if record.call in model.calls], left
        if not left:
            known = " or ".join(f"{model.name} ({', '.join(model.calls)})" for model in before)
            raise LineError(record.line, f"operation :{record.call} does not belong to a {known}")
    return left[0]


def _operation(model: Model, begun: Record, ended: Record | None) -> Operation | None:
    """An operation; none if it took no effect and its client learned nothing."""
    arguments = _arguments(model, begun)
    if ended is None or ended.type == "info":
        return _made(begun, None, arguments, None)
    repeats = ended.value == begun.value
    if ended.type == "fail":
        return _made(begun, ended, arguments, False) if begun.call == "cas" and repeats else None
    if arguments and not repeats:
        raise LineError(ended.line, f"the value differs from the one that line {begun.line} gives")
    return _made(begun, ended, arguments, _result(model, begun, ended))


def _made(begun: Record, ended: Record | None, arguments: tuple[Value, ...], result: Value) -> Operation:
    return Operation(
        client=begun.process,
        call=begun.call,
        invoked=begun.line,
        answered=None if ended is None else ended.line,
        arguments=arguments,
        result=result,
        key=begun.key,
        source=source_of(begun, ended),
    )


def _arguments(model: Model, begun: Record) -> tuple[Value, ...]:
    if isinstance(model, TextStore) and begun.key is None:
        raise LineError(begun.line, f"operation :{begun.call} needs a :key")
    count = model.calls[begun.call]
    if count == 0:
        return ()
    values = begun.value if count > 1 else (begun.value,)
    if not isinstance(values, tuple) or len(values) != count:
        raise LineError(begun.line, f"operation :{begun.call} needs a vector of {count} values")
    for value in values:
        _check_value(model, begun, value)
    return values


def _result(model: Model, begun: Record, ended: Record) -> Value:
    """What the client learned. Some stores answer nil for a key without a value."""
    if begun.call == "cas":
        return True
    if model.calls[begun.call]:
        return None
    if isinstance(model, TextStore) and ended.value is None:
        return model.start
    _check_value(model, ended, ended.value)
    return ended.value


def _check_value(model: Model, record: Record, value: Value) -> None:
    if isinstance(model, TextStore) and not isinstance(value, str):
        raise LineError(record.line, f"the value of :{record.call} must be a text, not {value!r}")
    if not isinstance(value, int | str | None | Keyword):
        raise LineError(record.line, f"the value of :{record.call} must be a single value, not {value!r}")

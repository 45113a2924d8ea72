"""Records of transactions on lists, as Jepsen's `list-append` writes them.

A value is a vector of operations: `[:append key element]`, and `[:r key nil]`, which the answer repeats with
what it read: `[:r key [1 2]]`, or nil if the list is empty.
"""

from collections.abc import Iterable

from ordercast.core import LocalError
from ordercast.judge.histories.edn import Form, Keyword
from ordercast.judge.histories.operation import Value
from ordercast.judge.histories.record import LineError, Record, source_of
from ordercast.judge.histories.transactions import Append, Fate, Read, Transaction, Transactions

_FATES = {"ok": Fate.COMMITTED, "fail": Fate.ABORTED}
_APPEND, _READ = Keyword("append"), Keyword("r")


def transactions_of(pairs: Iterable[tuple[Record, Record | None]]) -> Transactions:
    """The transactions that these records tell."""
    found = sorted((_transaction(begun, ended) for begun, ended in pairs), key=lambda one: one.invoked)
    if not found:
        raise LocalError("the file has no operations")
    lines: dict[Append, int] = {}
    for transaction in found:
        for one in transaction.operations:
            if isinstance(one, Append) and lines.setdefault(one, transaction.invoked) != transaction.invoked:
                raise LineError(transaction.invoked, f"line {lines[one]} does this too: {one}")
    return Transactions(found)


def _transaction(begun: Record, ended: Record | None) -> Transaction:
    if begun.call != "txn":
        raise LineError(begun.line, f"operation :{begun.call} does not belong to transactions (txn)")
    fate = Fate.UNKNOWN if ended is None else _FATES.get(ended.type, Fate.UNKNOWN)
    operations = tuple(_operation(begun, form) for form in _vector(begun, begun.value))
    if ended is not None and fate is Fate.COMMITTED:
        told = _vector(ended, ended.value)
        if len(told) != len(operations):
            wanted = f"the transaction of line {begun.line} has {len(operations)} operations"
            raise LineError(ended.line, f"{wanted}, not {len(told)}")
        operations = tuple(_answered(begun, ended, *pair) for pair in zip(operations, told, strict=True))
    answered = None if ended is None or fate is Fate.UNKNOWN else ended.line
    return Transaction(begun.process, begun.line, answered, fate, operations, source_of(begun, ended))


def _vector(record: Record, value: Form) -> tuple[Form, ...]:
    if not isinstance(value, tuple):
        raise LineError(record.line, f"a transaction must be a vector of operations, not {value!r}")
    return value


def _operation(record: Record, form: Form) -> Append | Read:
    """An operation; what it read is not known yet."""
    if not isinstance(form, tuple) or len(form) != 3 or form[0] not in (_APPEND, _READ):
        known = "[:append key element] or [:r key nil]"
        raise LineError(record.line, f"an operation must be {known}, not {form!r}")
    call, key, value = form
    if call == _READ:
        return Read(_single(record, key), None)
    return Append(_single(record, key), _single(record, value))


def _answered(begun: Record, ended: Record, asked: Append | Read, form: Form) -> Append | Read:
    """An operation with its answer."""
    told = _operation(ended, form)
    assert isinstance(form, tuple)
    if told != asked:
        raise LineError(ended.line, f"{form!r} does not answer what line {begun.line} asks: {asked}")
    if isinstance(asked, Append):
        return asked
    elements = () if form[2] is None else form[2]
    if not isinstance(elements, tuple):
        raise LineError(ended.line, f"a list that is read must be a vector or nil, not {elements!r}")
    return Read(asked.key, tuple(_single(ended, one) for one in elements))


def _single(record: Record, form: Form) -> Value:
    if not isinstance(form, int | str | Keyword):
        raise LineError(record.line, f"a key or an element must be a single value, not {form!r}")
    return form

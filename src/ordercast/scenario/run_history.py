"""The history of a run with a service: its operations as values, for the search of an order.

Only what clients saw counts: what they called, what they were answered, and when. Places and replicas do not,
except that an answer may be taken back by its place: then the outcome is unknown.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, cast

from ordercast.core import (
    MALFORMED,
    LocalError,
    MessageId,
    Outcome,
    RemoteError,
    ServiceType,
    message_name,
    outcome_of,
)
from ordercast.core.operation_type import OperationType
from ordercast.judge.histories import History, Model, Operation, Register, TextMap
from ordercast.judge.histories.transactions import Append, Fate, Read, Transaction, Transactions
from ordercast.services import BUILT_IN, service_class
from ordercast.trace import ANSWERING, UNDOING, Event, Kind, RunDescription, StoredRun, events_of
from ordercast.trace.values import Values, read_values


class Translated(NamedTuple):
    """An operation of a service in the words of a model."""

    call: str
    key: Hashable = None
    arguments: tuple[Hashable, ...] = ()


def _register(name: str, arguments: tuple[object, ...]) -> Translated:
    call = {"get": "read", "write": "write", "swap": "cas"}[name]
    return Translated(call, None, tuple(map(_plain, arguments)))


def _kv(name: str, arguments: tuple[object, ...]) -> Translated:
    key, *others = map(_plain, arguments)
    return Translated(name, key, tuple(others))


def _plain(value: object) -> Hashable:
    assert isinstance(value, Hashable)
    return value


Translate = Callable[[str, tuple[object, ...]], Translated]
MODELS: Mapping[str, tuple[Model, Translate]] = {
    "register": (Register(), _register),
    "kv": (TextMap(), _kv),
}
"""The services that have a model, by name."""
LIST_APPEND = "list_append"
"""The service whose transactions are judged by their dependencies."""


def history_of_stored(run: StoredRun) -> History | Transactions:
    """The history of a run on disk; an error if it does not keep its values, or its service has no model."""
    values = read_values(run.folder)
    if values is None:
        raise LocalError(f"{run.folder}: does not keep its values; set `history = true` in the scenario")
    return history_of_run(run.description, events_of(run.table()), values)


def history_of_run(
    description: RunDescription, events: Iterable[Event], values: Values
) -> History | Transactions:
    """The history of a run."""
    if description.service not in (*MODELS, LIST_APPEND):
        known = ", ".join((*MODELS, LIST_APPEND))
        service = description.service or "no service"
        raise LocalError(f"{description.run}: has {service}; there are models for: {known}")
    clocks = description.clocks()
    clients: set[int] = set()
    invoked: dict[MessageId, Event] = {}
    answered: dict[MessageId, Event] = {}
    for event in events:
        if event.kind in UNDOING:
            for undone in [one for one in answered.values() if _takes_back(event, one)]:
                del answered[undone.message or 0]
        if event.message is None:
            continue
        if event.kind is Kind.SUBMIT:
            invoked[event.message] = event
            clients.add(clocks[event.node])
        elif event.kind in ANSWERING:
            answered.setdefault(event.message, event)
    if len(clients) > 1:
        raise LocalError(f"{description.run}: its clients have no common clock, so their times say nothing")
    if description.service == LIST_APPEND:
        lists = _TransactionReader(LIST_APPEND, values)
        told = [lists.transaction(event, answered.get(message)) for message, event in invoked.items()]
        return Transactions([transaction for transaction in told if transaction is not None])
    model, translate = MODELS[description.service]
    reader = _OperationReader(description.service, translate, values)
    made = [reader.operation(event, answered.get(message)) for message, event in invoked.items()]
    return History(model, tuple(operation for operation in made if operation is not None))


def _takes_back(notice: Event, answer: Event) -> bool:
    """Whether a client is told that an answer does not hold."""
    if (notice.node, notice.groups) != (answer.node, answer.groups):
        return False
    place, clock = notice.stamp_clock, answer.stamp_clock
    return place is not None and clock is not None and clock > place


class _Reader:
    """Reads the operations of a service from their bytes."""

    def __init__(self, service: str, values: Values) -> None:
        assert service in BUILT_IN
        self._kinds = ServiceType.of(service_class(service)).operations
        self._values = values

    def _result(self, event: Event, answer: Event | None) -> bytes | None:
        """The result of a call; None if its client has none."""
        return None if answer is None or event.message is None else self._values.results.get(event.message)

    def _called(self, event: Event) -> tuple[OperationType, tuple[object, ...]] | None:
        """What was called; None if it is no operation of the service, which changes nothing."""
        assert event.message is not None
        packed = self._values.operations.get(event.message)
        if packed is None:
            raise RemoteError(f"the values of {message_name(event.message)} are missing")
        start = 1 + packed[0] if packed else 0
        kind = self._kinds.get(packed[1:start].decode(errors="replace"))
        if kind is None:
            return None
        try:
            return kind, kind.unpack(packed[start:])
        except MALFORMED:
            return None


class _TransactionReader(_Reader):
    """Reads transactions on lists."""

    def transaction(self, event: Event, answer: Event | None) -> Transaction | None:
        """The transaction of a submission: it appends, and then reads all of its lists."""
        called, result = self._called(event), self._result(event, answer)
        if called is None:
            return None
        kind, (appends, reads) = called
        assert isinstance(appends, dict) and isinstance(reads, list)
        lists: dict[str, list[int]] | None = None
        if result is not None and outcome_of(result) is Outcome.ANSWERED:
            lists = cast("dict[str, list[int]]", kind.unpack_result(result))
        operations: list[Append | Read] = [Append(key, element) for key, element in appends.items()]
        for key in dict.fromkeys((*appends, *reads)):
            operations.append(Read(key, None if lists is None else tuple(lists[key])))
        return Transaction(
            client=event.node,
            invoked=event.time_ns,
            answered=None if lists is None or answer is None else answer.time_ns,
            fate=Fate.UNKNOWN if lists is None else Fate.COMMITTED,
            operations=tuple(operations),
            source=f"message {message_name(event.message or 0)}",
        )


class _OperationReader(_Reader):
    """Reads operations on one object, in the words of a model."""

    def __init__(self, service: str, translate: Translate, values: Values) -> None:
        super().__init__(service, values)
        self._translate = translate

    def operation(self, event: Event, answer: Event | None) -> Operation | None:
        """The operation of a submission; None if it is not one of the service, which changes nothing."""
        read, result = self._called(event), self._result(event, answer)
        if read is None or (result is not None and outcome_of(result) is Outcome.FAILED):
            return None
        kind, arguments = read
        call, key, rest = self._translate(kind.name, arguments)
        return Operation(
            client=event.node,
            call=call,
            invoked=event.time_ns,
            answered=None if result is None or answer is None else answer.time_ns,
            arguments=rest,
            result=None if result is None else self._told(kind, result),
            key=(event.groups, key),
            source=f"message {message_name(event.message or 0)}",
        )

    @staticmethod
    def _told(kind: OperationType, result: bytes) -> Hashable:
        """What the client was told. To delete tells whether it did."""
        refused = outcome_of(result) is Outcome.REFUSED
        if kind.name == "delete":
            return not refused
        return None if refused else _plain(kind.unpack_result(result))

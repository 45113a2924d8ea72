"""A class of shards: its transactions, where they run, and what their clients are answered."""

import typing
from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.errors import MALFORMED, LocalError
from ordercast.core.general import PREPARE, combine_general, general_groups, read_general
from ordercast.core.ids import GroupId, Groups
from ordercast.core.operation_type import MARK, OperationType
from ordercast.core.service import Outcome, ServiceSpec, Sharding, StateMachine, outcome_of
from ordercast.core.service_class import Service, ServiceType, failed
from ordercast.core.shard import DECLARED, Declaration, Keys, shard_of
from ordercast.core.shard_machine import ShardMachine


class TransactionType(OperationType):
    """One transaction of a shard: an operation that names its keys."""

    __slots__ = ("_combine", "_declared", "_reads", "_writes")

    def __init__(self, service: type[object], name: str, method: Callable[..., Any]) -> None:
        super().__init__(service, name, method)
        where = f"{service.__name__}.{name}"
        self._declared: Declaration = getattr(method, DECLARED)
        self._writes = self._places(where, self._declared.keys)
        self._reads = self._places(where, self._declared.reads)
        self._combine = self._declared.combine or self._default(where)

    def _places(self, where: str, names: Sequence[str]) -> tuple[int, ...]:
        """Which parameters these are."""
        known = list(self._signature.parameters)
        for name in names:
            if name not in known:
                raise LocalError(f"{where} has no parameter {name} that could hold its keys")
            if not _holds_keys(self.argument_types[known.index(name)]):
                raise LocalError(f"{where}: keys are text, so {name} must be text, or hold texts")
        return tuple(map(known.index, names))

    def _default(self, where: str) -> Callable[[list[Any]], Any]:
        """How results of several shards become one, if nothing is declared."""
        kind = typing.get_origin(self.result_type) or self.result_type
        named = self._writes + self._reads
        if kind is type(None) or (len(named) == 1 and self.argument_types[named[0]] is str):
            return _only
        if kind is dict:
            return _merge
        if kind is list:
            return _join
        raise LocalError(
            f"{where} may run in several shards: say how their results become one, with combine=, or return"
            " a dictionary, a list or None"
        )

    @property
    def text(self) -> str:
        """The transaction with its types and its keys."""
        keys, reads = ", ".join(self._declared.keys), ", ".join(self._declared.reads)
        return f"transaction {self.name}{self._signature} keys [{keys}] reads [{reads}]"

    def keys_of(self, arguments: tuple[Any, ...]) -> Keys:
        """The keys that a call names."""
        writes = [key for place in self._writes for key in _texts(arguments[place])]
        return Keys.of(writes, [key for place in self._reads for key in _texts(arguments[place])])

    def keys_in(self, packed: bytes) -> Keys:
        """The keys that the bytes of a call name; `LocalError` if there is none."""
        try:
            keys = self.keys_of(self.unpack(packed[len(self.head) :]))
        except MALFORMED as error:
            raise LocalError(f"malformed arguments of {self.name}: {error}") from error
        if not keys.all:
            raise LocalError(f"{self.name} was called without a key")
        return keys

    def pack(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
        """The bytes of a call; `LocalError` if the arguments do not fit, or name no key."""
        packed = super().pack(args, kwargs)
        self.keys_in(packed)
        return packed

    def combine(self, results: Sequence[bytes]) -> bytes:
        """One result of the results of all shards that ran a call, in the order of the shards."""
        for bad in (Outcome.FAILED, Outcome.REFUSED):
            found = next((result for result in results if outcome_of(result) is bad), None)
            if found is not None:
                return found
        if len(results) == 1 and self._combine in (_only, _merge, _join):
            return results[0]
        try:
            return self.pack_result(self._combine([self.unpack_result(result) for result in results]))
        except Exception as error:
            return failed(f"the results of the shards cannot be combined: {type(error).__name__}: {error}")


def _holds_keys(kind: Any) -> bool:
    """Whether all values of a type are texts, or hold them."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is dict:
        return inner[0] is str
    if origin in (list, tuple, set, frozenset):
        return all(one in (str, ...) for one in inner)
    return kind is str


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return sorted(value) if isinstance(value, set | frozenset) else tuple(value)


def _only(results: list[Any]) -> Any:
    return results[0]


def _merge(results: list[dict[Any, Any]]) -> dict[Any, Any]:
    return {key: value for result in results for key, value in result.items()}


def _join(results: list[list[Any]]) -> list[Any]:
    return [value for result in results for value in result]


class ShardType(ServiceType, Sharding):
    """A class of shards: its transactions, and its fingerprint."""

    def __init__(self, service: type[Service]) -> None:
        super().__init__(service)
        self.transactions: dict[bytes, TransactionType] = {}
        """The transactions, by what their bytes begin with."""
        for kind in self.operations.values():
            assert isinstance(kind, TransactionType)
            self.transactions[kind.head] = kind

    def _operation(self, name: str, method: Callable[..., Any]) -> OperationType:
        if getattr(method, MARK) != "transaction":
            where = f"{self.service.__name__}.{name}"
            raise LocalError(f"{where}: a shard has transactions: decorate the method with @transaction")
        return TransactionType(self.service, name, method)

    def find_transaction(self, operation: bytes) -> TransactionType:
        """The transaction that some bytes call; `LocalError` if there is none."""
        found = self.transactions.get(operation[: 1 + operation[0]] if operation else b"")
        if found is None:
            raise LocalError(f"{self.service.__name__} has no such transaction")
        return found

    def spec(self, name: str = "") -> ServiceSpec:
        """The service for a deployment: one shard with all keys, unless it is cut."""
        ShardMachine(self.service, self.transactions, 0, 1)
        return ServiceSpec(name or self.service.__name__, lambda: self.make(0, 1), self.fingerprint, self)

    def make(self, shard: GroupId, shards: int) -> StateMachine:
        """One of so many shards."""
        return ShardMachine(self.service, self.transactions, shard, shards)

    def groups(self, operation: bytes, shards: int) -> Groups:
        """The shards that a transaction runs in, in their order."""
        general = read_general(operation)
        if general is not None:
            return general_groups(general, shards)
        keys = self.find_transaction(operation).keys_in(operation)
        return tuple(sorted({shard_of(key, shards) for key in keys.all}))

    def locks(self, operation: bytes) -> bool:
        """Whether an operation is the first half of a general transaction."""
        return operation.startswith(PREPARE)

    def combine(self, operation: bytes, results: Sequence[bytes]) -> bytes:
        """The answer to a transaction from the results of its shards, in their order."""
        try:
            general = read_general(operation)
        except LocalError:
            return results[0]  # no shard has run it
        if general is not None:
            return combine_general(general, results)
        kind = self.transactions.get(operation[: 1 + operation[0]] if operation else b"")
        return results[0] if kind is None else kind.combine(results)  # no shard has run what there is not

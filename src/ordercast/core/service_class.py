"""Services as users write them: a class whose decorated methods are operations.

    class Store(Service):
        def __init__(self) -> None:
            self.data: dict[str, str] = {}

        @operation
        def put(self, key: str, value: str) -> None:
            self.data[key] = value

        @read
        def get(self, key: str) -> str | None:
            return self.data.get(key)

Arguments and results are msgpack, typed by the annotations. An operation as bytes is the length of its name
(1 byte), its name, and its arguments as an array.
"""

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, ClassVar, ParamSpec, TypeVar

import msgspec

from ordercast.core.errors import LocalError, OrdercastError, RemoteError
from ordercast.core.service import Context, Outcome, ServiceSpec, StateMachine, outcome_of

P = ParamSpec("P")
R = TypeVar("R")

MARK = "__ordercast_operation__"
"""Names what a method of a service is: an operation, a read or a transaction."""
_NAME_BYTES_MAX = 255
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_encode = msgspec.msgpack.Encoder().encode


class Refused(OrdercastError):
    """Raised by an operation that cannot be done, such as a withdrawal from an empty account.

    All replicas refuse the operation alike, and its caller gets this exception with the same text.
    """


class ServiceFailed(OrdercastError):
    """Raised at a caller whose operation raised an exception in the service, other than `Refused`."""


def operation(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method of a `Service` as an operation: all replicas run it, in the same order."""
    setattr(method, MARK, "operation")
    return method


def read(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method of a `Service` as a read: an operation that changes nothing."""
    setattr(method, MARK, "read")
    return method


class Service:
    """Base of replicated services. Its state is its attributes, which must be msgpack data.

    Override `snapshot` and `restore` to save other kinds of state. Attributes whose types msgpack does not
    have, such as sets and tuples, come back as they were if the class declares their types: ``names:
    set[str]``.
    """

    context: Context
    """What the running operation may know of the world: `now_ns`, `rng`, `caller`."""

    def snapshot(self) -> bytes:
        """The state as bytes."""
        return pack_state(self)

    def restore(self, state: bytes) -> None:
        """Take over a state that `snapshot` gave."""
        unpack_state(self, state)

    @classmethod
    def _describe(cls) -> "ServiceType":
        return ServiceType(cls)


class OperationType:
    """One operation of a service: its name, its arguments and its result, with their codecs."""

    __slots__ = (
        "_arguments",
        "_count",
        "_returns",
        "_signature",
        "_summary",
        "decode_result",
        "head",
        "name",
        "reads",
        "unpack",
    )

    def __init__(self, service: type[Service], name: str, method: Callable[..., Any]) -> None:
        self.name = name
        self.reads = getattr(method, MARK) == "read"
        """Whether it changes nothing."""
        self._summary = (inspect.getdoc(method) or "").partition("\n")[0]
        where = f"{service.__name__}.{name}"
        self._signature = _signature(where, method)
        kinds, self._returns = _types(where, method, self._signature)
        self._count = len(kinds)
        self._arguments: Any = tuple.__class_getitem__(kinds) if kinds else tuple[()]
        try:
            self.unpack = msgspec.msgpack.Decoder(self._arguments).decode
            """Gives the arguments of a call."""
            self.decode_result = msgspec.msgpack.Decoder(self._returns).decode
            """Gives the value of an answer."""
        except TypeError as error:
            raise LocalError(f"{where} has a type that cannot be sent: {error}") from error
        encoded = name.encode()
        if len(encoded) > _NAME_BYTES_MAX:
            raise LocalError(f"the name of {where} is longer than {_NAME_BYTES_MAX} bytes")
        self.head = bytes((len(encoded),)) + encoded
        """What the bytes of a call begin with."""

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return self._summary

    @property
    def argument_types(self) -> tuple[Any, ...]:
        """The types of its parameters."""
        return typing.get_args(self._arguments)

    @property
    def signature(self) -> str:
        """Its parameters and its result, with their types."""
        return str(self._signature)

    @property
    def text(self) -> str:
        """The operation with its types, for people and for the fingerprint of the service."""
        return f"{'read' if self.reads else 'operation'} {self.name}{self._signature}"

    def pack(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
        """The bytes of a call; `LocalError` if the arguments do not fit."""
        try:
            if kwargs or len(args) != self._count:
                bound = self._signature.bind(*args, **kwargs)
                bound.apply_defaults()
                args = tuple(bound.arguments.values())
            packed = _encode(args)
            self.unpack(packed)
        except (TypeError, msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise LocalError(f"wrong arguments for {self.name}{self._signature}: {error}") from error
        return self.head + packed

    def pack_result(self, value: object) -> bytes:
        """The result of a call that gave a value."""
        packed = _encode(value)
        self.decode_result(packed)
        return _ANSWERED + packed

    def unpack_result(self, result: bytes) -> object:
        """The value of a result. A refused or failed operation raises what its caller must see."""
        if result[:1] == _ANSWERED:
            try:
                return self.decode_result(memoryview(result)[1:])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise RemoteError(f"malformed result of {self.name}: {error}") from error
        text = result[1:].decode(errors="replace")
        raise Refused(text) if outcome_of(result) is Outcome.REFUSED else ServiceFailed(text)

    def from_words(self, words: list[str]) -> bytes:
        """The bytes of a call whose arguments are words, as on a command line."""
        try:
            bound = self._signature.bind(*words)
            values = [
                _from_word(word, kind)
                for word, kind in zip(bound.arguments.values(), self.argument_types, strict=False)
            ]
        except (TypeError, msgspec.MsgspecError, ValueError) as error:
            raise LocalError(f"wrong arguments for {self.name}{self._signature}: {error}") from error
        return self.pack(tuple(values), {})


_ANSWERED = bytes((Outcome.ANSWERED,))


class ServiceType:
    """A class of services: its operations, and its fingerprint."""

    _known: ClassVar[dict[type[Service], "ServiceType"]] = {}

    def __init__(self, service: type[Service]) -> None:
        self.service = service
        marked = inspect.getmembers(service, lambda member: hasattr(member, MARK))
        self.operations = {name: self._operation(name, method) for name, method in marked}
        if not self.operations:
            raise LocalError(
                f"{service.__name__} has no operations: decorate its methods with @operation or @read"
            )

    def _operation(self, name: str, method: Callable[..., Any]) -> OperationType:
        if getattr(method, MARK) not in ("operation", "read"):
            raise LocalError(
                f"{self.service.__name__}.{name}: only a subclass of ordercast.Shard has transactions"
            )
        return OperationType(self.service, name, method)

    @classmethod
    def of(cls, service: object) -> "ServiceType":
        """What a class of services is; `LocalError` if it is not one, or is not complete."""
        if not isinstance(service, type) or not issubclass(service, Service):
            raise LocalError(
                f"{getattr(service, '__name__', service)!s} is not a subclass of ordercast.Service"
            )
        if service not in cls._known:
            cls._known[service] = service._describe()
        return cls._known[service]

    @property
    def fingerprint(self) -> str:
        """What identifies the service: its name and its operations with their types."""
        return "; ".join((self.service.__name__, *(kind.text for kind in self.operations.values())))

    def find(self, name: str) -> OperationType:
        """The operation with this name, or `LocalError` with a list of all names."""
        if name not in self.operations:
            raise LocalError(
                f"{self.service.__name__} has no operation '{name}'; it has: {', '.join(self.operations)}"
            )
        return self.operations[name]

    def spec(self, name: str = "") -> ServiceSpec:
        """The service for a deployment, checked: its first state can be saved and restored."""
        ServiceMachine(self).check_state()
        return ServiceSpec(name or self.service.__name__, lambda: ServiceMachine(self), self.fingerprint)


class ServiceMachine(StateMachine):
    """A service as the state machine that protocols replicate."""

    __slots__ = ("_operations", "_service", "_type")

    def __init__(self, service_type: ServiceType) -> None:
        self._type = service_type
        self._operations = {kind.head: kind for kind in service_type.operations.values()}
        self._service = fresh(service_type.service)

    def read(self, operation: bytes, context: Context) -> bytes:
        """Run a read."""
        start = 1 + operation[0] if operation else 0
        found = self._operations.get(operation[:start])
        if found is not None and not found.reads:
            return failed(f"{found.name} is not a read")
        return self.apply(operation, context)

    def apply(self, operation: bytes, context: Context) -> bytes:
        """Run an operation; an exception is its result."""
        start = 1 + operation[0] if operation else 0
        kind = self._operations.get(operation[:start])
        if kind is None:
            return failed(f"{self._type.service.__name__} has no such operation")
        try:
            arguments = kind.unpack(operation[start:])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return failed(f"malformed arguments of {kind.name}: {error}")
        service = self._service
        service.context = context
        try:
            return kind.pack_result(getattr(service, kind.name)(*arguments))
        except Refused as refusal:
            return bytes((Outcome.REFUSED,)) + str(refusal).encode(errors="replace")
        except Exception as error:
            return failed(f"{type(error).__name__}: {error}")

    def snapshot(self) -> bytes:
        """The state of the service."""
        return self._service.snapshot()

    def restore(self, state: bytes) -> None:
        """Make a fresh service with a state."""
        restored = fresh(self._type.service)
        try:
            restored.restore(state)
        except LocalError:
            raise
        except Exception as error:
            raise LocalError(
                f"{self._type.service.__name__} cannot restore its state: {type(error).__name__}: {error}"
            ) from error
        self._service = restored

    def check_state(self) -> None:
        """Raise `LocalError` if the state of the service does not survive a snapshot."""
        name, before = self._type.service.__name__, vars(self._service).copy()
        try:
            state = self.snapshot()
        except Exception as error:
            raise LocalError(
                f"the state of {name} cannot be saved: {error}; use msgpack data, or write snapshot and"
                " restore"
            ) from error
        self.restore(state)
        for key, value in before.items():
            restored = vars(self._service).get(key)
            if type(restored) is not type(value) and type(self._service).snapshot is Service.snapshot:
                raise LocalError(
                    f"the state of {name} does not survive a snapshot: {key} is a {type(value).__name__} and"
                    f" comes back as a {type(restored).__name__}; declare its type in the class, or write"
                    " snapshot and restore"
                )
        if self.snapshot() != state:
            raise LocalError(f"the state of {name} is not the same after snapshot and restore")


def fresh(service: type[Service]) -> Service:
    """A service in its first state."""
    try:
        return service()
    except Exception as error:
        raise LocalError(f"{service.__name__}() cannot be made: {type(error).__name__}: {error}") from error


def failed(text: str) -> bytes:
    """A failed result. Addresses of objects differ between replicas, and results must not."""
    return bytes((Outcome.FAILED,)) + _ADDRESS.sub("0x", text).encode(errors="replace")


def _signature(where: str, method: Callable[..., Any]) -> inspect.Signature:
    """The signature without `self`; every argument has a place."""
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise LocalError(f"{where}: parameter {parameter.name} must be an ordinary one, without * and **")
    return signature.replace(parameters=parameters)


def _types(
    where: str, method: Callable[..., Any], signature: inspect.Signature
) -> tuple[tuple[Any, ...], Any]:
    """The types of the parameters and of the result."""
    try:
        hints = typing.get_type_hints(method, include_extras=True)
    except Exception as error:
        raise LocalError(f"{where} has an annotation that cannot be resolved: {error}") from error
    for name in (*signature.parameters, "return"):
        if name not in hints:
            what = "no type for its result" if name == "return" else f"no type for its parameter {name}"
            raise LocalError(f"{where} has {what}: annotate it")
    return tuple(hints[name] for name in signature.parameters), hints["return"]


def _from_word(word: object, kind: object) -> object:
    """A value from a word: as text where that fits, else as JSON or as a number."""
    try:
        return msgspec.convert(word, kind, strict=True)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.json.decode(str(word), type=kind)
    except msgspec.DecodeError:
        return msgspec.convert(word, kind, strict=False)


def _declared(service: Service) -> dict[str, Any]:
    """The types of attributes that the class of a service declares."""
    hints = typing.get_type_hints(type(service))
    return {name: kind for name, kind in hints.items() if name != "context"}


def pack_state(service: Service) -> bytes:
    """The attributes of a service as bytes."""
    state = {name: value for name, value in vars(service).items() if name != "context"}
    if any("set" in str(kind).lower() for kind in _declared(service).values()):
        state = {name: _sorted_sets(value) for name, value in state.items()}
    return _encode(state)


def unpack_state(service: Service, state: bytes) -> None:
    """Take over the attributes from such bytes."""
    kinds = _declared(service)
    for name, value in msgspec.msgpack.decode(state, type=dict[str, Any]).items():
        setattr(service, name, msgspec.convert(value, kinds[name]) if name in kinds else value)


def _sorted_sets(value: Any) -> Any:
    """The same value with lists for sets: the order of a set differs between replicas."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sorted_sets, value), key=_encode)
    if isinstance(value, dict):
        return {key: _sorted_sets(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_sorted_sets(inner) for inner in value]
    return value

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

Its operations are described in `operation_type.py`.
"""

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ordercast.core.asking import CONTINUATION, Ask, ContinuationType
from ordercast.core.errors import MALFORMED, LocalError
from ordercast.core.operation_type import MARK, OperationType, Refused
from ordercast.core.service import Asking, Context, Outcome, ServiceSpec, StateMachine

_OWNER = "__ordercast_service__"
"""The attribute of an operation that has the class to which it belongs."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_encode = msgspec.msgpack.Encoder().encode


class Service:
    """Base of replicated services. Its state is its attributes, which must be msgpack data.

    Override `snapshot` and `restore` to save other kinds of state. Attributes whose types msgpack does not
    have, such as sets and tuples, come back as they were if the class declares their types: ``names:
    set[str]``.
    """

    context: Context
    """What the running operation may know of the world: `now_ns`, `rng`, `caller`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for method in vars(cls).values():
            if hasattr(method, MARK):
                setattr(method, _OWNER, cls)

    def snapshot(self) -> bytes:
        """The state as bytes."""
        return pack_state(self)

    def restore(self, state: bytes) -> None:
        """Take over a state that `snapshot` gave."""
        unpack_state(self, state)

    @classmethod
    def _describe(cls) -> "ServiceType":
        return ServiceType(cls)


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
        marked = inspect.getmembers(service, lambda member: hasattr(member, CONTINUATION))
        self.continuations = {name: ContinuationType(service, name, method) for name, method in marked}

    def _operation(self, name: str, method: Callable[..., Any]) -> OperationType:
        if getattr(method, MARK) not in ("operation", "read"):
            where = f"{self.service.__name__}.{name}"
            raise LocalError(f"{where}: only a subclass of ordercast.Shard has transactions")
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

    @classmethod
    def known(cls, fingerprint: str) -> "ServiceType":
        """The class of services with this fingerprint, of which `of` was called before."""
        return next(kind for kind in cls._known.values() if kind.fingerprint == fingerprint)

    @property
    def fingerprint(self) -> str:
        """What identifies the service: its name, and its operations and continuations with their types."""
        texts = [kind.text for kind in self.operations.values()]
        texts += [kind.text for kind in self.continuations.values()]
        return "; ".join((self.service.__name__, *texts))

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
        return ServiceSpec(
            name or self.service.__name__,
            lambda: ServiceMachine(self),
            self.fingerprint,
            asks=bool(self.continuations),
        )

    def asking(self, asker: OperationType, question: Ask) -> Asking:
        """What an operation of this service asks; `LocalError` if it asks nothing that can be asked."""
        if question.then not in self.continuations:
            raise LocalError(
                f"{self.service.__name__}.{question.then} is not a continuation: decorate it with"
                " @continuation"
            )
        owner = getattr(question.method, _OWNER, None)
        if owner is None:
            raise LocalError(f"{question.method!r} is not an operation of a service")
        asked = ServiceType.of(owner)
        kind = asked.find(question.method.__name__)
        token = asker.head + self.continuations[question.then].pack(question.keep)
        packed = kind.pack(question.arguments, {})
        return Asking(packed, kind.reads, asked.fingerprint, question.group, token)


class ServiceMachine(StateMachine):
    """A service as the state machine that protocols replicate."""

    __slots__ = ("_continuations", "_operations", "_service", "_type")

    def __init__(self, service_type: ServiceType) -> None:
        self._type = service_type
        self._operations = {kind.head: kind for kind in service_type.operations.values()}
        self._continuations = {kind.head: kind for kind in service_type.continuations.values()}
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
        found = self.begin(operation, context)
        return found if isinstance(found, bytes) else failed("it asks another service, which it cannot here")

    def begin(self, operation: bytes, context: Context) -> bytes | Asking:
        """Run an operation, which may ask another service; an exception is its result."""
        start = 1 + operation[0] if operation else 0
        kind = self._operations.get(operation[:start])
        if kind is None:
            return failed(f"{self._type.service.__name__} has no such operation")
        try:
            arguments = kind.unpack(operation[start:])
        except MALFORMED as error:
            return failed(f"malformed arguments of {kind.name}: {error}")
        return self._run(kind, kind.name, arguments, context)

    def resume(self, token: bytes, result: bytes, context: Context) -> bytes | Asking:
        """Run the continuation of an operation."""
        start = 1 + token[0]
        end = start + 1 + token[start]
        follows = self._continuations[token[start:end]]
        arguments = (follows.answer(result), *follows.unpack(token[end:]))
        return self._run(self._operations[token[:start]], follows.name, arguments, context)

    def _run(
        self, kind: OperationType, method: str, arguments: tuple[Any, ...], context: Context
    ) -> bytes | Asking:
        service = self._service
        service.context = context
        try:
            value = getattr(service, method)(*arguments)
            if type(value) is Ask:
                return self._type.asking(kind, value)
            return kind.pack_result(value)
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

"""Operations of a service: methods whose arguments and results travel as msgpack, typed by their annotations.

An operation as bytes is the length of its name (1 byte), its name, and its arguments as an array.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import msgspec

from ordercast.core.errors import MALFORMED, LocalError, OrdercastError, RemoteError
from ordercast.core.service import Outcome, outcome_of

P = ParamSpec("P")
R = TypeVar("R")

MARK = "__ordercast_operation__"
"""The attribute of a method that makes it an operation: it says of which kind."""
_NAME_BYTES_MAX = 255
_DEEPER = b"\x91" * 400
"""Lists around lists: arguments that can be read inside of so many can be read at all replicas, whose stacks
are deeper or less deep than that of the caller. Otherwise one replica could read what another one cannot.
"""
_encode = msgspec.msgpack.Encoder().encode
_skip = msgspec.msgpack.Decoder(msgspec.Raw).decode


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


class OperationType:
    """One operation of a service: its name, its arguments and its result, with their codecs."""

    __slots__ = (
        "_arguments",
        "_count",
        "_nothing",
        "_signature",
        "decode_result",
        "head",
        "name",
        "reads",
        "result_type",
        "summary",
        "unpack",
    )

    def __init__(self, service: type[object], name: str, method: Callable[..., Any]) -> None:
        self.name = name
        self.reads = getattr(method, MARK) == "read"
        """Whether it changes nothing."""
        self.summary = (inspect.getdoc(method) or "").partition("\n")[0]
        """The first line of its documentation."""
        where = f"{service.__name__}.{name}"
        self._signature = plain_signature(where, method)
        kinds, self.result_type = types_of(where, method, self._signature)
        self._count = len(kinds)
        self._arguments: Any = tuple.__class_getitem__(kinds) if kinds else tuple[()]
        try:
            self.unpack = msgspec.msgpack.Decoder(self._arguments).decode
            """Gives the arguments of a call."""
            self.decode_result = msgspec.msgpack.Decoder(self.result_type).decode
            """Gives the value of an answer."""
        except TypeError as error:
            raise LocalError(f"{where} has a type that cannot be sent: {error}") from error
        self.head = head_of(where, name)
        """What the bytes of a call begin with."""
        self._nothing = self._pack_nothing()

    @property
    def argument_types(self) -> tuple[Any, ...]:
        """The types of its parameters."""
        return typing.get_args(self._arguments)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters by name."""
        return self._signature.parameters

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
            if len(packed) >= len(_DEEPER):
                _skip(_DEEPER + packed)
        except RecursionError:
            raise LocalError(f"wrong arguments for {self.name}: they are nested too deeply") from None
        except (TypeError, msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise LocalError(f"wrong arguments for {self.name}{self._signature}: {error}") from error
        return self.head + packed

    def _pack_nothing(self) -> bytes | None:
        """The result of a call that gave None; None if it must not."""
        try:
            self.decode_result(_encode(None))
        except msgspec.DecodeError:
            return None
        return _ANSWERED + _encode(None)

    def pack_result(self, value: object) -> bytes:
        """The result of a call that gave a value."""
        if value is None and self._nothing is not None:
            return self._nothing
        packed = _encode(value)
        self.decode_result(packed)
        return _ANSWERED + packed

    def unpack_result(self, result: bytes) -> object:
        """The value of a result. A refused or failed operation raises what its caller must see."""
        if result[:1] == _ANSWERED:
            try:
                return self.decode_result(memoryview(result)[1:])
            except MALFORMED as error:
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


def head_of(where: str, name: str) -> bytes:
    """What the bytes of a call of a method begin with."""
    encoded = name.encode()
    if len(encoded) > _NAME_BYTES_MAX:
        raise LocalError(f"the name of {where} is longer than {_NAME_BYTES_MAX} bytes")
    return bytes((len(encoded),)) + encoded


def plain_signature(where: str, method: Callable[..., Any]) -> inspect.Signature:
    """The signature without `self`; every argument has a place."""
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise LocalError(f"{where}: parameter {parameter.name} must be an ordinary one, without * and **")
    return signature.replace(parameters=parameters)


def types_of(
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

"""Operations that ask another service, and go on when they have its answer.

    class Shop(Service):
        def __init__(self) -> None:
            self.sold: dict[str, int] = {}

        @operation
        def buy(self, item: str, count: int) -> int:
            return ask(Stock.take, item, count, then=self.bought, keep=(item, count))

        @continuation
        def bought(self, answer: Answer[int], item: str, count: int) -> int:
            left = answer.result()
            self.sold[item] = self.sold.get(item, 0) + count
            return left

All replicas of the asking service get the same answer at the same place in their order. Other operations may
be executed between the question and the answer. What an operation keeps is part of the state until then, so a
replica that takes over goes on where another one stopped; hence the explicit continuation.
"""

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec

from ordercast.core.errors import MALFORMED, LocalError
from ordercast.core.ids import GroupId
from ordercast.core.operation_type import (
    Refused,
    ServiceFailed,
    head_of,
    plain_signature,
    types_of,
)
from ordercast.core.service import Outcome, outcome_of

T = TypeVar("T")
R = TypeVar("R")
Method = TypeVar("Method", bound=Callable[..., Any])

CONTINUATION = "__ordercast_continuation__"
"""The attribute of a method that makes it a continuation."""
_encode = msgspec.msgpack.Encoder().encode


class Answer(Generic[T]):
    """What an ask came to: the value of the operation that was asked for, or why there is none."""

    __slots__ = ("_value", "error")

    def __init__(self, value: T | None, error: Refused | ServiceFailed | None = None) -> None:
        self._value = value
        self.error = error
        """What the other service refused, or how it failed; None if it gave a value."""

    def result(self) -> T:
        """The value; raises the error if there is none, which is then that of the asking operation too."""
        if self.error is not None:
            raise self.error
        return cast(T, self._value)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that an operation returns instead of a value."""

    method: Callable[..., Any]
    arguments: tuple[object, ...]
    then: str
    keep: tuple[object, ...]
    group: GroupId | None


def ask(
    method: Callable[..., Any],
    *arguments: object,
    then: Callable[..., R],
    keep: tuple[object, ...] = (),
    group: GroupId | None = None,
) -> R:
    """Ask another service for an operation, such as ``Stock.take``, with these arguments.

    To be returned by an operation or a continuation. `then` is the continuation, which gets the `Answer` and
    the values in `keep`; what it returns is the result of the operation. The group that is asked is the one
    that replicates the class of `method`; if there are several, `group` says which.
    """
    return cast(R, Ask(method, arguments, then.__name__, keep, group))


def continuation(method: Method) -> Method:
    """Mark a method of a `Service` that takes an `Answer`, and then what was kept."""
    setattr(method, CONTINUATION, True)
    return method


class ContinuationType:
    """One continuation of a service: its name, and the types of the answer and of what was kept."""

    __slots__ = ("_answer", "_kept", "head", "name", "text")

    def __init__(self, service: type[object], name: str, method: Callable[..., Any]) -> None:
        self.name = name
        where = f"{service.__name__}.{name}"
        signature = plain_signature(where, method)
        kinds, _ = types_of(where, method, signature)
        self.text = f"continuation {name}{signature}"
        """The continuation with its types, for the fingerprint of the service."""
        if not kinds or Answer not in (kinds[0], typing.get_origin(kinds[0])):
            raise LocalError(f"{where} is a continuation, so its first parameter must be an Answer")
        value = next(iter(typing.get_args(kinds[0])), Any)
        kept: Any = tuple.__class_getitem__(kinds[1:]) if kinds[1:] else tuple[()]
        try:
            self._answer = msgspec.msgpack.Decoder(value)
            self._kept = msgspec.msgpack.Decoder(kept)
        except TypeError as error:
            raise LocalError(f"{where} has a type that cannot be kept: {error}") from error
        self.head = head_of(where, name)
        """What its bytes begin with, before what was kept."""

    def pack(self, keep: tuple[object, ...]) -> bytes:
        """The continuation with what is kept for it, as bytes; `LocalError` if that does not fit."""
        try:
            packed = _encode(keep)
            self._kept.decode(packed)
        except (TypeError, msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise LocalError(f"wrong values kept for {self.name}: {error}") from error
        return self.head + packed

    def unpack(self, packed: bytes) -> tuple[Any, ...]:
        """What was kept, from its bytes without the head."""
        kept: tuple[Any, ...] = self._kept.decode(packed)
        return kept

    def answer(self, result: bytes) -> Answer[Any]:
        """The answer for the continuation."""
        outcome = outcome_of(result)
        if outcome is Outcome.ANSWERED:
            try:
                return Answer(self._answer.decode(memoryview(result)[1:]))
            except MALFORMED as error:
                return Answer(None, ServiceFailed(f"the answer does not fit {self.name}: {error}"))
        text = result[1:].decode(errors="replace")
        return Answer(None, Refused(text) if outcome is Outcome.REFUSED else ServiceFailed(text))

"""Models: what each kind of object answers if operations take effect one after the other."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from ordercast.judge.histories.operation import Operation, Value

State: TypeAlias = Hashable
"""What an object remembers between two operations. Two states are the same if they are equal."""

IMPOSSIBLE: Final = object()
"""Instead of a state: in this state, the object would have given another answer."""


class Model(Protocol):
    """An object that executes one operation at a time."""

    @property
    def name(self) -> str:
        """Its name, for people."""

    @property
    def calls(self) -> Mapping[str, int]:
        """Its operations, each with the number of its arguments."""

    @property
    def start(self) -> State:
        """The state before the first operation on a key."""

    def step(self, state: State, operation: Operation) -> State:
        """The state after the operation, or `IMPOSSIBLE`. If the outcome is unknown, every answer fits."""

    def observes(self, operation: Operation) -> bool:
        """Whether the operation, with the answer that it got, leaves every state as it is."""


@dataclass(frozen=True, slots=True)
class Register:
    """One value for each key: `read`, `write` and `cas` (compare and swap, which tells if it swapped)."""

    start: Value = None
    name: str = "register"

    @property
    def calls(self) -> Mapping[str, int]:
        """`cas` has the value that it expects and the new one."""
        return {"read": 0, "write": 1, "cas": 2}

    def step(self, state: State, operation: Operation) -> State:
        """Read, write, or compare and swap."""
        if operation.call == "write":
            return operation.arguments[0]
        return _swapped(state, operation) if operation.call == "cas" else _read(state, operation)

    def observes(self, operation: Operation) -> bool:
        """A read, or a swap that did not happen."""
        return operation.call == "read" or _refused(operation)


@dataclass(frozen=True, slots=True)
class TextStore:
    """One text for each key: `get`, `put`, `append` and `cas`. A key without a value has the empty text."""

    start: Value = ""
    name: str = "kv"

    @property
    def calls(self) -> Mapping[str, int]:
        """`cas` has the text that it expects and the new one."""
        return {"get": 0, "put": 1, "append": 1, "cas": 2}

    def step(self, state: State, operation: Operation) -> State:
        """Get, put, append, or compare and swap."""
        if operation.call == "append":
            return f"{state}{operation.arguments[0]}"
        if operation.call == "put":
            return operation.arguments[0]
        return _swapped(state, operation) if operation.call == "cas" else _read(state, operation)

    def observes(self, operation: Operation) -> bool:
        """A get, or a swap that did not happen."""
        return operation.call == "get" or _refused(operation)


@dataclass(frozen=True, slots=True)
class TextMap:
    """A text or nothing for each key: `get`, `put`, `append`, which tells the new text, and `delete`, which
    tells whether there was a text."""

    start: Value = None
    name: str = "kv"

    @property
    def calls(self) -> Mapping[str, int]:
        """The text that `put` sets, or that `append` adds."""
        return {"get": 0, "put": 1, "append": 1, "delete": 0}

    def step(self, state: State, operation: Operation) -> State:
        """Get, put, append or delete."""
        if operation.call == "put":
            return operation.arguments[0]
        if operation.call == "get":
            return _read(state, operation)
        old = "" if state is None else state
        new = None if operation.call == "delete" else f"{old}{operation.arguments[0]}"
        told = state is not None if operation.call == "delete" else new
        return new if not operation.known or operation.result == told else IMPOSSIBLE

    def observes(self, operation: Operation) -> bool:
        """A get, or a delete that found nothing."""
        return operation.call == "get" or (
            operation.call == "delete" and operation.known and operation.result is False
        )


def _read(state: State, operation: Operation) -> State:
    return state if not operation.known or operation.result == state else IMPOSSIBLE


def _swapped(state: State, operation: Operation) -> State:
    expected, new = operation.arguments
    swaps = state == expected
    if operation.known and operation.result is not swaps:
        return IMPOSSIBLE
    return new if swaps else state


def _refused(operation: Operation) -> bool:
    return operation.call == "cas" and operation.known and operation.result is False

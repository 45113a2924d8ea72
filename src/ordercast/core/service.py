"""Services: state machines that a protocol replicates.

A protocol sees a `StateMachine`: operations, results and states are bytes. Users write a `Service`
(`service_class.py`), which becomes one.

All replicas apply the same operations in the same order, so an operation must depend on nothing but the
state, its arguments and its `Context`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from random import Random
from typing import NamedTuple

from ordercast.core.errors import LocalError
from ordercast.core.ids import GroupId, Groups, MessageId, NodeId, message_sender
from ordercast.core.time import Nanos


class Outcome(IntEnum):
    """The first byte of a result."""

    ANSWERED = 0
    """The operation gave a value."""
    REFUSED = 1
    """The service refused the operation, with a reason."""
    FAILED = 2
    """The operation raised another exception, or there is no such operation."""


HELD = b""
"""In the place of a result: the operation waits, and its result comes later."""


def outcome_of(result: bytes) -> Outcome:
    """How the operation of this result ended."""
    return Outcome(result[0]) if result and result[0] <= Outcome.FAILED else Outcome.FAILED


class Context:
    """What an operation may know of the world. It is the same at all replicas."""

    __slots__ = ("_answers", "_rng", "message", "now_ns")

    def __init__(self, message: MessageId, now_ns: Nanos, answers: int = 0) -> None:
        """`answers`: how many answers of other services the operation has had, for a continuation of it."""
        self._answers = answers
        self.message = message
        """The identity of the operation."""
        self.now_ns = now_ns
        """The time by the clock of the client that called the operation, or of an earlier operation if that
        was later. So the time never runs backwards."""
        self._rng: Random | None = None

    @property
    def caller(self) -> NodeId:
        """The client that called the operation."""
        return message_sender(self.message)

    @property
    def rng(self) -> Random:
        """Random numbers for this operation."""
        if self._rng is None:
            self._rng = Random(f"{self.message}/{self._answers}" if self._answers else self.message)
        return self._rng


class Asking(NamedTuple):
    """What an operation gives if it must ask another service before it has a result (`asking.py`)."""

    operation: bytes
    """What is asked."""
    read: bool
    """Whether that changes nothing."""
    service: str
    """The fingerprint of the service that is asked."""
    group: GroupId | None
    """The group that is asked; None if the service says it."""
    token: bytes
    """What the operation needs to go on."""


class StateMachine(ABC):
    """A service on bytes. Its methods raise no exception for an operation, whatever its bytes are."""

    @abstractmethod
    def apply(self, operation: bytes, context: Context) -> bytes:
        """Run an operation, which may change the state; return its result, whose first byte is an
        `Outcome`. A shard may return `HELD`."""

    def begin(self, operation: bytes, context: Context) -> bytes | Asking:
        """Run an operation like `apply`, but let it ask another service before it has a result."""
        return self.apply(operation, context)

    def resume(self, token: bytes, result: bytes, context: Context) -> bytes | Asking:
        """Go on with an operation that had asked, when the result of the other service is there."""
        raise LocalError(f"{type(self).__name__} asks no other service")

    @abstractmethod
    def read(self, operation: bytes, context: Context) -> bytes:
        """Run an operation that is known to change nothing; any other one fails."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """The state. Equal states have equal bytes, on all machines."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Take over a state that `snapshot` gave; `LocalError` if it is not one of this service."""


class Sharding(ABC):
    """How a service is cut into shards, one for each group of a deployment."""

    @abstractmethod
    def make(self, shard: GroupId, shards: int) -> StateMachine:
        """One of so many shards."""

    @abstractmethod
    def groups(self, operation: bytes, shards: int) -> Groups:
        """The shards that an operation runs in, in their order; `LocalError` if it is none of the service."""

    @abstractmethod
    def locks(self, operation: bytes) -> bool:
        """Whether an operation locks keys until its client has the answer, and gives them up by another."""

    @abstractmethod
    def combine(self, operation: bytes, results: Sequence[bytes]) -> bytes:
        """The result of an operation from those of its shards, in their order."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service that a deployment replicates: its name, and how to make a replica of it."""

    name: str
    make: Callable[[], StateMachine]
    fingerprint: str = ""
    """What identifies the service. A snapshot of a service with another fingerprint is not restored."""
    sharding: Sharding | None = None
    """How it is cut into shards. None: each group has a whole service of its own."""
    asks: bool = False
    """Whether operations of the service may ask other services."""
    parts: tuple["ServiceSpec", ...] = ()
    """If each group has another service: these, in the order of the groups."""

    @classmethod
    def of_groups(cls, parts: "Sequence[ServiceSpec]") -> "ServiceSpec":
        """One service for each group."""
        name, text = (", ".join(part.name for part in parts), " | ".join(part.fingerprint for part in parts))
        return cls(name, parts[0].make, text, asks=any(part.asks for part in parts), parts=tuple(parts))

    @property
    def locks(self) -> Callable[[bytes], bool] | None:
        """Which operations lock keys for their client; None if none does."""
        return self.sharding.locks if self.sharding is not None else None

    def part(self, group: GroupId) -> "ServiceSpec":
        """The service of a group, if each has its own; otherwise this one."""
        return self.parts[group] if self.parts else self

    def for_group(self, group: GroupId, groups: int) -> "ServiceSpec":
        """The service as one of so many groups replicates it."""
        if self.parts:
            if len(self.parts) != groups:
                raise LocalError(f"there are {len(self.parts)} services ({self.name}) for {groups} groups")
            return self.parts[group]
        sharding = self.sharding
        return self if sharding is None else replace(self, make=lambda: sharding.make(group, groups))

    def check(self, fingerprint: str) -> None:
        """Raise `LocalError` if a snapshot with this fingerprint was taken of another service."""
        if fingerprint != self.fingerprint:
            raise LocalError(
                f"the saved state belongs to another service than {self.name}: it is of [{fingerprint}], and"
                f" this service is [{self.fingerprint}]; start the service that saved it, or remove the saved"
                " state"
            )

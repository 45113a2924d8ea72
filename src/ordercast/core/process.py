"""The contract between a protocol and the world that drives it.

A *process* is one role at one host: a sans-IO state machine. Events come in through its handlers;
effects go out through the injected `Env`, whose calls only record: none blocks, fails or re-enters the
process. A driver (the simulator, the live runtime) runs one handler at a time and carries the effects
out in the order in which they were made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ordercast.core.delivery import Delivery
from ordercast.core.errors import LocalError
from ordercast.core.explain import Explanation
from ordercast.core.ids import GroupId, Groups, MessageId, NodeId
from ordercast.core.message import Message
from ordercast.core.time import Nanos

if TYPE_CHECKING:
    from random import Random


class Env(ABC):
    """All that a process can see and do."""

    __slots__ = ("me", "now", "rng")

    me: NodeId
    now: Nanos
    """This node's own clock, never negative. It may be wrong and drift, but never runs backwards, not over
    restarts either: each life of a node starts at a later reading than the one before. It stands still
    during a handler."""
    rng: Random
    """This node's own stream of random numbers."""
    forgot: bool = False
    """Whether this node is known to have had an earlier life, whose saved state is lost. It is a new member
    with a past, and must not deliver again what the earlier life may have delivered."""

    @abstractmethod
    def send(self, to: NodeId, message: Message) -> None:
        """Send to one process. The message may be lost, duplicated, late or out of order."""

    @abstractmethod
    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Send a copy of a message to each of several processes; each copy may be lost independently."""

    @abstractmethod
    def set_timer(self, name: str, after: Nanos) -> None:
        """Call `on_timer(name)` once, `after` nanoseconds from now; re-arms a timer of that name."""

    @abstractmethod
    def cancel_timer(self, name: str) -> None:
        """Cancel a timer; do nothing if there is none of that name."""

    @abstractmethod
    def deliver(self, delivery: Delivery) -> None:
        """Hand something to the application of this node."""

    @abstractmethod
    def save(self, name: str, state: bytes | None) -> None:
        """Keep `state` under `name` over a restart (None removes it).

        It is durable before any later send or delivery takes effect, but not necessarily earlier.
        """

    def executed(self, operations: int) -> None:  # noqa: B027  (optional hook)
        """Note that so many operations of a service were executed: a simulator lets that take time."""

    def originate(self, groups: Groups, payload: bytes, *, read: bool = False) -> tuple[MessageId, Nanos]:
        """Submit an operation of this process itself, instead of one of an application: give it an identity,
        which no other message has, and say when it was submitted.

        Whoever sends it, this process delivers a `Replied` for it, or `Unconfirmed` if that may never be.
        """
        raise LocalError("this driver gives no identities to operations of replicas")


class Process(ABC):
    """One role at one host."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def on_start(self, saved: Mapping[str, bytes]) -> None:  # noqa: B027  (optional hook)
        """Called first, with all that an earlier life of this node had saved."""

    @abstractmethod
    def on_message(self, source: NodeId, message: Message) -> None:
        """A message of this protocol arrived.

        For a message that no correct peer sends, the process may raise `RemoteError` before it changes
        anything. A live driver counts the error and goes on. The simulator stops, because there it is a
        defect.
        """

    def on_timer(self, name: str) -> None:  # noqa: B027  (optional hook)
        """A timer went off."""

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:  # noqa: B027  (optional hook)
        """The nodes of the cluster are not those of its first plan any more: these are there now, with roles.

        Called after `on_start` if hosts have come to a live cluster or were removed from it before this life,
        and at each such change from then on. A node that is missing here was removed, and its id is never
        used again.
        """

    @abstractmethod
    def explain(self) -> Explanation:
        """What waits here, and for what."""


class Member(Process):
    """A process that an application talks to."""

    @abstractmethod
    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Take a message for these groups; False when the window is full: try again later."""

    @property
    def in_doubt(self) -> int:
        """How many messages it has taken that would be lost if its host stopped now, as far as it knows."""
        return 0


class Caller(Member):
    """A client of a replicated service. What an application submits are operations, and the process delivers
    `Replied` for each bundle of them."""

    @abstractmethod
    def read(self, groups: Groups, payload: bytes) -> bool:
        """Take operations that change nothing; False when the window is full: try again later."""


class Receiver(Process):
    """A process that can join and leave groups while it runs; it need not be a sender.

    A driver calls `join` only for a group of the plan that the process is not in, and `leave` only for one
    that it is in, each once until it takes effect. The process says when that is: it delivers `Joined` or
    `Left`. If its host crashes before, the request is forgotten. What took effect must survive a restart with
    saved state.
    """

    @property
    @abstractmethod
    def joined(self) -> Collection[GroupId]:
        """The groups that it is in now."""

    @abstractmethod
    def join(self, group: GroupId) -> None:
        """Ask to receive a group."""

    @abstractmethod
    def leave(self, group: GroupId) -> None:
        """Ask to receive a group no longer."""


class Stateful(Process):
    """A process that brings the state of applications to newcomers.

    It delivers `StateWanted` where a state is needed, and the application answers each once.
    """

    @abstractmethod
    def give_state(self, group: GroupId, config: int, data: bytes) -> None:
        """The state of the application where it was told `StateWanted` for this group and configuration."""

"""What a recorder does: it takes the events at the nodes of a live host, in their order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ordercast.core import (
    Carrier,
    GroupId,
    Groups,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Replied,
    StateWanted,
)
from ordercast.core.bundle import Bundle
from ordercast.kernel.memberships import Request


class Recorder(ABC):
    """Takes the events at the nodes of a host, in their order."""

    def __init__(self) -> None:
        self.on_failure: Callable[[], None] = lambda: None
        """A function that is called once, when nothing can be recorded any more."""

    @abstractmethod
    def begin(self, started_ns: Nanos, saved: bool, past: bool = False, commits: int | None = None) -> None:
        """A life of the host begins at this reading of its clock, with saved state or without.

        It may have a past that it does not remember. If it remembers, its state has so many `commits` of
        earlier lives.
        """

    @abstractmethod
    def submitted(
        self,
        node: NodeId,
        groups: Groups,
        first: MessageId,
        times: Sequence[Nanos],
        payloads: Sequence[bytes],
        *,
        read: bool = False,
    ) -> None:
        """An application submitted messages with consecutive identities to a sender, at these times.

        `read`: they are reads of a service.
        """

    @abstractmethod
    def delivered(self, now: Nanos, node: NodeId, delivery: Carrier, bundle: Bundle) -> None:
        """A receiver delivered a bundle to its application."""

    @abstractmethod
    def replied(self, now: Nanos, node: NodeId, replied: Replied, bundle: Bundle) -> None:
        """A client was answered with a bundle of results."""

    @abstractmethod
    def unreadable(self, now: Nanos, node: NodeId, delivery: Carrier, reason: str) -> None:
        """A receiver delivered a payload that is not a bundle."""

    @abstractmethod
    def noticed(self, now: Nanos, node: NodeId, notice: Notice) -> None:
        """A receiver delivered a notice to its application."""

    @abstractmethod
    def requested(self, now: Nanos, node: NodeId, request: Request, group: GroupId) -> None:
        """The application of a receiver asked to join or to leave a group."""

    @abstractmethod
    def gave_state(self, now: Nanos, node: NodeId, wanted: StateWanted, data: bytes, label: str) -> None:
        """The application of a receiver gave the state that it was asked for."""

    @abstractmethod
    def completed(self, now: Nanos, node: NodeId, message: MessageId, submitted: Nanos) -> None:
        """A client has the answers of all receivers."""

    @abstractmethod
    def crashed(self, now: Nanos, node: NodeId) -> None:
        """One node of the host stopped. If the whole host dies, the next life detects that."""

    @abstractmethod
    def recovered(self, now: Nanos, node: NodeId, saved: bool) -> None:
        """A node that had crashed in this life came back."""

    @abstractmethod
    def flush(self, commit: int = 0) -> None:
        """Write the buffer to the kernel; with a commit, it counts only if the store makes that commit."""

    @abstractmethod
    def take_back(self) -> None:
        """Remove what the last `flush` wrote: it did not take place."""

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """The host stops: in good order, or because it has failed, which counts as a crash."""

"""What a replica of several groups needs of the network beyond what one of a single group does."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from ordercast.components.network_ordered import LogEntry, NetworkOrdering, OrderingOwner
from ordercast.components.network_ordered.place import Slot
from ordercast.core import NodeId


class ShardOwner(OrderingOwner, Protocol):
    """The replica, as its ordering sees it."""

    @property
    def coordinators(self) -> tuple[NodeId, ...]:
        """The replicas of the failure coordinator."""

    @property
    def aside(self) -> Mapping[Slot, LogEntry]:
        """The entries that must not be taken before the coordinator has decided on them."""

    @property
    def has_promised(self) -> bool:
        """Whether there is any message that it must not take."""

    @property
    def taken(self) -> Iterable[LogEntry]:
        """The entries that it has taken and other groups may lack, among others."""

    def withhold(self, entry: LogEntry) -> bool:
        """Put an entry aside if it must not be taken; whether that is so."""


class ShardOrdering(NetworkOrdering):
    """The order of calls at one replica of several groups. It asks its owner about each entry that comes."""

    @abstractmethod
    def sift(self) -> None:
        """Take out what must not be taken: the owner has promised more, or the order went back."""

    @abstractmethod
    def believe(self, slot: Slot) -> None:
        """The entry in a slot counts after all, and may be offered."""

    @abstractmethod
    def is_void(self, entry: LogEntry) -> bool:
        """Whether an entry never counts, because its sequencer was removed before all of its numbers."""

    @abstractmethod
    def bound(self, slot: Slot) -> int | None:
        """A clock that is not below that of the message in a slot; None if none is known yet."""

    @abstractmethod
    def waiting(self) -> Iterable[LogEntry]:
        """The entries that have come and were not handed over yet."""

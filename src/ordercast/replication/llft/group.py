"""What messaging asks and tells the process group of its node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.messages import NewPrimaryView
from ordercast.replication.llft.names import Party, ViewId
from ordercast.replication.llft.orders import Slice


class Group(ABC):
    """What messaging asks of the process group of its node."""

    view: ViewId

    @property
    @abstractmethod
    def leads(self) -> bool:
        """Whether this member is the primary, and speaks for the group."""

    @property
    @abstractmethod
    def recovers(self) -> bool:
        """Whether it will be, and already answers other groups that recover."""

    @property
    @abstractmethod
    def alone(self) -> bool:
        """Whether the primary has no backups."""

    @abstractmethod
    def orders(self) -> Slice | None:
        """Ordering information that goes with every message: all that is not known to be safe."""

    @abstractmethod
    def on_orders(self, part: Slice) -> None:
        """A remote group hands back ordering information of this group."""

    @abstractmethod
    def catch_up(self) -> None:
        """Perform what can be performed by now."""

    @abstractmethod
    def on_lineage(self, message: NewPrimaryView) -> None:
        """A remote group tells of its views."""

    @abstractmethod
    def on_outdated(self, party: Party) -> None:
        """A remote group does not know the view of this group yet."""

    @abstractmethod
    def on_room(self, connection: Connection) -> None:
        """The remote group has taken messages of a connection."""

    @abstractmethod
    def on_reset(self, connection: Connection) -> None:
        """The other end of a connection is gone."""

    @abstractmethod
    def slow_down(self) -> None:
        """The backups seem to be behind."""

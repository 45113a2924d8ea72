"""Changes of members as data: each says when a receiver asks to join or to leave a group."""

from typing import Annotated, ClassVar, Protocol, TypeAlias

import msgspec

from ordercast.core import MILLISECOND, GroupId, Nanos, NodeId
from ordercast.scenario.faults import Milliseconds

Number = Annotated[int, msgspec.Meta(ge=0)]


class ChangeTarget(Protocol):
    """The receivers of a run, simulated or real."""

    def join(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to join a group; do nothing if its host is down or it cannot."""

    def leave(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to leave a group; do nothing if its host is down or it cannot."""


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    key: ClassVar[str]
    """The name of the list in a scenario."""

    at_ms: Milliseconds
    node: Number
    """A receiver: a member of a group at the start, or one of the `joiners`."""
    group: Number = 0

    @property
    def at_ns(self) -> Nanos:
        """When the receiver asks."""
        return round(self.at_ms * MILLISECOND)


class Join(_Change, frozen=True):
    """A receiver asks to join a group."""

    key: ClassVar[str] = "join"

    def strike(self, target: ChangeTarget) -> None:
        """Let it ask."""
        target.join(self.node, self.group)


class Leave(_Change, frozen=True):
    """A receiver asks to leave a group."""

    key: ClassVar[str] = "leave"

    def strike(self, target: ChangeTarget) -> None:
        """Let it ask."""
        target.leave(self.node, self.group)


ChangeSpec: TypeAlias = Join | Leave

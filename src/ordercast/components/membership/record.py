"""A view as members agree on it: who sits in it, who votes on the next one, and where the view before ends.

A *seat* is a member in one of its incarnations. A member that crashed, or was excluded, comes back with a
higher incarnation and gets a new seat. So two views with the same members may differ: who sits anew has
nothing of the view before.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ordercast.core import GroupId, Groups, NodeId
from ordercast.core.ids import NODE_MAX

MEMBERS_MAX = 4096
GROUPS_MAX = 4096

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Node: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NODE_MAX)]
Nodes: TypeAlias = Annotated[tuple[Node, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
Counts: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
"""A number for each seat of a view, in the order of the seats."""
Received: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(max_length=GROUPS_MAX)]
"""The groups that a member receives, ascending; none if it only sends."""


class Seat(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A member in one of its incarnations, and the first view in which it sits."""

    node: Node
    incarnation: Natural
    since: Natural


class ViewRecord(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A view: its number, its seats by ascending nodes, its voters, and the end of the view before."""

    number: Natural
    seats: Annotated[tuple[Seat, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
    voters: Nodes
    """A majority of them decides on the next view: the members that receive a group, and those that received
    one when they were excluded."""
    cut: Counts = ()
    """How many messages of each seat of the view before were delivered in that view."""
    groups: Annotated[tuple[Received, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    """The groups that each seat receives, in the order of the seats."""

    @property
    def members(self) -> tuple[NodeId, ...]:
        """The nodes that sit in the view, ascending."""
        return tuple(seat.node for seat in self.seats)

    @property
    def peers(self) -> tuple[NodeId, ...]:
        """The members and the voters, ascending."""
        return tuple(sorted({*self.members, *self.voters}))

    @property
    def newcomers(self) -> tuple[NodeId, ...]:
        """The members that sit anew: they have nothing of the view before."""
        return tuple(seat.node for seat in self.seats if seat.since == self.number)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    def seat_of(self, node: NodeId) -> Seat | None:
        """The seat of a node; None if it has none."""
        return next((seat for seat in self.seats if seat.node == node), None)

    def groups_of(self, node: NodeId) -> Groups | None:
        """The groups that a member receives; None if it has no seat."""
        pairs = zip(self.seats, self.groups, strict=True)
        return next((groups for seat, groups in pairs if seat.node == node), None)


class InstalledView(NamedTuple):
    """A view as the owner of the component sees it."""

    number: int
    members: tuple[NodeId, ...]
    newcomers: tuple[NodeId, ...] = ()
    """The members that were not in the view before, or came back as new ones: they start from its state."""
    voters: tuple[NodeId, ...] = ()
    """A majority of them decides on the next view; every majority has a member of this one."""
    groups: tuple[Groups, ...] = ()
    """The groups that each member receives."""

    def receivers(self, group: GroupId) -> tuple[NodeId, ...]:
        """The members that receive a group."""
        pairs = zip(self.members, self.groups, strict=True)
        return tuple(node for node, groups in pairs if group in groups)

    def groups_of(self, node: NodeId) -> Groups:
        """The groups that a node receives; none if it is no member."""
        return self.groups[self.members.index(node)] if node in self.members else ()


def first_view(founders: Mapping[NodeId, Groups]) -> ViewRecord:
    """The view in which a group begins; its members do not have to agree on it."""
    nodes = sorted(founders)
    seats = tuple(Seat(node, 0, 0) for node in nodes)
    voters = tuple(node for node in nodes if founders[node])
    return ViewRecord(1, seats, voters, groups=tuple(tuple(sorted(founders[node])) for node in nodes))

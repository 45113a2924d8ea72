"""A view as members agree on it: who sits in it, who votes on the next one, and where the view before ends.

A *seat* is a member in one of its incarnations. A member that crashed, or was excluded, comes back with a
higher incarnation and gets a new seat. So two views with the same members may differ: who sits anew has
nothing of the view before.
"""

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ordercast.core import NodeId
from ordercast.core.ids import NODE_MAX

MEMBERS_MAX = 4096

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Node: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NODE_MAX)]
Nodes: TypeAlias = Annotated[tuple[Node, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
Counts: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
"""A number for each seat of a view, in the order of the seats."""


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
    """A majority of them decides on the next view. A member that is excluded remains a voter; one that leaves
    does not."""
    cut: Counts = ()
    """How many messages of each seat of the view before were delivered in that view."""

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


class InstalledView(NamedTuple):
    """A view as the owner of the component sees it."""

    number: int
    members: tuple[NodeId, ...]
    newcomers: tuple[NodeId, ...] = ()
    """The members that were not in the view before, or came back as new ones: they start from its state."""
    voters: tuple[NodeId, ...] = ()
    """A majority of them decides on the next view; every majority has a member of this one."""


def first_view(founders: tuple[NodeId, ...], voters: tuple[NodeId, ...]) -> ViewRecord:
    """The view in which a group begins; its members do not have to agree on it."""
    return ViewRecord(1, tuple(Seat(node, 0, 0) for node in founders), voters)

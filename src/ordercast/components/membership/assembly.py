"""The nodes of a plan whose receivers and senders form one view.

Every receiver is a member of the view, and so is every sender; co-located, a receiver is the sender itself. A
receiver that is in no group at the start (a joiner) sits from the start only if it sends.
"""

from dataclasses import dataclass

from ordercast.components.membership.seating import Seating
from ordercast.core import Deployment, Extension, GroupId, Groups, LocalError, NewNode, Node, NodeId
from ordercast.core.plan import Factory

MEMBER, SENDER = ROLES = ("member", "sender")


@dataclass(frozen=True, slots=True)
class Assembly:
    """Who is in which group, who sends, and who sits."""

    groups: dict[GroupId, tuple[NodeId, ...]]
    senders: tuple[NodeId, ...]
    first: tuple[NodeId, ...]
    """The nodes of the first plan."""
    roles: tuple[str, ...]
    """The role of each node, with those that came later."""
    seating: Seating

    def nodes(self, make: Factory) -> tuple[Node, ...]:
        """The nodes of the plan, each on a host of its own."""
        return tuple(Node(node, role, node, make) for node, role in enumerate(self.roles))


def assemble(deployment: Deployment, extension: Extension) -> Assembly:
    """The nodes of a deployment, with those that came later and without those that were removed."""
    receivers = deployment.receivers
    count = receivers if deployment.colocated else receivers + deployment.senders
    senders = range(min(deployment.senders, receivers)) if deployment.colocated else range(receivers, count)
    planned = dict(enumerate(deployment.groups))
    later = dict(extension.nodes(count))
    sending = [node for node, new in later.items() if deployment.colocated or new.role == SENDER]
    seating = Seating(
        {
            node: received
            for node in range(count)
            if (received := _received(planned, node)) or node in senders
        },
        {node: new.groups for node, new in later.items()},
        extension.removed,
        frozenset(range(count)),
    )
    return Assembly(
        extension.members(planned, count),
        extension.left((*senders, *sending)),
        tuple(range(count)),
        (*_roles(receivers, count), *map(_role_of, later.values())),
        seating,
    )


def _received(groups: dict[GroupId, tuple[NodeId, ...]], node: NodeId) -> Groups:
    return tuple(group for group, members in groups.items() if node in members)


def _roles(receivers: int, count: int) -> tuple[str, ...]:
    return tuple(MEMBER if node < receivers else SENDER for node in range(count))


def _role_of(new: NewNode) -> str:
    """The role of a node that came later, if it fits its groups."""
    if new.role == MEMBER and not new.groups:
        raise LocalError("a new member needs a group that it receives; a sender only sends")
    if new.role == SENDER and new.groups:
        raise LocalError("a new sender only sends; a member receives groups")
    return new.role

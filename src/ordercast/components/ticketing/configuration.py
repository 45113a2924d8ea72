"""The configuration: a view, and the role of each of its members (section 5).

All members go through the same configurations: they change at places of the total order, and with views.
"""

import msgspec

from ordercast.components.ticketing.messages import Sequencer
from ordercast.core import NodeId


class Configuration(msgspec.Struct):
    """Who is in the view, who is active, and the number of each role."""

    view: int = 0
    members: tuple[NodeId, ...] = ()
    actives: tuple[NodeId, ...] = ()
    numbers: dict[NodeId, int] = msgspec.field(default_factory=dict)
    """How often each node changed its role. It also counts for nodes that left, so that no descriptor
    returns."""

    def sequencer(self, node: NodeId) -> Sequencer:
        """The descriptor of a node, as it is now."""
        return Sequencer(node, self.numbers.get(node, 0))

    def offers(self, sequencer: Sequencer | None) -> bool:
        """Whether a descriptor is that of an active member."""
        return sequencer is not None and (
            sequencer.node in self.actives and sequencer == self.sequencer(sequencer.node)
        )

    def switch(self, node: NodeId, active: bool) -> bool:
        """Change a role; False if that changes nothing, or if the last active member would be passive."""
        if active == (node in self.actives) or (not active and len(self.actives) == 1):
            return False
        kept = {other for other in self.actives if other != node} | ({node} if active else set())
        self.actives = tuple(sorted(kept))
        self._count(node)
        return True

    def enter(
        self,
        view: int,
        members: tuple[NodeId, ...],
        newcomers: tuple[NodeId, ...],
        begin_active: frozenset[NodeId] | None,
    ) -> None:
        """Install a view. If nobody is active, the member with the highest number stands in.

        `begin_active` has the nodes that are active when they come in; None if all are. When one of them
        comes in, a member that stood in for it steps down.
        """
        stayed = {node for node in self.actives if node in members and node not in newcomers}
        entered = {node for node in newcomers if begin_active is None or node in begin_active}
        relieved = stayed - begin_active if begin_active is not None and entered else frozenset[NodeId]()
        self.view, self.members = view, members
        self.actives = tuple(sorted((stayed - relieved) | entered))
        for node in sorted(relieved.union(newcomers)):
            self._count(node)
        if members and not self.actives:
            self.switch(max(members), active=True)

    def _count(self, node: NodeId) -> None:
        self.numbers[node] = self.numbers.get(node, 0) + 1

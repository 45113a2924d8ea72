"""Total order within each group.

For each group g, let a < b if some receiver of g delivered a before b, both addressed to g. The
relation has no cycle. This is *partial ordering* of Hydra section 4.1 for one group, and *strong*
total order of Defago et al.: it covers receivers that missed messages or crashed, since a receiver
that delivered only one of two messages says nothing of their order. Pairs of receivers are not
enough: three receivers that each miss a message can be in a cycle that no two of them show.

Deliveries tagged as out of order are not part of the order.
"""

from ordercast.core import GroupId, Groups, NodeId
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.relation import Line, Relation, report_cycle
from ordercast.trace import ENTERING, LEAVING, LOST, ORDERED, Event, Kind


class TotalOrder(Oracle):
    """The deliveries within each group have no cycle."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._case = case
        self._relations: dict[GroupId, Relation] = {}
        self._lines: dict[NodeId, dict[GroupId, Line]] = {n.id: {} for n in case.description.nodes}
        for group, members in case.description.groups.items():
            relation = self._relations[group] = Relation()
            for node in members:
                self._lines[node][group] = relation.line(node)
        self._routes: dict[NodeId, dict[Groups, list[tuple[Relation, Line]]]] = {
            node.id: {} for node in case.description.nodes
        }
        self._left: dict[tuple[NodeId, GroupId], Line] = {}
        """The lines of receivers that have left; if they join again, they go on with them."""

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries in order, joins and leaves, and recoveries without state, which make a new receiver."""
        return {
            **dict.fromkeys(ORDERED, self._on_deliver),
            **dict.fromkeys(ENTERING, self._on_joined),
            **dict.fromkeys(LEAVING, self._on_left),
            Kind.RECOVER: self._on_recover,
        }

    def _on_deliver(self, event: Event) -> None:
        broken = False
        groups: Groups = event.groups  # type: ignore[assignment]  # integrity saw to it
        routes = self._routes[event.node].get(groups)
        if routes is None:
            lines = self._lines[event.node]
            routes = [(self._relations[g], lines[g]) for g in groups if g in lines]
            self._routes[event.node][groups] = routes
        for relation, line in routes:
            cycle = relation.deliver(line, event.message, event.time_ns)  # type: ignore[arg-type]
            if cycle is not None and not broken:
                broken = self._case.disordered = True
                report_cycle(self, cycle)
                if self.full:
                    for known in self._relations.values():
                        known.counting = True

    def _on_joined(self, event: Event) -> None:
        lines = self._lines[event.node]
        for group in event.groups or ():
            if group not in lines:
                known = self._left.pop((event.node, group), None)
                lines[group] = known or self._relations[group].line(event.node)
                self._routes[event.node].clear()

    def _on_left(self, event: Event) -> None:
        for group in event.groups or ():
            line = self._lines[event.node].pop(group, None)
            if line is not None:
                self._left[event.node, group] = line
                self._routes[event.node].clear()

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._begin_again(event.node)

    def _begin_again(self, node: NodeId) -> None:
        """Put a node that has lost its state into the groups that it was in at the start."""
        lines = self._lines[node]
        for group, relation in self._relations.items():
            line = self._left.pop((node, group), None) or lines.pop(group, None)
            if line is not None:
                line.clear()
            if node in self.description.groups[group]:
                lines[group] = line or relation.line(node)
        self._routes[node].clear()

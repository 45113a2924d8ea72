"""Order of pairs: who receives the same two groups delivers the messages of both in one common order.

For each two groups, let a < b if some receiver delivered a before b while it was in both, each addressed to
one of the two. The relation has no cycle. This is what sequencing atoms promise for overlapping groups: only
those who are in the same two groups can see two orders. Three receivers of the same two groups may be in a
cycle that no two of them show, if each missed a message. Acyclic order promises more: here, three receivers
of which each two have one group in common may deliver in a circle.

A cycle within one group is a finding of `total_order`. If there is one, it is not clear which of the
contradicting deliveries are right. So the findings are withdrawn then, as those of `acyclic_order` are.
"""

from ordercast.core import GroupId, Groups, NodeId
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.relation import Line, Relation, report_cycle
from ordercast.trace import CHANGING, LOST, ORDERED, Event, Kind

Pair = tuple[GroupId, GroupId]
Route = tuple[Relation, Line]


class PairOrder(Oracle):
    """The deliveries of each two groups at those who are in both have no cycle."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._case = case
        self._relations: dict[Pair, Relation] = {}
        """Of all pairs of groups that have had a common receiver."""
        self._lines: dict[NodeId, dict[Pair, Line]] = {node.id: {} for node in case.description.nodes}
        """A receiver that leaves a group and joins it again goes on with its lines."""
        self._routes: dict[NodeId, dict[Groups, list[Route]]] = {
            node.id: {} for node in case.description.nodes
        }

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries in order, joins and leaves, and recoveries without state, which make a new receiver."""
        return {
            **dict.fromkeys(ORDERED, self._on_deliver),
            **dict.fromkeys(CHANGING, self._on_change),
            Kind.RECOVER: self._on_recover,
        }

    def _on_deliver(self, event: Event) -> None:
        if self._case.disordered:
            self.violations.clear()
            self.suppressed = 0
            return
        groups: Groups = event.groups  # type: ignore[assignment]  # integrity saw to it
        routes = self._routes[event.node].get(groups)
        if routes is None:
            routes = self._routes[event.node][groups] = self._find_routes(event.node, groups)
        broken = False
        for relation, line in routes:
            cycle = relation.deliver(line, event.message, event.time_ns)  # type: ignore[arg-type]
            if cycle is not None and not broken:
                broken = True
                report_cycle(self, cycle)
                for known in self._relations.values():
                    known.counting = self.full

    def _find_routes(self, node: NodeId, groups: Groups) -> list[Route]:
        """The relations that a node's deliveries to these groups belong to, with its lines there."""
        mine = [group for group in self.description.groups if self._case.members.is_in(node, group)]
        pairs = {
            (min(one, other), max(one, other))
            for one in groups
            if one in mine
            for other in mine
            if other != one
        }
        return [self._route(node, pair) for pair in sorted(pairs)]

    def _route(self, node: NodeId, pair: Pair) -> Route:
        relation = self._relations.get(pair)
        if relation is None:
            relation = self._relations[pair] = Relation()
            relation.counting = self.full
        line = self._lines[node].get(pair)
        if line is None:
            line = self._lines[node][pair] = relation.line(node)
        return relation, line

    def _on_change(self, event: Event) -> None:
        self._routes[event.node].clear()

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._routes[event.node].clear()
            for line in self._lines[event.node].values():
                line.clear()

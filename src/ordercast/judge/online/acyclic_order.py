"""Acyclic order across groups.

Let a < b if some receiver delivered a before b, whatever their groups. The relation has no cycle.
This is *partial ordering* of Hydra section 4.1 (all messages with overlapping destinations are
comparable, and the order is one for all receivers), *acyclic order* of genuine atomic multicast
(Guerraoui and Schiper), and what sequencing atoms promise for overlapping groups. Total order in
each group does not imply it: with a to groups 1 and 2, b to 2 and 3, c to 3 and 1, each group may
be in order and all three not.

A cycle within one group is a finding of `total_order`. If there is one, it is not clear which of the
contradicting deliveries are right. So a run is judged by this property only if each group alone is in order.
If a group turns out not to be in order, the findings so far are withdrawn.
"""

from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.relation import Relation, report_cycle
from ordercast.trace import LOST, ORDERED, Event, Kind


class AcyclicOrder(Oracle):
    """The deliveries of all groups together have no cycle."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._case = case
        self._relation = Relation()
        self._lines = {node.id: self._relation.line(node.id) for node in case.description.nodes}

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries in order, and recoveries without state, which make a new receiver."""
        return {**dict.fromkeys(ORDERED, self._on_deliver), Kind.RECOVER: self._on_recover}

    def _on_deliver(self, event: Event) -> None:
        if self._case.disordered:
            self.violations.clear()
            self.suppressed = 0
            return
        line = self._lines[event.node]
        cycle = self._relation.deliver(line, event.message, event.time_ns)  # type: ignore[arg-type]
        if cycle is not None:
            report_cycle(self, cycle)
            self._relation.counting = self.full

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._lines[event.node].clear()

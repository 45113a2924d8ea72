"""Locks: at the end of a complete run, no shard holds locks for a transaction any more.

Each replica that is up says from where to where its shard held locks. One that recovers without its state,
or takes over a state, begins anew: its locks are those of the state.
"""

from ordercast.core import GroupId, NodeId, format_ns, message_name
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.lock_spans import LockSpans
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.population import Population
from ordercast.trace import LOST, RESTORED, Event, Kind


class LocksLeft(Oracle):
    """Nothing is locked at the end."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._population = Population()
        self._spans: dict[NodeId, dict[GroupId, LockSpans]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Locks, and what makes a replica begin anew."""
        return {
            **dict.fromkeys((Kind.LOCKED, Kind.RELEASED), self._on_lock),
            Kind.CHECKPOINT: self._on_checkpoint,
            Kind.CRASH: self._population.on_crash,
            Kind.RECOVER: self._on_recover,
        }

    def _on_lock(self, event: Event) -> None:
        mine = self._spans.setdefault(event.node, {})
        for group in event.groups or ():
            mine.setdefault(group, LockSpans()).handlers()[event.kind](event)

    def _on_checkpoint(self, event: Event) -> None:
        if event.label == RESTORED:
            for group in event.groups or ():
                self._spans.get(event.node, {}).pop(group, None)

    def _on_recover(self, event: Event) -> None:
        self._population.on_recover(event)
        if event.label == LOST:
            self._spans.pop(event.node, None)

    def finish(self) -> None:
        """Look for what was never released."""
        for node, groups in self._spans.items():
            for group, spans in groups.items() if node not in self._population.down else ():
                for message in spans.messages():
                    self._judge(node, group, spans.open_since(message))

    def _judge(self, node: NodeId, group: GroupId, row: Event | None) -> None:
        if row is not None and row.message is not None:
            self.report(
                (node,),
                (row.message,),
                (row.time_ns,),
                f"node {node} holds locks of shard {group} for {message_name(row.message)} since"
                f" {format_ns(row.time_ns)}; they were never released",
                at_end=True,
            )

"""Replica state: replicas of a service that are at the same place have the same state.

A checkpoint has the size and the digest of a state, after all operations up to a place. Checkpoints of a
group at an equal place are equal, whichever replica and whichever life of it they are from. A replica that
took over the state of a place delivers nothing up to this place any more: the state stands for it.
"""

from ordercast.core import GroupId, NodeId, format_ns
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.restored import Restored
from ordercast.trace import LOST, ORDERED, Event, Kind


class ReplicaState(Oracle):
    """Equal place, equal state."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._known: dict[tuple[GroupId, int, int], Event] = {}
        """The first checkpoint at each place."""
        self._restored: dict[NodeId, Restored] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Checkpoints, deliveries, and recoveries without the state."""
        return {
            Kind.CHECKPOINT: self._on_checkpoint,
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.RECOVER: self._on_recover,
        }

    def _on_checkpoint(self, event: Event) -> None:
        self._restored.setdefault(event.node, Restored()).on_checkpoint(event)
        if event.stamp_clock is None or event.stamp_issuer is None or event.digest is None:
            return
        for group in event.groups or ():
            first = self._known.setdefault((group, event.stamp_clock, event.stamp_issuer), event)
            if (first.size, first.digest) != (event.size, event.digest):
                self._tell(group, first, event)

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._restored.pop(event.node, None)

    def _on_deliver(self, event: Event) -> None:
        restored = self._restored.get(event.node)
        if restored is not None and restored.covers(event.node, event):
            self.report(
                (event.node,),
                () if event.message is None else (event.message,),
                (event.time_ns,),
                f"node {event.node} delivered {message_at(event.message or 0, event.time_ns)}, for which a"
                " state stands that it had taken over before",
            )

    def _tell(self, group: GroupId, first: Event, event: Event) -> None:
        place = (event.stamp_clock, event.stamp_issuer)
        self.report(
            (first.node, event.node),
            (),
            (first.time_ns, event.time_ns),
            f"at the place {place} of group {group}, node {first.node} had a state of {first.size} bytes with"
            f" digest {first.digest} at {format_ns(first.time_ns)}, and node {event.node} one of {event.size}"
            f" bytes with digest {event.digest} at {format_ns(event.time_ns)}",
        )

"""Joining: a node that asks to join or to leave a group is told that it has.

A crash of its host ends a request: its application has to ask again. Judged at the end of a complete run that
is judged for liveness.
"""

from ordercast.core import GroupId, NodeId, format_ns
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CHANGING, ENTERING, REQUESTS, Event, Kind


class Requests(Oracle):
    """Every request to join or to leave takes effect."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._waiting: dict[tuple[NodeId, GroupId], Event] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Requests, what became of them, and crashes."""
        return {
            **dict.fromkeys(REQUESTS, self._on_request),
            **dict.fromkeys(CHANGING, self._on_effect),
            Kind.CRASH: self._on_crash,
        }

    def _on_request(self, event: Event) -> None:
        for group in event.groups or ():
            self._waiting[event.node, group] = event

    def _on_effect(self, event: Event) -> None:
        wanted = Kind.JOIN if event.kind in ENTERING else Kind.LEAVE
        for group in event.groups or ():
            asked = self._waiting.get((event.node, group))
            if asked is not None and asked.kind is wanted:
                del self._waiting[event.node, group]

    def _on_crash(self, event: Event) -> None:
        for node, group in [key for key in self._waiting if key[0] == event.node]:
            del self._waiting[node, group]

    def finish(self) -> None:
        """Report the requests that never took effect."""
        for (node, group), event in self._waiting.items():
            detail = (
                f"node {node} asked at {format_ns(event.time_ns)} to {event.kind} group {group}, and did not"
                " crash afterwards, but this never took effect"
            )
            self.report((node,), (), (event.time_ns,), detail, at_end=True)

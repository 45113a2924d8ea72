"""Lifecycle: a crashed node does nothing until it recovers.

Between a node's crash and its recovery, it has no row of any other kind: no submission, delivery or answer,
and no packet that it sends, loses or receives (a lost packet is a row of its sender). A node crashes only
when it is up and recovers only when it is down (the crash-recovery model of Defago et al., section 2). A
trace that breaks this was not written by a driver that runs one life of a node at a time.
"""

from ordercast.core import Nanos, NodeId, format_ns, message_name
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import Event, Kind


class Lifecycle(Oracle):
    """A node does nothing while it is down."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._down: dict[NodeId, Nanos] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """All kinds of rows."""
        actions: dict[Kind, Handler] = dict.fromkeys(Kind, self._on_action)
        return {**actions, Kind.CRASH: self._on_crash, Kind.RECOVER: self._on_recover}

    def _on_action(self, event: Event) -> None:
        if event.node in self._down:
            what = "" if event.message is None else f" {message_name(event.message)}"
            self._tell(event, f"has a row {event.kind}{what} while it is down")

    def _on_crash(self, event: Event) -> None:
        if event.node in self._down:
            self._tell(event, "crashes while it is down")
        self._down[event.node] = event.time_ns

    def _on_recover(self, event: Event) -> None:
        if event.node not in self._down:
            self._tell(event, "recovers without a crash")
        self._down.pop(event.node, None)

    def _tell(self, event: Event, what: str) -> None:
        crash_ns = self._down.get(event.node)
        since = "" if crash_ns is None else f", since {format_ns(crash_ns)}"
        self.report(
            (event.node,),
            () if event.message is None else (event.message,),
            (event.time_ns,) if crash_ns is None else (crash_ns, event.time_ns),
            f"node {event.node} {what}{since}, at {format_ns(event.time_ns)}",
        )

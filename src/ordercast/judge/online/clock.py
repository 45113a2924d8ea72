"""Clocks: a node's clock never runs backwards, not even over restarts; nor does the time of its rows.

This is the contract of `Env.now` (`core/process.py`). Hydra needs it for its sequencers (section 4.3.1),
other protocols for their timestamps. Packet rows are ignored: they are many, and the rows around them show
the same.
"""

from ordercast.core import Nanos, NodeId, format_ns
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import PACKETS, Event, Kind


class Clocks(Oracle):
    """The clock and the time of a node's rows never decrease."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._last: dict[NodeId, tuple[Nanos, Nanos]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """All kinds of rows, except packet rows."""
        return {kind: self._on_event for kind in Kind if kind not in PACKETS}

    def _on_event(self, event: Event) -> None:
        now = event[:2]
        last = self._last.get(event.node, now)
        if now[0] < last[0]:
            self._tell(event, "time", last[0], now[0])
        if now[1] < last[1]:
            self._tell(event, "clock", last[1], now[1])
        self._last[event.node] = now

    def _tell(self, event: Event, what: str, before: Nanos, after: Nanos) -> None:
        self.report(
            (event.node,),
            () if event.message is None else (event.message,),
            (before, after),
            f"the {what} of node {event.node} ran back from {format_ns(before)} to"
            f" {format_ns(after)} ({format_ns(before - after)}) at its event {event.kind}",
        )

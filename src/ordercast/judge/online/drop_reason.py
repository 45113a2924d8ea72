"""Reasons of drops: a drop notification is about a packet that was sent and had not come.

The simulator knows what became of each numbered packet, and says so in the label of the notification's row
(`ordercast.trace.Fate`). A receiver that calls a packet dropped which it had received, or which nobody sent,
breaks the promise: it would keep all other promises by calling everything dropped. Rows without such a label
are not judged.
"""

from ordercast.core import format_ns
from ordercast.judge.online.case import Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import SETTLING, UNFOUNDED, Event, Fate, Kind

WHY = {Fate.RECEIVED: "which it had received", Fate.UNSENT: "which nobody had sent"}


class DropReasons(Oracle):
    """Each drop notification has a reason."""

    def handlers(self) -> dict[Kind, Handler]:
        """Drop notifications."""
        return dict.fromkeys(SETTLING, self._on_drop)

    def _on_drop(self, event: Event) -> None:
        if event.label in UNFOUNDED:
            ((group, number),) = event.slots()
            slot = f"number {number} of issuer {event.stamp_issuer} in group {group}"
            self.report(
                (event.node,),
                (),
                (event.time_ns,),
                f"node {event.node} was notified at {format_ns(event.time_ns)} of the drop of {slot},"
                f" {WHY[Fate(event.label)]}",
            )

"""Digests: every submission and every delivery of a message has one.

Without the digest of a message's bytes, nobody can tell whether the message arrived unchanged: integrity
compares digests only where both rows have one.
"""

from ordercast.core import MessageId, message_name
from ordercast.judge.online.case import Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, Event, Kind


class Digests(Oracle):
    """Each row of a message has its digest."""

    gated = False

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions and deliveries of messages."""
        return dict.fromkeys((Kind.SUBMIT, *CARRYING), self._on_message)

    def _on_message(self, event: Event) -> None:
        if event.digest is None and event.message is not None:
            message: MessageId = event.message
            what = f"node {event.node} has a row {event.kind} of {message_name(message)} without a digest"
            self.report((event.node,), (message,), (event.time_ns,), what)

"""The holdback keeps rows that come too early: deliveries that come in the stream before their submission.

Rows of different machines are merged by clocks that do not agree. So the place of a delivery in the stream
does not show whether its message had been submitted. The holdback keeps such a delivery, and all later rows
of the same host, until the submission has passed. So the rows of each host keep their order, every submission
is judged before its deliveries, and no times of different nodes are compared.

At the end of the run, deliveries whose submission never came are passed on, and are reported. The remaining
rows wait for each other in a circle, which two clocks on one host can cause. Then the earliest row goes
first, after its submission has been announced.
"""

from collections import deque
from collections.abc import Callable, Set

from ordercast.core import HostId, MessageId
from ordercast.trace import CARRYING, Event, Kind, RunDescription


class Holdback:
    """Passes rows on when their turn has come, each with its place in the stream."""

    def __init__(
        self,
        description: RunDescription,
        pass_on: Callable[[int, Event], None],
        foretell: Callable[[int, Event], None],
        expected: Set[MessageId | None] | None = None,
    ) -> None:
        """`expected` has all messages that the run submits, if they are known already."""
        self._pass_on = pass_on
        self._foretell = foretell
        self._expected: Set[MessageId | None] | None = expected
        self._host = {node.id: node.host for node in description.nodes}
        self._submitted: set[MessageId] = set()
        self._held: dict[HostId, deque[tuple[int, Event]]] = {}
        self._waiting: dict[MessageId, list[HostId]] = {}
        """The hosts whose first held row is a delivery of this message."""

    def observe(self, step: int, event: Event) -> None:
        """Take the next row of the stream."""
        host = self._host.get(event.node)
        if host is None:
            self._pass_on(step, event)
        elif host in self._held:
            self._held[host].append((step, event))
        elif self._early(event):
            self._held[host] = deque([(step, event)])
            self._drain(host)
        else:
            self._pass_on(step, event)
            if event.kind is Kind.SUBMIT:
                for waiting in self._passed(event):
                    self._drain(waiting)

    def finish(self) -> None:
        """Pass on all rows that are held: no more rows will come."""
        coming = {
            event.message: (step, event)
            for rows in reversed(self._held.values())
            for step, event in reversed(rows)
            if event.kind is Kind.SUBMIT and event.message is not None
        }
        self._expected = coming.keys()
        while self._held:
            hosts = sorted(self._held, key=lambda host: self._held[host][0][0])
            host = next((host for host in hosts if not self._early(self._held[host][0][1])), hosts[0])
            event = self._held[host][0][1]
            if self._early(event) and event.message is not None:
                self._foretell(*coming[event.message])
                self._submitted.add(event.message)
            self._waiting.clear()
            for other in hosts:
                self._drain(other)

    def _early(self, event: Event) -> bool:
        """Whether a row is a delivery of a message that has not been submitted yet."""
        return (
            event.kind in CARRYING
            and event.message is not None
            and event.message not in self._submitted
            and (self._expected is None or event.message in self._expected)
        )

    def _drain(self, host: HostId) -> None:
        """Pass on the rows of a host up to the next early one, and the rows that waited for them."""
        hosts = [host]
        while hosts:
            host = hosts.pop()
            rows = self._held.get(host)
            while rows:
                step, event = rows[0]
                if self._early(event) and event.message is not None:
                    self._waiting.setdefault(event.message, []).append(host)
                    break
                rows.popleft()
                if not rows:
                    del self._held[host]
                self._pass_on(step, event)
                if event.kind is Kind.SUBMIT:
                    hosts += self._passed(event)

    def _passed(self, submission: Event) -> list[HostId]:
        """Note that a submission has been passed on; return the hosts that waited for it."""
        if submission.message is None:
            return []
        self._submitted.add(submission.message)
        return self._waiting.pop(submission.message, [])

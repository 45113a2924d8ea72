"""The ticket clock: numbers of tickets that are about the same everywhere at the same time.

A message is ordered when every active member is known to be past its ticket. If members only followed the
numbers that they hear (Lamport), a member would pass a ticket after it has heard of it, and the others would
hear that one delay later: the latency would be twice the delay, and the time until its next message. With
*rate synchronisation* (reference [19] of the hybrid paper) the clocks of members that send at different rates
go equally fast, so that the next message of each member is past the ticket already: the latency is about one
delay and the time between two messages (D + t).

The rule here: a ticket clock counts microseconds. It advances with the node's own clock, so its rate does not
depend on how often the member sends. When a number arrives, the sender's clock is now ahead of it by the
delay of the link; if one's own clock is behind that, it is set forward. The delay is half of the shortest
round trip that was measured, so two members never drive each other ahead of time. The clock never goes back.
An issued number is never issued again.
"""

from ordercast.core import MICROSECOND, Nanos

TICK_NS = MICROSECOND


class TicketClock:
    """The clock of one member."""

    __slots__ = ("_ahead_ns", "_last")

    def __init__(self) -> None:
        self._ahead_ns = 0
        """How far it is ahead of the node's own clock."""
        self._last = 0

    def read(self, now: Nanos) -> int:
        """The number that it shows; later tickets have higher ones."""
        self._last = max(self._last, (now + self._ahead_ns) // TICK_NS)
        return self._last

    def issue(self, now: Nanos) -> int:
        """The number for a ticket: one that was never shown before."""
        self._last = max(self._last + 1, (now + self._ahead_ns) // TICK_NS)
        return self._last

    def follow(self, number: int, delay_ns: Nanos, now: Nanos) -> None:
        """Keep up with a number that another member showed so long ago."""
        self._last = max(self._last, number)
        self._ahead_ns = max(self._ahead_ns, number * TICK_NS + delay_ns - now)

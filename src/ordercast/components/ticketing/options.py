"""Options that all protocols with tickets share."""

from typing import Annotated

import msgspec

from ordercast.components.membership import ViewOptions
from ordercast.components.ticketing.detectors import DetectorName
from ordercast.core import MILLISECOND, LocalError, Nanos, Options, Pace


class TicketOptions(Options, frozen=True):
    """Waits and limits of the order; all members use the same."""

    window: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 256
    """How many messages of one member may wait or be under way; beyond, `submit` returns False."""
    ticket_wait_ns: Nanos = 0
    """How long tickets for others wait for a message of their issuer to ride on, before they go alone."""
    silence_ns: Nanos = 2 * MILLISECOND
    """How long an active member lets others wait for its ticket clock, before it sends the clock alone."""
    probe_ns: Nanos = 100 * MILLISECOND
    """Time between two measurements of the delays to the other members."""
    detector: DetectorName = "mean-shift"
    """How rates and delays are derived from samples: by the paper's detector, or by an exponentially weighted
    mean with hysteresis."""
    samples: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    """How many samples in a row the detector needs (k in the paper)."""
    uniform: bool = False
    """Deliver a message only when enough members have it and its place that no failure can undo it."""
    confirm_ns: Nanos = MILLISECOND
    """With `uniform`: how long a member waits for a message to ride on, before it says what it has."""
    views: ViewOptions = msgspec.field(default_factory=ViewOptions)
    """Timeouts and limits of view synchrony."""
    application_state: bool = False
    """Members that join a group, or come back, get the state that the applications of the others have then.
    """

    @property
    def detection_ns(self) -> Nanos:
        """Within this time the others notice that a member has failed."""
        return self.views.detection_ns

    def __post_init__(self) -> None:
        if min(self.ticket_wait_ns, self.silence_ns, self.confirm_ns) < 0:
            raise LocalError("ticket_wait_ns, silence_ns and confirm_ns must not be negative")
        if self.probe_ns < MILLISECOND:
            raise LocalError(f"probe_ns must be at least 1 ms, got {self.probe_ns} ns")

    def pace(self, delay: Nanos) -> Pace | None:
        """How soon a message is delivered, if a packet takes at most `delay`.

        It goes to the sequencer, its ticket comes back, and active members show their clocks; with `uniform`,
        members confirm it. A change of the view delays all of this by a few rounds.
        """
        views = self.views
        if views.suspect_ns < 4 * delay + 2 * views.heartbeat_ns:
            return None  # members that are only slow would be excluded again and again
        waits = self.ticket_wait_ns + 2 * self.silence_ns + 4 * (self.confirm_ns + views.heartbeat_ns)
        change = 10 * delay + 8 * views.heartbeat_ns + 2 * views.retry_ns
        delivery = 2 * change + 8 * delay + 2 * waits
        return Pace(delivery, 3 * views.detection_ns + 4 * change + delivery)

"""Whether a sequencer is alive, how often it sends, and how late its packets come."""

from ordercast.core import Nanos

UNKNOWN: Nanos = 1 << 40
"""The assumed time between two messages of a sequencer that has sent fewer than two."""
STRIKES = 6
"""A sequencer is suspected after this many ticks without a message. Ticks and not time are counted, so that a
paused receiver does not mistake its own pause for the silence of others."""
SMOOTHING = 8
"""A moving mean moves by this share of the difference."""


class Pulse:
    """The signs of life of one sequencer, as one receiver measures them."""

    __slots__ = ("_heard", "_heard_at", "_strikes", "late_ns", "mean_ns")

    def __init__(self) -> None:
        self.mean_ns: Nanos = UNKNOWN
        """The moving mean of the time between two messages."""
        self.late_ns: Nanos = 0
        """How late packets came, at most, after later ones; it fades."""
        self._heard = True
        self._strikes = 0
        self._heard_at: Nanos = 0

    def hear(self) -> None:
        """Note that the sequencer is alive, because a packet of its own came."""
        self._heard = True

    def measure(self, now: Nanos) -> None:
        """Note that the sequencer is alive, and measure the time since the packet before."""
        self._heard = True
        gap, self._heard_at = now - self._heard_at, now
        self.mean_ns = gap if self.mean_ns == UNKNOWN else self.mean_ns + (gap - self.mean_ns) // SMOOTHING

    def strike(self) -> bool:
        """End a tick; returns whether the sequencer has been silent for too long."""
        self._strikes = 0 if self._heard else self._strikes + 1
        self._heard = False
        self.late_ns -= self.late_ns >> 4
        return self.silent

    @property
    def silent(self) -> bool:
        """Whether nothing has come from the sequencer for too long."""
        return self._strikes >= STRIKES

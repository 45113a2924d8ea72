"""Timeouts and limits of view synchrony, with defaults for one local network."""

from ordercast.core import MILLISECOND, LocalError, Nanos, Options
from ordercast.core.message import PAYLOAD_BYTES_MAX

LIVE_TIMEOUTS: dict[str, object] = {
    "heartbeat_ns": 100 * MILLISECOND,
    "suspect_ns": 1500 * MILLISECOND,
    "retry_ns": 50 * MILLISECOND,
}
"""For real machines, where a member may have to wait for a CPU."""


class ViewOptions(Options, frozen=True):
    """Timeouts and limits; all members of a group use the same."""

    heartbeat_ns: Nanos = 10 * MILLISECOND
    """Time between two heartbeats of a member."""
    suspect_ns: Nanos = 60 * MILLISECOND
    """A member that has not been heard for this time, or that says that it does not hear, is suspected."""
    retry_ns: Nanos = 5 * MILLISECOND
    """Time before a member asks for a message that it misses, and between two such questions."""
    window: int = 1024
    """How many messages of one member may be unacknowledged, and how many may wait for the next view; beyond,
    `multicast` returns False."""
    window_bytes: int = 16 << 20
    """How many bytes of one member may be unacknowledged; one message always fits."""
    chunk_bytes: int = 256 << 10
    """How many bytes one answer to a question for messages or for the state has; one message always fits."""
    returns: bool = True
    """A member that was excluded, or that restarted, asks by itself to come in again."""

    @property
    def silences_max(self) -> int:
        """After so many heartbeats of its own without a sign of another member, a member suspects it."""
        return -(-self.suspect_ns // self.heartbeat_ns)

    @property
    def detection_ns(self) -> Nanos:
        """The longest time until a member that fails is suspected.

        A member that is heard but does not hear takes the longest: it must notice that first, and say so.
        """
        return self.suspect_ns + 3 * self.heartbeat_ns

    def __post_init__(self) -> None:
        if min(self.heartbeat_ns, self.retry_ns, self.window, self.window_bytes) < 1:
            raise LocalError("views: timeouts and limits must be positive")
        if self.suspect_ns < 2 * self.heartbeat_ns:
            raise LocalError("views: suspect_ns must be at least twice heartbeat_ns")
        if not 1 <= self.chunk_bytes <= PAYLOAD_BYTES_MAX:
            raise LocalError(f"views: chunk_bytes must be 1 to {PAYLOAD_BYTES_MAX}")

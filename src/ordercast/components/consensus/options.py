"""Timeouts and limits of a consensus replica, with defaults for one local network."""

from ordercast.core import MILLISECOND, LocalError, Nanos, Options

BACKOFF_MAX = 3
"""Repetitions, and timeouts after failed elections, wait at most 2 to this power times as long as the first,
so that they do not overload replicas that are only slow."""


LIVE_TIMEOUTS: dict[str, object] = {
    "heartbeat_ns": 50 * MILLISECOND,
    "election_ns_min": 300 * MILLISECOND,
    "election_ns_max": 600 * MILLISECOND,
    "retry_ns": 50 * MILLISECOND,
}
"""For real machines, where a replica may have to wait for a CPU."""


class ConsensusOptions(Options, frozen=True):
    """Timeouts and limits; all replicas of a group use the same."""

    heartbeat_ns: Nanos = 5 * MILLISECOND
    """Time between two heartbeats of a leader."""
    election_ns_min: Nanos = 25 * MILLISECOND
    election_ns_max: Nanos = 50 * MILLISECOND
    """A follower wants to lead if no leader was heard for a random time between these. A leader gives up if
    no majority has answered its heartbeats for the longer time."""
    retry_ns: Nanos = 5 * MILLISECOND
    """Time before an unanswered Accept is sent again, and before a Fetch."""
    window: int = 1024
    """How many slots may be in flight; beyond, `propose` returns False."""
    log_limit: int = 65_536
    """How many slots may be kept because some replica has no snapshot of them; beyond, `propose` fails."""
    checkpoint: int = 1024
    """Slots between two snapshots of the owner's state. If that is large, there may be more."""
    chunk_bytes: int = 64 << 10
    """The largest size of a Promise or a Learn in bytes; one entry always fits."""
    burst: int = 64
    """How many Accepts one tick repeats."""

    @property
    def unanswered_max(self) -> int:
        """How many heartbeats a replica may leave unanswered before the leader counts it as out of reach."""
        return -(-self.election_ns_max // self.heartbeat_ns)

    @property
    def detection_ns(self) -> Nanos:
        """The longest time until a leader that is cut off is missed: it gives up, and a follower notices.

        A leader that is heard but hears nobody takes the longest.
        """
        return 2 * (self.election_ns_max + self.heartbeat_ns)

    @property
    def recovery_ns(self) -> Nanos:
        """Within this time after the last fault, a majority that is connected has a leader and decides."""
        retries = self.election_ns_max + self.heartbeat_ns + self.retry_ns << BACKOFF_MAX
        return self.detection_ns + retries + 4 * self.election_ns_max

    def __post_init__(self) -> None:
        if self.election_ns_max < self.election_ns_min or self.election_ns_min <= self.heartbeat_ns:
            raise LocalError(
                "consensus: election_ns_min must be above heartbeat_ns, and at most election_ns_max"
            )
        if min(self.heartbeat_ns, self.retry_ns, self.window, self.chunk_bytes, self.burst) < 1:
            raise LocalError("consensus: timeouts and limits must be positive")
        if not 1 <= self.checkpoint <= self.log_limit:
            raise LocalError("consensus: checkpoint must be 1 to log_limit")

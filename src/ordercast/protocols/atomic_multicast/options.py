"""Options of atomic multicast, with defaults for one local network."""

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import MILLISECOND, LocalError, Nanos, Options, Pace


class AtomicMulticastOptions(Options, frozen=True):
    """Windows and timeouts; the timeouts only decide how soon lost messages are repeated."""

    window: int = 64
    """How many messages of a client may be without a final number; beyond, `submit` returns False."""
    backlog: int = 1024
    """How many numbers may lie between a client's oldest message that some group has not settled and its
    next message; beyond, `submit` returns False."""
    queue: int = 4096
    """How many requests wait at a leader for a slot of the log; more are dropped, and clients repeat them."""
    early: int = 4096
    """How many Finals a receiver keeps for messages that are not in its log yet; the oldest are dropped
    first, and recovery finds their final numbers again."""
    retry_ns: Nanos = 20 * MILLISECOND
    """Time before a client first repeats a Request; it doubles up to eight times that."""
    confirm_ns: Nanos = 100 * MILLISECOND
    """Time before a client repeats a Final that a group has not settled; it doubles likewise."""
    patience_ns: Nanos = 10 * MILLISECOND
    """Time after which a receiver does without the Final of a message to only its own group."""
    recovery_ns: Nanos = 40 * MILLISECOND
    """Time after which a leader acts for a client that sends no Final; followers wait twice as long."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Options of each group's log."""

    @property
    def detection_ns(self) -> Nanos:
        """The leader of a group is missed."""
        return self.consensus.detection_ns

    def pace(self, delay: Nanos) -> Pace:
        """A message takes some round trips, and with a short backlog waits until earlier ones are settled;
        recovery takes a new leader, the repetition of what the old one had, and the part of clients that are
        gone."""
        settling = 8 * (self.confirm_ns + self.recovery_ns) // self.backlog
        delivery = 4 * (self.retry_ns + self.patience_ns) + settling + 15 * delay
        repeated = 8 * (self.retry_ns + self.recovery_ns) + self.confirm_ns
        return Pace(delivery, self.consensus.recovery_ns + repeated + 100 * delay)

    def __post_init__(self) -> None:
        limits = (self.window, self.backlog, self.queue, self.early)
        times = (self.retry_ns, self.confirm_ns, self.patience_ns, self.recovery_ns)
        if min(*limits, *times) < 1:
            raise LocalError("atomic_multicast: limits and timeouts must be positive")
        if self.backlog < self.window:
            raise LocalError("atomic_multicast: backlog must be at least as large as window")

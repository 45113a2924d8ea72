"""Options of atomic multicast, with defaults for one local network."""

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import MILLISECOND, LocalError, Nanos, Options


class AtomicMulticastOptions(Options, frozen=True):
    """Windows and timeouts; the timeouts only decide how soon something lost is made up for."""

    window: int = 64
    """Messages of a client without a final number; `submit` returns False beyond."""
    backlog: int = 1024
    """Numbers from a client's oldest message that some group has not settled to its next one;
    `submit` returns False beyond."""
    queue: int = 4096
    """Requests that wait at a leader for a free slot of the log; more are dropped and come again."""
    early: int = 4096
    """Finals that a receiver keeps for messages not in its log yet; the oldest go first, and what
    they would have said is found out by recovery."""
    retry_ns: Nanos = 20 * MILLISECOND
    """After which a client repeats a Request, at first; it doubles up to eight times that."""
    confirm_ns: Nanos = 100 * MILLISECOND
    """After which a client repeats a Final that a group has not settled, doubling likewise."""
    patience_ns: Nanos = 10 * MILLISECOND
    """After which a receiver goes without the Final of a message to its own group alone."""
    recovery_ns: Nanos = 40 * MILLISECOND
    """After which a leader takes the part of a client that sends no Final; followers take twice."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Of the log of each group."""

    def __post_init__(self) -> None:
        limits = (self.window, self.backlog, self.queue, self.early)
        times = (self.retry_ns, self.confirm_ns, self.patience_ns, self.recovery_ns)
        if min(*limits, *times) < 1:
            raise LocalError("atomic_multicast: limits and timeouts must be positive")
        if self.backlog < self.window:
            raise LocalError("atomic_multicast: backlog must be at least as large as window")

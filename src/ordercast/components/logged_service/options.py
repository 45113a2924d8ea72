"""Options that all protocols with a log for a service have."""

from typing import Annotated

import msgspec

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.execution import CallOptions
from ordercast.components.logged_service.messages import BATCH_MAX
from ordercast.core import Nanos, Options, Pace


class LogOptions(Options, frozen=True):
    """How clients call, and how the log is kept."""

    calls: CallOptions = CallOptions()
    """How clients call."""
    durable: bool = True
    """Replicas save everything. Otherwise they keep it in memory, and one that restarts recovers from the
    others."""
    queue: Annotated[int, msgspec.Meta(ge=1)] = 4096
    """How many calls wait at a replica; it drops others, and their clients call again."""
    checkpoint_every: Annotated[int, msgspec.Meta(ge=0)] = 256
    """Replicas note the digest of their state after so many calls; 0: never."""
    consensus: ConsensusOptions = ConsensusOptions()
    """The log."""

    @property
    def detection_ns(self) -> Nanos:
        """Within this time a leader that has failed is missed."""
        return self.consensus.detection_ns

    def pace(self, delay: Nanos) -> Pace | None:
        """How soon calls are delivered on a network that takes at most `delay` for a packet."""
        log = self.consensus
        again = 9 * self.calls.retry_ns
        return Pace(4 * (again + log.retry_ns) + 15 * delay, log.recovery_ns + 8 * again + 100 * delay)


class BatchOptions(LogOptions, frozen=True):
    """The same for a log whose slots hold several calls, or commands."""

    batch: Annotated[int, msgspec.Meta(ge=1, le=BATCH_MAX)] = 16
    """How many calls one slot of the log holds at most."""
    in_flight: Annotated[int, msgspec.Meta(ge=1)] = 64
    """How many slots are in flight before calls wait for each other and share slots."""

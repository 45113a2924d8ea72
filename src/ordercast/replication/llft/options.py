"""Options of LLFT."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from ordercast.components.execution import CallOptions
from ordercast.core import MICROSECOND, MILLISECOND, SECOND, LocalError, Nanos, Options, Pace

Duration: TypeAlias = Annotated[Nanos, msgspec.Meta(ge=1, le=3600 * SECOND)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


class LlftOptions(Options, frozen=True):
    """How groups replicate, talk to each other, and notice failures."""

    calls: CallOptions = CallOptions()
    """How clients call."""
    replication: Literal["semi-active", "semi-passive"] = "semi-active"
    """Whether backups perform the operations too, or only take over states of the primary (section II.E)."""
    require_majority: bool = False
    """A view needs a majority of the replicas of its group, and nothing leaves the primary before a majority
    has it. So no work is ever discarded, but without a majority none is done. Otherwise one replica is
    enough: a group goes on as long as one is left, and what the losing side of a partition did is undone when
    it heals."""
    update_every: Count = 16
    """Semi-passive: the primary hands its state to the backups after so many operations."""
    window: Count = 256
    """How many messages may be under way on a connection, in each direction."""
    fragment_bytes: Annotated[int, msgspec.Meta(ge=64, le=1 << 20)] = 60_000
    """A message that is larger travels as several."""
    retransmit_ns: Duration = 10 * MILLISECOND
    """A message that is not acknowledged is sent again after this time; later attempts wait longer."""
    ack_ns: Duration = 1 * MILLISECOND
    """A message is acknowledged within this time, by a message of the application or a `FirstAck`."""
    progress_ns: Duration = 500 * MICROSECOND
    """A backup says within this time that it has more ordering information."""
    keep_alive_ns: Duration = 50 * MILLISECOND
    """A connection on which nothing was sent for so long gets a `KeepAlive`."""
    close_ns: Duration = 2 * SECOND
    """A connection on which nothing was heard for so long is closed."""
    heartbeat_ns: Duration = 5 * MILLISECOND
    """How often the primary and the backups say that they are alive."""
    detect_ns: Duration = 30 * MILLISECOND
    """The backup of rank 2 suspects a primary that is silent for so long; that of rank r waits 2r - 3 times
    as long (section IV). A primary suspects backups likewise."""
    query_ns: Duration = 60 * MILLISECOND
    """A new primary waits so long for what remote groups know of the old one."""
    regroup_ns: Duration = 300 * MILLISECOND
    """A replica that is not a member, but still has a state, appoints itself if it hears no primary for so
    long."""
    attempts: Count = 4
    """A member that has not acknowledged a change of the group after so many heartbeats is excluded."""
    behind_max: Count = 1024
    """How many operations backups may be behind the primary before it waits for them."""
    slow_backup: Literal["wait", "remove"] = "wait"
    """What a primary does about a backup that holds it up for `regroup_ns`: wait for it, or remove it."""
    first_acks_max: Count = 8
    """So many acknowledgements of one message tell a primary that its backups are behind: it slows down."""
    checkpoint_every: Annotated[int, msgspec.Meta(ge=0)] = 256
    """Replicas note the digest of their state after so many calls; 0: never."""

    def __post_init__(self) -> None:
        if self.detect_ns < 2 * self.heartbeat_ns:
            raise LocalError(
                f"detect_ns must be at least twice heartbeat_ns ({self.heartbeat_ns}), not {self.detect_ns}"
            )

    @property
    def detection_ns(self) -> Nanos:
        """The first backup suspects the primary."""
        return self.detect_ns

    def pace(self, delay: Nanos) -> Pace | None:
        """How soon calls are delivered on a network that takes at most `delay` for a packet."""
        if 2 * delay + self.heartbeat_ns > self.detect_ns:
            return None
        again = self.retransmit_ns + self.ack_ns + 2 * self.heartbeat_ns + 6 * delay
        change = 8 * self.detect_ns + 2 * self.query_ns + self.attempts * 4 * self.heartbeat_ns
        join = 4 * (self.regroup_ns + self.attempts * self.heartbeat_ns) + 2 * self.close_ns
        return Pace(
            16 * again + 9 * self.calls.retry_ns, change + join + 16 * again + 9 * self.calls.retry_ns
        )

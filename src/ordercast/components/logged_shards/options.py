"""Options of transactions over logs."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Annotated

import msgspec

from ordercast.components.execution.options import Duration
from ordercast.components.logged_service.options import BatchOptions
from ordercast.core import MILLISECOND, LocalError, Nanos, Pace


class ShardsOptions(BatchOptions, frozen=True):
    """How clients call, how commands are put into the logs of the shards, and when clients count as dead."""

    lock_ns: Duration = 100 * MILLISECOND
    """Shards end a transaction that has held locks for so long: its client may have died."""
    back_off_ns: Duration = 1 * MILLISECOND
    """A client that found a lock taken tries again after a random time of at most this, or of as long as its
    attempt took, if that is longer, but no longer than `calls.retry_ns`; after each further time at most
    twice as long."""
    back_off_max: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    """A client waits at most so many times as long as at first."""

    def __post_init__(self) -> None:
        if self.lock_ns < 2 * self.calls.retry_ns:
            raise LocalError(
                f"lock_ns ({self.lock_ns}) must be at least twice calls.retry_ns ({self.calls.retry_ns}):"
                " a client that repeats what was lost is not dead"
            )

    def pace(self, delay: Nanos) -> Pace | None:
        """How soon calls are delivered: each phase is a call, and what died holds locks for a while."""
        base = super().pace(delay)
        if base is None:
            return None
        ending = 3 * self.lock_ns + 8 * base.delivery_ns
        waiting = 4 * max(self.back_off_ns, self.calls.retry_ns) * self.back_off_max
        return Pace(4 * base.delivery_ns + waiting, base.recovery_ns + ending + waiting)


def vary_shards(rng: Random, vary_log: Callable[[Random], Mapping[str, object] | None]) -> dict[str, object]:
    """Options for a seed of the swarm: those of the log, and clients that soon count as dead.

    Queues hold what clients ask for at once: what overflows comes again when the client repeats it, and by
    then the shards may have ended the attempt, over and over again.
    """
    retry_ns = rng.choice((5, 20)) * MILLISECOND
    return {
        **(vary_log(rng) or {}),
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": retry_ns},
        "queue": 4096,
        "lock_ns": rng.choice((3, 10)) * retry_ns,
        "back_off_ns": rng.choice((1, 4)) * MILLISECOND,
        "back_off_max": rng.choice((16, 64)),
    }

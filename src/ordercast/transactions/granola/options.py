"""Options of Granola."""

from typing import Annotated

import msgspec

from ordercast.components.execution.options import Duration
from ordercast.components.logged_shards import ShardsOptions
from ordercast.core import MILLISECOND, SECOND, Nanos, Pace


class GranolaOptions(ShardsOptions, frozen=True):
    """How clients call, how shards agree on timestamps, and when clients count as dead."""

    vote_ns: Duration = 10 * MILLISECOND
    """A shard that lacks a vote for so long asks for it, again and again."""
    conflicts_max: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 5
    """A call that was in conflict so many times waits for its locks from then on."""
    ahead_ns: Annotated[Nanos, msgspec.Meta(ge=SECOND, le=10 * 365 * 86_400 * SECOND)] = 86_400 * SECOND
    """A timestamp that is further ahead of the own clock is refused."""

    def pace(self, delay: Nanos) -> Pace | None:
        """How soon calls are delivered: votes that are lost are asked for, and so are requests."""
        base = super().pace(delay)
        if base is None:
            return None
        votes = 8 * self.vote_ns + 8 * delay
        return Pace(base.delivery_ns + votes, base.recovery_ns + 2 * votes)

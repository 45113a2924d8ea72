"""Options of groups that have messages in common."""

from random import Random
from typing import Annotated

import msgspec

from ordercast.components.consensus import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.components.network_ordered.options import Duration
from ordercast.core import MILLISECOND, LocalError, Nanos, Pace


class CoordinatorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The failure coordinator, which decides what became of messages that a whole group has lost."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    """How many replicas it has."""
    ask_ns: Duration = 1 * MILLISECOND
    """How often questions are repeated."""
    certain_ns: Duration = 20 * MILLISECOND
    """How often groups tell how far they are certain, so that others can forget what they kept for them."""
    lock_ns: Duration = 100 * MILLISECOND
    """When shards end a general transaction whose client neither commits nor aborts it."""
    consensus: ConsensusOptions = ConsensusOptions()
    """The log of the coordinator."""

    def __post_init__(self) -> None:
        if self.replicas % 2 == 0:
            raise LocalError(
                f"a coordinator has an odd number of replicas, not {self.replicas}: with one less it bears as"
                " many failures"
            )

    @property
    def detection_ns(self) -> Nanos:
        """When another replica of the coordinator leads after a crash."""
        return self.consensus.detection_ns

    def pace(self, replicas: Pace, delay: Nanos) -> Pace:
        """The pace of replicas that may have to wait for a decision."""
        decision = 8 * self.ask_ns + 20 * delay
        recovery = self.consensus.recovery_ns
        return Pace(replicas.delivery_ns + decision, replicas.recovery_ns + recovery + 2 * decision)


def vary_coordinator(rng: Random) -> dict[str, object]:
    """Options for a run of the swarm."""
    return {
        "replicas": rng.choice((1, 3, 3)),
        "certain_ns": rng.choice((2, 20)) * MILLISECOND,
        "lock_ns": rng.choice((20, 100)) * MILLISECOND,
    }


LIVE_COORDINATOR: dict[str, object] = {
    "ask_ns": 20 * MILLISECOND,
    "certain_ns": 200 * MILLISECOND,
    "lock_ns": 2000 * MILLISECOND,
    "consensus": LIVE_TIMEOUTS,
}
"""The same for real machines."""

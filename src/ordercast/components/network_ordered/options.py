"""Options of replicas that get their order from the network."""

from random import Random
from typing import Annotated, TypeAlias
from zlib import crc32

import msgspec

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, LocalError, Nanos, Pace

Duration: TypeAlias = Annotated[Nanos, msgspec.Meta(ge=1, le=3600 * SECOND)]


class ReplicaOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Timeouts and limits of replicas."""

    ask_ns: Annotated[Nanos, msgspec.Meta(ge=0, le=SECOND)] = 20 * MICROSECOND
    """How long a packet may be late before others are asked for it."""
    gap_ns: Duration = 1 * MILLISECOND
    """How long a leader waits for answers before it proposes to give a slot up; also the time before
    questions and proposals are repeated."""
    sync_ns: Duration = 5 * MILLISECOND
    """How often the leader makes its log certain. This is also its sign of life."""
    spread: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """In so many parts a replica that follows executes what has become certain together. Between them it
    looks at what has come, and confirms calls. A durable replica executes all of it at once, and saves once.
    """
    silence_ns: Duration = 40 * MILLISECOND
    """A leader that says nothing, or hears nobody, for so long is replaced."""
    view_ns: Duration = 10 * MILLISECOND
    """How often a view change is repeated; after four times, and later more, the next leader is tried."""
    checkpoint_every: Annotated[int, msgspec.Meta(ge=1)] = 256
    """A replica keeps its state after so many calls, and forgets the log before it."""
    keep: Annotated[int, msgspec.Meta(ge=0)] = 1024
    """How many entries before that it keeps, for replicas that lag behind."""
    chunk_bytes: Annotated[int, msgspec.Meta(ge=64, le=1 << 20)] = 16_384
    """How many bytes of a state or of entries go in one message."""

    def __post_init__(self) -> None:
        if self.silence_ns <= self.sync_ns:
            raise LocalError("silence_ns must be longer than sync_ns; otherwise every leader is replaced")

    def pace(self, network: Pace, delay: Nanos, retries: Nanos) -> Pace:
        """How long a call takes over a network with this pace, and how long it takes to recover."""
        agreement = 4 * self.gap_ns + 2 * self.sync_ns + 20 * delay
        change = 2 * self.silence_ns + 40 * self.view_ns + 40 * delay
        usual = network.delivery_ns + agreement + retries
        return Pace(usual, network.recovery_ns + change + 2 * usual)


def vary_options(rng: Random) -> dict[str, object]:
    """The options for a run of the swarm."""
    drawn: dict[str, object] = {
        "ask_ns": rng.choice((0, 20_000, 200_000)),
        "gap_ns": rng.choice((500_000, 2_000_000)),
        "sync_ns": rng.choice((1, 5)) * MILLISECOND,
        "checkpoint_every": rng.choice((1, 3, 16, 256)),
        "keep": rng.choice((0, 4, 1024)),
        "chunk_bytes": rng.choice((64, 16_384)),
    }
    # Made of the others instead of drawn, so that runs without parts stay as they are.
    return drawn | {"spread": (1, 1, 3, 16)[crc32(repr(drawn).encode()) % 4]}


LIVE_OPTIONS: dict[str, object] = {
    "ask_ns": 1 * MILLISECOND,
    "gap_ns": 20 * MILLISECOND,
    "sync_ns": 20 * MILLISECOND,
    "spread": 16,
    "silence_ns": 500 * MILLISECOND,
    "view_ns": 100 * MILLISECOND,
    "chunk_bytes": 64 << 10,
}
"""The options for real machines."""
